"""Calls of a jitted function: which of them share a compiled program."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable, Mapping
from typing import Any

import jax
import numpy as np


class Calls:
    """A jitted function, and what distinguishes calls of it."""

    def __init__(self, fn: Callable[..., Any], options: Mapping[str, Any]) -> None:
        self.name = getattr(fn, "__name__", None) or type(fn).__name__
        self.jitted = jax.jit(fn, **options)
        self.options = dict(options.get("compiler_options") or {})
        self.static_numbers, self.static_names = _static(
            fn, options.get("static_argnums"), options.get("static_argnames")
        )

    def split(self, args: Any, kwargs: Any) -> tuple[Any, Any, Hashable]:
        """Arguments that are data, and the values of those that are not."""
        if not self.static_numbers and not self.static_names:
            return args, kwargs, None
        numbers = {n + len(args) if n < 0 else n for n in self.static_numbers}
        static = [(i, type(a), a) for i, a in enumerate(args) if i in numbers]
        named = [(k, type(v), v) for k, v in sorted(kwargs.items()) if k in self.static_names]
        data = tuple(a for i, a in enumerate(args) if i not in numbers)
        return data, {k: v for k, v in kwargs.items() if k not in self.static_names}, (*static, *named)

    def signature(self, args: Any, kwargs: Any) -> Hashable | None:
        """What a compiled program depends on; ``None`` where JAX must see the call itself."""
        if _config().jax_disable_jit or not _outside_of_traces():
            return None
        data, named, static = self.split(args, kwargs)
        leaves, tree = jax.tree_util.tree_flatten((data, named))
        several = jax.device_count() > 1
        kinds: list[Any] = []
        for leaf in leaves:
            if isinstance(leaf, jax.Array):
                if isinstance(leaf, jax.core.Tracer):
                    return None
                # Arrays of random keys have no weak types.
                kind: Hashable = (leaf.shape, leaf.dtype, getattr(leaf, "weak_type", False))
                kinds.append((kind, leaf.sharding, leaf.committed) if several else kind)
            elif isinstance(leaf, np.ndarray | np.generic):
                kinds.append((leaf.shape, leaf.dtype, False))
            elif isinstance(leaf, jax.ShapeDtypeStruct):
                kinds.append((leaf.shape, leaf.dtype, leaf.weak_type))
            else:
                # Python's numbers; what is none of these JAX refuses in its own words.
                kinds.append(type(leaf))
        key = (tree, tuple(kinds), static, _context())
        try:
            hash(key)
        except TypeError:
            return None
        return key


def _static(fn: Callable[..., Any], numbers: Any, names: Any) -> tuple[tuple[int, ...], frozenset[str]]:
    """Static arguments by position and by name; like JAX, each says the other if only one is given."""
    by_number = () if numbers is None else (numbers,) if isinstance(numbers, int) else tuple(numbers)
    by_name = () if names is None else (names,) if isinstance(names, str) else tuple(names)
    if (numbers is None) != (names is None):
        try:
            parameters = list(inspect.signature(fn).parameters.values())
        except (TypeError, ValueError):
            parameters = []
        both_ways = inspect.Parameter.POSITIONAL_OR_KEYWORD
        open_to_both = [(i, p.name) for i, p in enumerate(parameters) if p.kind == both_ways]
        wanted = {n + len(parameters) if n < 0 else n for n in by_number}
        by_name = by_name or tuple(name for i, name in open_to_both if i in wanted)
        by_number = by_number or tuple(i for i, name in open_to_both if name in by_name)
    return by_number, frozenset(by_name)


def _outside_of_traces() -> bool:
    """Whether no transformation is under way: inside one, even constants belong to its program."""
    try:
        from jax._src.core import trace_state_clean
    except ImportError:  # Tracers among the arguments still tell most of it.
        return True
    return trace_state_clean()


def _config() -> Any:
    """The settings of JAX, whose types know nothing of them."""
    return jax.config


def _context() -> Hashable:
    """The settings of JAX that a program depends on."""
    config = _config()
    try:
        from jax._src.config import trace_context
    except ImportError:
        return (config.jax_enable_x64, config.jax_default_matmul_precision, config.jax_default_device)
    return (trace_context(), config.jax_default_device)
