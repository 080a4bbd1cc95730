"""XLA Gym inside JAX: ``xla_gym.jit`` where ``jax.jit`` stood.

>>> import xla_gym
>>> step = xla_gym.jit(train_step, donate_argnums=0, budget=500)   # searches at the first call
>>> step = xla_gym.jit(train_step, donate_argnums=0, recipe="step.json")   # does as the recipe says

The function is lowered by JAX, its passes are run by XLA Gym's engine, and what they leave is compiled
by jaxlib, with those passes of its own pipeline left out that the recipe replaces. Everything around
the program stays JAX's: arguments and results, donation, weak types, arguments that are not used.

jaxlib carries another version of XLA than the engine. What the engine promises therefore counts for
little here: before an optimised program is used, it and the plain one run on the actual arguments, and
their results are compared. Integers must agree bit for bit, floats up to rounding, which is measured:
by what one unit in the last place of the arguments, or another way to compile it, moves in the plain
program's results. If they differ, or
anything refuses before that, the function runs as plain ``jax.jit`` and says so once, with an
:class:`XlaGymWarning`. A compiler that aborts the process is beyond that: only what it reports can be
refused.

Zeros, constants and NaN prove nothing, however well they agree. Until calls came whose results do prove
something, for every result that is no single integer, a function is *unverified*, and its calls give the
plain program's results. Later, one call in 1000 (``recheck``) is compared again; a difference ends the use
of the optimised program for good. ``verified``, ``stats`` and ``report()`` say how it stands.

Ctrl-C during the search of a first call ends the search, not the call, which goes on with the best so far;
a second Ctrl-C ends the call, and the next one searches again.

To put a program back into JAX's hands takes attributes that JAX calls private. Tried with jax 0.10.2,
0.7.2 and 0.6.2; 0.5.3 has no way from HLO to StableHLO and falls back. The warning names the version.
Programs for other than one CPU device fall back, because recipes replace passes of XLA's CPU pipeline.
"""

from __future__ import annotations

import functools
import inspect
import itertools
import json
import os
import threading
import time
import types
import warnings
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import xla_gym

try:
    import jax
except ImportError as error:
    raise ImportError("xla_gym.jax needs JAX: pip install 'xla-gym[jax]'") from error

from xla_gym._jax_calls import Calls
from xla_gym._jax_programs import (
    Refused,
    again,
    hlo_of,
    private,
    refuse_devices,
    refuse_donation,
    refuse_effects,
    replaced,
)
from xla_gym._jax_results import check, is_flag, moved, outputs, tells
from xla_gym._optimize import verdict_of
from xla_gym._timing import Comparison, Series, compare

__all__ = ["Compiled", "Comparison", "Jitted", "Series", "Stats", "XlaGymWarning", "compile", "jit"]

# After so many calls without proof, somebody should be told.
_LONG = 100
_DISABLE = "xla_disable_hlo_passes"


class XlaGymWarning(UserWarning):
    """A function runs as plain ``jax.jit``, and why."""


@dataclass
class Stats:
    """What happened to a function for one signature. Times in seconds; ``None``: it did not come to that."""

    chosen: str = "plain"
    """What runs: ``plain`` or ``optimised``."""
    status: str = "unverified"
    """``unverified``: nothing was proven yet; ``verified``; ``plain``: it stays plain."""
    reason: str | None = None
    """Why it is the plain one."""
    lower: float = 0.0
    """Tracing and lowering, by JAX."""
    optimise: float | None = None
    """The search, or the passes of the recipe."""
    compile_plain: float | None = None
    """jaxlib's compilation of the plain program. The first one in a process also pays for start-up."""
    compile_optimised: float | None = None
    difference: float | None = None
    """The largest difference of results, in units of what is rounding: up to 1."""
    checks: int = 0
    """How often results were compared."""
    verify: float | None = None
    """All comparisons, with the runs that measure rounding."""
    timing: Comparison | None = None
    """Run times, if ``rounds`` asked for them."""


@dataclass(frozen=True)
class _Settings:
    """How to optimise."""

    recipe: dict[str, Any] | None
    force: bool
    search: dict[str, Any]
    rounds: int
    every: int
    """Which calls are compared again; 0: none."""


def _optimize(program: bytes, settings: _Settings) -> tuple[dict[str, Any], bytes]:
    """A recipe for a program, and the program after its passes."""
    if settings.recipe is not None:
        verdict = verdict_of(settings.recipe)
        if not settings.search["unproven"] and verdict not in (None, "equal"):
            raise Refused(f"the recipe is not proven ({verdict}); unproven=True uses it all the same")
        done = xla_gym.apply_recipe(settings.recipe, program, force=settings.force)
        return settings.recipe, done
    found = xla_gym.optimize(program, **settings.search)
    return found.recipe, found.program


class Compiled:
    """A function for one signature; made by :func:`compile` or :meth:`Jitted.compiled`.

    ``recipe`` is what was done, ``hlo`` the serialised program after it, ``stats`` the times.
    """

    def __init__(
        self, calls: Calls, key: Hashable, settings: _Settings, args: Any, kwargs: Any, warn: Any
    ) -> None:
        self._calls, self._key, self._settings, self._warn = calls, key, settings, warn
        self._lock = threading.RLock()
        self._numbers = itertools.count(1)
        self._waiting: set[str] | None = None
        self.recipe: dict[str, Any] | None = None
        self.hlo: bytes | None = None
        self.stats = Stats()
        # What fails from here on would fail in jax.jit as well, and is said in JAX's words.
        start = time.perf_counter()
        traced = calls.jitted.trace(*args, **kwargs)
        self._lowered = traced.lower()
        self.stats.lower = time.perf_counter() - start
        self._donated = [info.donated for info in jax.tree_util.tree_leaves(self._lowered.args_info)]
        self._optimised_lowered: Any = None
        self.plain: Any = None
        self.optimised: Any = None
        self._otherwise: Any = None
        self._guard(self._prepare, traced)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the function; static arguments are given as always."""
        key = self._calls.signature(args, kwargs)
        if key is None:
            return self._calls.jitted(*args, **kwargs)
        if key != self._key:
            raise TypeError(
                f"{self._calls.name} was compiled for another signature; xla_gym.jit compiles for each"
            )
        return self.call(args, kwargs)

    def call(self, args: Any, kwargs: Any) -> Any:
        """Runs the function on arguments whose signature is known to be right."""
        status = self.stats.status
        if status == "plain":
            return self._calls.jitted(*args, **kwargs)
        data, named, _ = self._calls.split(args, kwargs)
        number, every = next(self._numbers), self._settings.every
        if status == "unverified":
            return self._call_unverified(number, data, named)
        if every and number % every == 0:
            return self._call_again(data, named)
        return self.optimised(*data, **named)

    def _call_unverified(self, number: int, data: Any, named: Any) -> Any:
        kept = self._guard(self._spared, data, named)
        result = self.plain(*data, **named)
        if kept is not None:
            self._guard(self._verify, kept, result)
        if number == _LONG and self.stats.status == "unverified":
            said = f"{self._calls.name} runs as plain jax.jit after {number} calls: {self.stats.reason}"
            self._warn(f"{said}; unproven=True would do with less")
        return result

    def _call_again(self, data: Any, named: Any) -> Any:
        kept = self._guard(self._spared, data, named)
        theirs = None if kept is None else self._guard(self._apply, self.plain, *kept)
        if theirs is None:
            return self.plain(*data, **named)
        ours = self.optimised(*data, **named)
        self._guard(self._compare, kept, theirs, ours)
        return ours if self.verified else theirs

    @property
    def verified(self) -> bool:
        """Whether results that prove something agreed, and none disagreed since."""
        return self.stats.status == "verified"

    def verify(self, *args: Any, **kwargs: Any) -> bool:
        """Compares the results of both programs on these arguments, unless they are verified; calls do."""
        if self.stats.status == "unverified":
            kept = self._guard(self._spared, *self._calls.split(args, kwargs)[:2])
            plain = None if kept is None else self._guard(self._apply, self.plain, *kept)
            if plain is not None:
                self._guard(self._verify, kept, plain)
        return self.verified

    def _guard(self, step: Callable[..., Any], *arguments: Any) -> Any:
        """Takes a step towards the optimised program; whatever refuses leaves the plain one."""
        try:
            return step(*arguments)
        except xla_gym.ConfigError:
            raise  # A mistake in the settings is not to be smoothed over.
        except Exception as error:
            reason = str(error) if isinstance(error, Refused) else f"{type(error).__name__}: {error}"
            self._stay_plain(reason)
            self._warn(f"{self._calls.name} runs as plain jax.jit (jax {jax.__version__}): {reason}")
            return None

    def _stay_plain(self, reason: str) -> None:
        self.stats.chosen, self.stats.status, self.stats.reason = "plain", "plain", reason

    def _prepare(self, traced: Any) -> None:
        refuse_effects(traced, self._lowered)
        program = private("the HLO of a lowered function", hlo_of, self._lowered)
        start = time.perf_counter()
        self.plain = self._lowered.compile()
        self.stats.compile_plain = time.perf_counter() - start
        refuse_devices(self.plain)
        start = time.perf_counter()
        self.recipe, self.hlo = _optimize(program, self._settings)
        self.stats.optimise = time.perf_counter() - start
        if not self.recipe["passes"] and not self.recipe["disabled_passes"]:
            # Nothing was refused: the search knows of nothing better.
            self._stay_plain("XLA's own order is the best known")
            return
        self._optimised_lowered = replaced(self._lowered, self.hlo)
        start = time.perf_counter()
        self.optimised = self._optimised_lowered.compile(self._compiler_options())
        self.stats.compile_optimised = time.perf_counter() - start
        refuse_donation(self._lowered, self._optimised_lowered, self.plain, self.optimised)
        self.stats.reason = "nothing was compared yet"

    def _compiler_options(self) -> dict[str, Any]:
        mine = self.recipe["disabled_passes"] if self.recipe else []
        theirs = str(self._calls.options.get(_DISABLE, "")).split(",")
        return {_DISABLE: ",".join(dict.fromkeys(filter(None, [*theirs, *mine])))}

    def _verify(self, kept: Any, plain: Any) -> None:
        """Compares where that may prove something; the first time it does so in any case."""
        with self._lock:
            if self.stats.status != "unverified":
                return
            results = {name: values for name, values in outputs(plain).items() if values.size}
            if self._waiting is not None and not any(tells(results[name]) for name in self._waiting):
                return
            silent = self._compare(kept, plain, self._apply(self.optimised, *kept))
            self._waiting = silent if self._waiting is None else self._waiting & silent
            # Nobody waits for a flag, unless there is nothing else.
            missing = {name for name in self._waiting if not is_flag(results[name])}
            strict = not self._settings.search["unproven"]
            if (strict and missing) or (results and self._waiting == set(results)):
                names = ", ".join(sorted(missing or self._waiting))
                self.stats.reason = f"{names}: zero, constant or not finite so far, which proves nothing"
                return
            if self._settings.rounds:
                data, named = kept
                timing = self.stats.timing = self._timed(data, named, self._settings.rounds)
                if timing.speedup < 1 and not timing.within_noise:
                    raise Refused(f"the optimised program is slower here: {timing}")
            self.stats.chosen, self.stats.status, self.stats.reason = "optimised", "verified", None

    def _compare(self, kept: Any, plain: Any, optimised: Any) -> set[str]:
        """Refuses results that differ; the names of those that prove nothing."""
        start = time.perf_counter()
        self.stats.checks += 1
        checked = check(plain, optimised, lambda seed: self._rerun(seed, kept))
        self.stats.difference = max(self.stats.difference or 0.0, checked.difference)
        self.stats.verify = (self.stats.verify or 0.0) + time.perf_counter() - start
        return set(checked.silent)

    def _rerun(self, seed: int, kept: Any) -> Any:
        """Runs the plain program on arguments that are moved a little, by turns in two ways.

        As it is, and compiled with every conversion in its place and without the passes that the recipe
        replaces: what XLA is free to do moves results as well.
        """
        if self._otherwise is None:
            options = {"xla_allow_excess_precision": False} | self._compiler_options()
            self._otherwise = again(self._lowered).compile(options)
        return self._apply(self._otherwise if seed % 2 else self.plain, *moved(kept, seed))

    def _spared(self, data: Any, named: Any) -> tuple[Any, Any]:
        """The arguments, with copies for those that a run would use up."""
        leaves, tree = jax.tree_util.tree_flatten((data, named))
        pairs = zip(leaves, self._donated, strict=True)
        kept = [jax.numpy.copy(x) if given and isinstance(x, jax.Array) else x for x, given in pairs]
        return jax.block_until_ready(jax.tree_util.tree_unflatten(tree, kept))

    def _apply(self, run: Callable[..., Any], data: Any, named: Any) -> Any:
        data, named = self._spared(data, named)
        return jax.block_until_ready(run(*data, **named))

    def _timed(self, data: Any, named: Any, rounds: int) -> Comparison:
        control = again(self._lowered).compile()
        donates = any(self._donated)

        def once(run: Callable[..., Any], repeats: int) -> float:
            ready = [self._spared(data, named) for _ in range(repeats)] if donates else None
            start = time.perf_counter()
            for i in range(repeats):
                given, by_name = ready[i] if ready else (data, named)
                jax.block_until_ready(run(*given, **by_name))
            return (time.perf_counter() - start) / repeats

        for run in (self.optimised, control, self.plain):
            first = min(once(run, 1), once(run, 1))
        # Long enough for the clock; fewer where each run needs copies, which stand in memory meanwhile.
        repeats = int(np.clip(2e-3 / first, 1, 8 if donates else 1000))
        return compare(
            [functools.partial(once, run, repeats) for run in (self.plain, self.optimised, control)], rounds
        )

    def benchmark(self, *args: Any, rounds: int = 30, **kwargs: Any) -> Comparison:
        """Times both programs in turn, with a second plain one as the control."""
        self._need_both()
        data, named, _ = self._calls.split(args, kwargs)
        return self._timed(data, named, rounds)

    def benchmark_compile(self, rounds: int = 5) -> Comparison:
        """Times jaxlib's compilation of both programs in turn; nothing of the search is in it."""
        self._need_both()
        options = self._compiler_options()

        def once(lowered: Any, options: dict[str, Any] | None) -> float:
            fresh = again(lowered)  # JAX remembers what it compiled for a module.
            start = time.perf_counter()
            fresh.compile(options)
            return time.perf_counter() - start

        lowered = [(self._lowered, None), (self._optimised_lowered, options), (self._lowered, None)]
        return compare([functools.partial(once, *each) for each in lowered], rounds)

    def _need_both(self) -> None:
        if self.optimised is None:
            raise ValueError(f"{self._calls.name} has no optimised program: {self.stats.reason}")

    def report(self) -> str:
        """What happened, in a few lines."""
        stats = self.stats
        lines = [f"{self._calls.name}: {stats.chosen}" + (f" ({stats.reason})" if stats.reason else "")]
        if stats.status == "unverified":
            lines[0] += ", unverified"
        if self.recipe is not None:
            lines.append(
                f"  recipe: {len(self.recipe['passes'])} passes, "
                f"{len(self.recipe['disabled_passes'])} of XLA's left out"
            )
        times = {"lower": stats.lower, "optimise": stats.optimise, "compile plain": stats.compile_plain}
        times |= {"compile optimised": stats.compile_optimised, "verify": stats.verify}
        lines.append("  " + ", ".join(f"{k} {v:.3f} s" for k, v in times.items() if v is not None))
        if stats.difference is not None:
            often = f"{stats.checks} time{'s' if stats.checks > 1 else ''}"
            lines.append(f"  compared {often}: differences up to {stats.difference:.1e} of what is rounding")
        if stats.timing is not None:
            lines.append(f"  run time: {stats.timing}")
        return "\n".join(lines)


class Jitted:
    """A function that is optimised for each signature that it is called with; made by :func:`jit`."""

    def __init__(self, fn: Callable[..., Any], settings: _Settings, options: Mapping[str, Any]) -> None:
        functools.update_wrapper(self, fn)
        self._calls, self._settings = Calls(fn, options), settings
        self._known: dict[Hashable, Compiled] = {}
        self._warned: set[str] = set()
        self._lock = threading.RLock()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the function; optimises it before, if the signature is new."""
        key = self._calls.signature(args, kwargs)
        if key is None:
            return self._calls.jitted(*args, **kwargs)
        known = self._known.get(key) or self._make(key, args, kwargs)
        return known.call(args, kwargs)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    def _make(self, key: Hashable, args: Any, kwargs: Any) -> Compiled:
        with self._lock:
            if key not in self._known:
                self._known[key] = Compiled(self._calls, key, self._settings, args, kwargs, self._warn)
            return self._known[key]

    def _warn(self, text: str) -> None:
        # Once is enough, however many signatures share a reason.
        if text not in self._warned:
            self._warned.add(text)
            warnings.warn(text, XlaGymWarning, stacklevel=_outside())

    def compiled(self, *args: Any, **kwargs: Any) -> Compiled:
        """The function for the signature of these arguments, or of ``jax.ShapeDtypeStruct`` for them."""
        key = self._calls.signature(args, kwargs)
        if key is None:
            raise TypeError(f"{self._calls.name} cannot be compiled inside a transformation")
        return self._known.get(key) or self._make(key, args, kwargs)

    def lower(self, *args: Any, **kwargs: Any) -> Any:
        """What ``jax.jit(fn).lower`` gives: the plain program."""
        return self._calls.jitted.lower(*args, **kwargs)

    def benchmark(self, *args: Any, rounds: int = 30, **kwargs: Any) -> Comparison:
        """As :meth:`Compiled.benchmark`, for the signature of the arguments."""
        return self.compiled(*args, **kwargs).benchmark(*args, rounds=rounds, **kwargs)

    @property
    def verified(self) -> bool:
        """Whether it was called, and the optimised program runs for every signature that came."""
        return bool(self._known) and all(known.verified for known in self._known.values())

    @property
    def stats(self) -> list[Stats]:
        """What happened, for each signature in the order of their first calls."""
        return [known.stats for known in self._known.values()]

    def report(self) -> str:
        """What happened, in a few lines for each signature."""
        return "\n".join(known.report() for known in self._known.values())

    def clear_cache(self) -> None:
        """Forgets all signatures."""
        self._known.clear()


def jit(
    fn: Callable[..., Any] | None = None,
    *,
    recipe: Mapping[str, Any] | str | os.PathLike[str] | None = None,
    force: bool = False,
    budget: int | None = None,
    seconds: float | None = None,
    objective: str = "legal",
    method: str = "evolve",
    seed: int = 0,
    store: str | os.PathLike[str] | None = None,
    rounds: int = 0,
    recheck: float = 1e-3,
    unproven: bool = False,
    **jit_options: Any,
) -> Any:
    """``jax.jit`` with the passes of XLA in a better order. Also a decorator.

    Args:
        fn: the function, not yet jitted.
        recipe: what to do with the program, or the file that says so. Without one there is a search.
        force: whether to use the recipe also for another program than the one that it was made for.
        budget: passes that the search may try.
        seconds: how long it may take.
        objective: what is to become small.
        method: how to search.
        seed: its luck.
        store: where the best that is known is kept.
        rounds: how often to time both programs once they are verified; the slower one is not used. 0: never.
        recheck: the share of later calls whose results are compared again: of every signature each 1000th,
            say. Such a call takes at least two runs, and copies of what is donated. 0: none.
        unproven: whether to use also what the search, or whoever made the recipe, could not prove, and what
            is verified for some results only, because others are constant. All must agree nevertheless.
        **jit_options: those of ``jax.jit``: ``static_argnums``, ``donate_argnums`` and so on.

    """
    if recipe is not None and (budget is not None or seconds is not None):
        raise ValueError("recipe leaves nothing to search for: give it, or a budget")
    if not 0 <= recheck <= 1:
        raise ValueError(f"recheck is a share of calls, from 0 to 1, not {recheck}")
    search: dict[str, Any] = {"objective": objective, "method": method, "seed": seed, "seconds": seconds}
    search |= {"store": store, "unproven": unproven} | ({} if budget is None else {"budget": budget})
    if isinstance(recipe, str | os.PathLike):
        recipe = dict(json.loads(Path(recipe).read_text()))
    every = round(1 / recheck) if recheck else 0
    settings = _Settings(None if recipe is None else dict(recipe), force, search, rounds, every)
    if fn is None:
        return lambda function: Jitted(function, settings, jit_options)
    return Jitted(fn, settings, jit_options)


def compile(
    fn: Callable[..., Any], *args: Any, kwargs: Mapping[str, Any] | None = None, **options: Any
) -> Compiled:
    """A function compiled now, for the signature of these arguments.

    They may be ``jax.ShapeDtypeStruct``: then results are compared at the first call. ``kwargs`` are
    keyword arguments of ``fn``; ``options`` those of :func:`jit`.
    """
    named = dict(kwargs or {})
    compiled: Compiled = jit(fn, **options).compiled(*args, **named)
    leaves = jax.tree_util.tree_leaves((args, named))
    if not any(isinstance(leaf, jax.ShapeDtypeStruct) for leaf in leaves):
        compiled.verify(*args, **named)
    return compiled


def _outside() -> int:
    """The level of the stack at which the caller of this module stands, for warnings."""
    level, frame = 1, inspect.currentframe()
    frame = frame.f_back if frame else None
    while frame is not None and frame.f_code.co_filename == __file__:
        level, frame = level + 1, frame.f_back
    return level
