"""XLA Gym inside JAX: ``xla_gym.jit`` where ``jax.jit`` stood.

>>> import xla_gym
>>> step = xla_gym.jit(train_step, donate_argnums=0, budget=500)   # searches at the first call
>>> step = xla_gym.jit(train_step, donate_argnums=0, recipe="step.json")   # does as the recipe says

The function is lowered by JAX, its passes are run by XLA Gym's engine, and what they leave is compiled
by jaxlib, with those passes of its own pipeline left out that the recipe replaces. Everything around
the program stays JAX's: arguments and results, donation, weak types, arguments that are not used.

jaxlib carries another version of XLA than the engine. What the engine promises therefore counts for
little here: before an optimised program is used, it and the plain one run on the actual arguments, and
their results are compared. If they differ, or anything refuses before that, the function runs as plain
``jax.jit`` and says so once, with an :class:`XlaGymWarning`. A compiler that aborts the process is
beyond that: only what it reports can be refused.

To put a program back into JAX's hands takes attributes that JAX calls private. Tried with jax 0.10.2,
0.7.2 and 0.6.2; 0.5.3 has no way from HLO to StableHLO and falls back. The warning names the version.
Programs for other than one CPU device fall back, because recipes replace passes of XLA's CPU pipeline.
"""

from __future__ import annotations

import functools
import inspect
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

from xla_gym._jax_programs import Refused, again, hlo_of, private, refuse_devices, refuse_effects, replaced
from xla_gym._timing import Comparison, Series, compare

__all__ = ["Compiled", "Comparison", "Jitted", "Series", "Stats", "XlaGymWarning", "compile", "jit"]

# Differences that are rounding, as a share of the largest magnitude, by the bits of a float.
_TOLERANCE = {64: 1e-9, 32: 1e-4, 16: 2e-2, 8: 0.25}
_DISABLE = "xla_disable_hlo_passes"


class XlaGymWarning(UserWarning):
    """A function runs as plain ``jax.jit``, and why."""


@dataclass
class Stats:
    """What happened to a function for one signature. Times in seconds; ``None``: it did not come to that."""

    chosen: str = "plain"
    """What runs: ``plain`` or ``optimised``."""
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
    """The largest difference of results, as a share of the largest magnitude."""
    verify: float | None = None
    """The comparison: a run of each, and copies of what is donated."""
    timing: Comparison | None = None
    """Run times, if ``rounds`` asked for them."""


@dataclass(frozen=True)
class _Settings:
    """How to optimise."""

    recipe: dict[str, Any] | None
    force: bool
    search: dict[str, Any]
    rounds: int


def _optimize(program: bytes, settings: _Settings) -> tuple[dict[str, Any], bytes]:
    """A recipe for a program, and the program after its passes."""
    if settings.recipe is not None:
        done = xla_gym.apply_recipe(settings.recipe, program, force=settings.force)
        return settings.recipe, done
    found = xla_gym.optimize(program, **settings.search)
    return found.recipe, found.hlo


class _Calls:
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


class Compiled:
    """A function for one signature; made by :func:`compile` or :meth:`Jitted.compiled`.

    ``recipe`` is what was done, ``hlo`` the serialised program after it, ``stats`` the times.
    """

    def __init__(
        self, calls: _Calls, key: Hashable, settings: _Settings, args: Any, kwargs: Any, warn: Any
    ) -> None:
        self._calls, self._key, self._settings, self._warn = calls, key, settings, warn
        self._lock = threading.RLock()
        self._verified = False
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
        self._run: Callable[..., Any] | None = None
        self.plain: Any = None
        self.optimised: Any = None
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
        if not self._verified:
            self.verify(*args, **kwargs)
        if self._run is None:
            return self._calls.jitted(*args, **kwargs)
        data, named, _ = self._calls.split(args, kwargs)
        return self._run(*data, **named)

    def verify(self, *args: Any, **kwargs: Any) -> None:
        """Compares the results of both programs, unless that was done; the first call does."""
        with self._lock:
            if not self._verified:
                self._guard(self._verify, *self._calls.split(args, kwargs)[:2])
                self._verified = True

    def _guard(self, step: Callable[..., None], *arguments: Any) -> None:
        """Takes a step towards the optimised program; whatever refuses leaves the plain one."""
        try:
            step(*arguments)
        except xla_gym.ConfigError:
            raise  # A mistake in the settings is not to be smoothed over.
        except Exception as error:
            reason = str(error) if isinstance(error, Refused) else f"{type(error).__name__}: {error}"
            self._stay_plain(reason)
            self._warn(f"{self._calls.name} runs as plain jax.jit (jax {jax.__version__}): {reason}")

    def _stay_plain(self, reason: str) -> None:
        self._run, self._verified = None, True
        self.stats.chosen, self.stats.reason = "plain", reason

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

    def _compiler_options(self) -> dict[str, Any]:
        mine = self.recipe["disabled_passes"] if self.recipe else []
        theirs = str(self._calls.options.get(_DISABLE, "")).split(",")
        return {_DISABLE: ",".join(dict.fromkeys(filter(None, [*theirs, *mine])))}

    def _verify(self, data: Any, named: Any) -> None:
        if self.optimised is None:
            return
        start = time.perf_counter()
        plain, optimised = (self._apply(run, data, named) for run in (self.plain, self.optimised))
        self.stats.difference = _difference(plain, optimised)
        self.stats.verify = time.perf_counter() - start
        if self._settings.rounds:
            timing = self.stats.timing = self._timed(data, named, self._settings.rounds)
            if timing.speedup < 1 and not timing.within_noise:
                raise Refused(f"the optimised program is slower here: {timing}")
        self._run = self.optimised
        self.stats.chosen = "optimised"

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
        if self.recipe is not None:
            lines.append(
                f"  recipe: {len(self.recipe['passes'])} passes, "
                f"{len(self.recipe['disabled_passes'])} of XLA's left out"
            )
        times = {"lower": stats.lower, "optimise": stats.optimise, "compile plain": stats.compile_plain}
        times |= {"compile optimised": stats.compile_optimised, "verify": stats.verify}
        lines.append("  " + ", ".join(f"{k} {v:.3f} s" for k, v in times.items() if v is not None))
        if stats.difference is not None:
            lines.append(f"  largest difference of results: {stats.difference:.1e} of the magnitude")
        if stats.timing is not None:
            lines.append(f"  run time: {stats.timing}")
        return "\n".join(lines)


class Jitted:
    """A function that is optimised for each signature that it is called with; made by :func:`jit`."""

    def __init__(self, fn: Callable[..., Any], settings: _Settings, options: Mapping[str, Any]) -> None:
        functools.update_wrapper(self, fn)
        self._calls, self._settings = _Calls(fn, options), settings
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
        rounds: how often to time both programs at the first call; the slower one is not used. 0: never.
        **jit_options: those of ``jax.jit``: ``static_argnums``, ``donate_argnums`` and so on.

    """
    if recipe is not None and (budget is not None or seconds is not None):
        raise ValueError("recipe leaves nothing to search for: give it, or a budget")
    search: dict[str, Any] = {"objective": objective, "method": method, "seed": seed, "seconds": seconds}
    search |= {"store": store} | ({} if budget is None else {"budget": budget})
    if isinstance(recipe, str | os.PathLike):
        recipe = dict(json.loads(Path(recipe).read_text()))
    settings = _Settings(None if recipe is None else dict(recipe), force, search, rounds)
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


def _outside() -> int:
    """The level of the stack at which the caller of this module stands, for warnings."""
    level, frame = 1, inspect.currentframe()
    frame = frame.f_back if frame else None
    while frame is not None and frame.f_code.co_filename == __file__:
        level, frame = level + 1, frame.f_back
    return level


def _difference(plain: Any, optimised: Any) -> float:
    """The largest difference of results, as a share of the largest magnitude; refuses what is no rounding."""
    largest = 0.0
    named = jax.tree_util.tree_leaves_with_path(plain)
    for (path, one), other in zip(named, jax.tree_util.tree_leaves(optimised), strict=True):
        where = f"result{jax.tree_util.keystr(path)}"
        if (one.shape, one.dtype) != (other.shape, other.dtype):
            raise Refused(f"{where} is {other.dtype}{other.shape} instead of {one.dtype}{one.shape}")
        if jax.dtypes.issubdtype(one.dtype, jax.dtypes.prng_key):
            one, other = jax.random.key_data(one), jax.random.key_data(other)
        if not jax.numpy.issubdtype(one.dtype, jax.numpy.inexact):
            if not np.array_equal(np.asarray(one), np.asarray(other)):
                raise Refused(f"{where} differs from that of the plain program")
            continue
        wide = np.complex128 if jax.numpy.issubdtype(one.dtype, jax.numpy.complexfloating) else np.float64
        left, right = np.asarray(one).astype(wide), np.asarray(other).astype(wide)
        finite = np.isfinite(left)
        if not np.array_equal(left[~finite], right[~finite], equal_nan=True):
            raise Refused(f"{where} is not finite elsewhere than in the plain program")
        if not finite.any():
            continue
        distance = np.abs(left[finite] - right[finite]).max()
        magnitude = np.abs(left[finite]).max()
        # Not a number where the optimised result is none: no comparison holds then.
        share = float(distance / magnitude) if magnitude else (0.0 if distance == 0 else np.inf)
        tolerance = _TOLERANCE[max(8, jax.numpy.finfo(one.dtype).bits)]
        if not share <= tolerance:
            raise Refused(f"{where} differs by {share:.1e} of its magnitude; {tolerance:.0e} is rounding")
        largest = max(largest, share)
    return largest
