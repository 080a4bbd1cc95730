"""The benchmark graphs of XLA, and your own programs.

Wherever an environment takes ``benchmark_locs``, each entry is an id of the data set
(``hlo-v1/gpt2/…``), a pattern of ids, a side of a split (``hlo-v1:gpt2/train``), a file, a pattern of
files, a folder (of XLA's dumps, too), or a :class:`Program` made here.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from xla_gym import _native


@dataclass(frozen=True)
class Program:
    """A program in memory: for XLA HLO text, a serialized HloModuleProto, or StableHLO."""

    name: str
    content: bytes

    def __repr__(self) -> str:
        return f"Program({self.name!r}, {len(self.content):,} bytes)"


def ids(spec: str | Iterable[str] = "hlo-v1") -> list[str]:
    """Names of the benchmarks that a spec stands for.

    >>> ids("hlo-v1/sorting/*")[0]
    'hlo-v1/sorting/area-under-curve'
    """
    return _native.find_benchmarks([spec] if isinstance(spec, str) else list(spec))[0]


def describe(graph: str) -> dict[str, Any]:
    """What is known of a graph of the data set: sizes, provenance, splits, XLA's own result."""
    return json.loads(_native.describe_graph(graph))


def text(graph: str) -> str:
    """The HLO text of a graph of the data set."""
    return _native.read_graph(graph).decode()


def from_jax(fn: Callable[..., Any], *args: Any, name: str | None = None, **kwargs: Any) -> Program:
    """The program that JAX emits for a function, before any optimisation.

    ``fn`` may be plain or jitted (so that static arguments and donation can be said); the arguments
    may be arrays or ``jax.ShapeDtypeStruct``.
    """
    import jax

    jitted = fn if hasattr(fn, "lower") else jax.jit(fn)
    module = jitted.lower(*args, **kwargs).compiler_ir(dialect="hlo")
    label = name or f"jax:{getattr(fn, '__name__', 'function')}"
    return Program(label, module.as_serialized_hlo_module_proto())
