"""From keyword arguments to the native world and configuration."""

from __future__ import annotations

import json
import os
import warnings
import weakref
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from xla_gym import _native
from xla_gym import engine as engines
from xla_gym.data import Program

_VIEWS = {
    "counts": ["scaled"],
    "raw": ["counts"],
    "share": ["share"],
    "cost": ["cost"],
    "history": ["history"],
    "applied": ["applied"],
    "latest": ["latest"],
    "size": ["size"],
    "inlined": ["inlined"],
    "counts+cost": ["scaled", "cost"],
    "graph": [],
}

# What environments of a compiler begin with if nobody says.
_BENCHMARKS: dict[str, str | Program] = {
    "xla": "hlo-v1:gpt2/train",
    "toy": Program(
        "toy/example",
        b"toy\ninput 0\ninput 1\nconst 2\nconst 3\nmul 2 3\nadd 0 1\nadd 1 0\n"
        b"copy 5\nneg 7\nneg 8\nmul 9 4\n",
    ),
}

# Environments with the same arguments share a compiler and what is remembered.
_worlds: weakref.WeakValueDictionary[str, _native.World] = weakref.WeakValueDictionary()


def views(observation: str) -> list[str]:
    """The native views behind a kind of observation."""
    if observation not in _VIEWS:
        kinds = ", ".join(_VIEWS)
        raise _native.ConfigError(f"there is no observation {observation!r}; there are {kinds}")
    return _VIEWS[observation]


def start_of(start: str | None, normalise: bool | None, stacklevel: int) -> str | None:
    """Where orders begin, from today's argument and the one that there was before."""
    if normalise is None:
        return start
    message = 'say start="normalized" for normalise=True, and nothing for normalise=False'
    warnings.warn(message, DeprecationWarning, stacklevel=stacklevel + 1)
    return "normalized" if normalise else start


def benchmarks(engine: str) -> str | Program:
    """What environments of a compiler begin with if nobody says."""
    if engine not in _BENCHMARKS:
        raise _native.ConfigError(f"{engine} has no benchmarks of its own; say benchmark_locs")
    return _BENCHMARKS[engine]


def world(
    benchmark_locs: str | Program | Iterable[str | Program],
    *,
    engine: str,
    start: str | None,
    passes: Iterable[str] | None,
    cache: str | os.PathLike[str] | None,
    cache_memory: int,
    pass_limit: float,
    memory_limit: float | None,
    remember_failures: bool,
) -> _native.World:
    """The world for these arguments, shared with whoever asked for the same."""
    locs = [benchmark_locs] if isinstance(benchmark_locs, str | Program) else list(benchmark_locs)
    specs = [os.fspath(loc) for loc in locs if not isinstance(loc, Program)]
    programs = [loc for loc in locs if isinstance(loc, Program)]
    arguments: dict[str, Any] = {
        "engine": engine,
        "start": start,
        "passes": list(passes or []),
        "cache": None if cache is None else os.fspath(cache),
        "cache_memory": cache_memory,
        "pass_limit": pass_limit,
        "memory_limit": memory_limit,
        "remember_failures": remember_failures,
    }
    contents = [[program.name, hash(program.content)] for program in programs]
    key = json.dumps([os.getpid(), os.getcwd(), specs, contents, arguments])
    known = _worlds.get(key)
    if known is None:
        worker, libraries = engines.find(engine=engine)
        known = _native.World(
            specs,
            programs=[(program.name, program.content) for program in programs],
            worker=worker,
            libraries=libraries,
            **arguments,
        )
        _worlds[key] = known
    return known


def config(
    *,
    traj_limit: int,
    reward: str,
    shaped: bool,
    gamma: float,
    weights: Mapping[str, float] | None,
    at_end: str | None,
    failure_cost: float,
    stop_action: bool,
    sampler: str | Mapping[str, Any],
    mask: str,
) -> str:
    """The native configuration."""
    shaping = {"gamma": gamma, "weights": dict(weights or {})}
    return json.dumps(
        {
            "traj-limit": traj_limit,
            "reward": {
                "objective": reward,
                "shaping": shaping if shaped or weights else None,
                "at-end": at_end,
                "failure-cost": failure_cost,
            },
            "stop-action": stop_action,
            "sampler": sampler,
            "mask": mask,
        }
    )


class Settings(NamedTuple):
    """What the native environments are made of."""

    world: _native.World
    config: str
    views: list[str]


def settings(
    benchmark_locs: str | Program | Iterable[str | Program] | None,
    traj_limit: int,
    *,
    engine: str = "xla",
    observation: str = "counts",
    reward: str = "paper",
    shaped: bool = False,
    gamma: float = 0.99,
    weights: Mapping[str, float] | None = None,
    at_end: str | None = None,
    failure_cost: float = 0.0,
    stop_action: bool = False,
    sampler: str | Mapping[str, Any] = "cycle",
    mask: str = "own",
    passes: Iterable[str] | None = None,
    start: str | None = None,
    normalise: bool | None = None,
    cache: str | os.PathLike[str] | None = None,
    cache_memory: int = 256 << 20,
    pass_limit: float = 30.0,
    memory_limit: float = 8.0,
    remember_failures: bool = True,
) -> Settings:
    """The settings that all environments share; described at :class:`xla_gym.envs.PassOrderEnv`."""
    chosen = views(observation)
    configured = config(
        traj_limit=traj_limit,
        reward=reward,
        shaped=shaped,
        gamma=gamma,
        weights=weights,
        at_end=at_end,
        failure_cost=failure_cost,
        stop_action=stop_action,
        sampler=sampler,
        mask=mask,
    )
    shared = world(
        benchmarks(engine) if benchmark_locs is None else benchmark_locs,
        engine=engine,
        start=start_of(start, normalise, stacklevel=3),
        passes=passes,
        cache=cache,
        cache_memory=cache_memory,
        pass_limit=pass_limit,
        memory_limit=memory_limit,
        remember_failures=remember_failures,
    )
    if observation == "graph" and not shared.node_features:
        raise _native.ConfigError(f"{shared.engine} gives no graphs; choose another observation")
    return Settings(shared, configured, chosen)
