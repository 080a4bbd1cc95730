"""The best pass order for a program, from Python.

>>> import xla_gym
>>> found = xla_gym.optimize("model.hlo", budget=2000)
>>> found.recipe["passes"], found.recipe["disabled_passes"], found.recipe["gain"]
>>> found.save("recipe.json")
>>> hlo = xla_gym.apply_recipe("recipe.json", "model.hlo")

The same as ``xla-gym optimize`` and ``xla-gym apply``: the answer is never worse than the compiler's own
order by the objective, and is verified, compiled and run beside the original before it is given. Where that
cannot be done, the compiler's own order is the answer. Which compiler is meant, the file's ending says, or
``engine``; XLA if neither does.

Ctrl-C ends a search, not the call: the best so far is proven and returned, with a warning at once that this
is being done. A second Ctrl-C raises ``KeyboardInterrupt``.
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from xla_gym import _native
from xla_gym.data import Program

__all__ = ["Optimized", "Stage", "apply_recipe", "optimize"]


class Stage(NamedTuple):
    """What a result is worth at a stage: at the end of the order, say, or in the final program."""

    initial: int
    """Without any passes."""
    default: int
    """By the compiler's own."""
    result: int
    """By what was found."""
    value: float | None
    """How the result compares; above 1 is better. None where that means nothing."""


@dataclass(frozen=True)
class Optimized:
    """What was found for a program."""

    recipe: dict[str, Any]
    """What to do, and what speaks for it; as ``xla-gym optimize --recipe`` writes it."""
    program: bytes = field(repr=False)
    """The program after the passes, in the compiler's binary form: of XLA a serialised HloModuleProto."""
    html: str | None = field(default=None, repr=False)
    """The report, if it was asked for."""
    interrupted: bool = False
    """Whether Ctrl-C ended the search: more might have been found."""
    commands: Mapping[str, str] = field(default_factory=dict, repr=False)
    """How the compiler's own tools do the same: what each line does, and the line for a shell."""

    @property
    def hlo(self) -> bytes:
        """The program after the passes, as it was called when XLA was the only compiler."""
        return self.program

    @property
    def stages(self) -> dict[str, Stage]:
        """What the result is worth, stage by stage: of XLA ``order``, ``legal`` and ``kernels``."""
        found = self.recipe["evidence"]["stages"]
        return {stage["stage"]: Stage(*(stage[name] for name in Stage._fields)) for stage in found}

    @property
    def figures(self) -> dict[str, tuple[float, float]]:
        """Figures of the final program by name, as far as they are known: default and result."""
        return {name: (pair[0], pair[1]) for name, pair in self.recipe["evidence"]["figures"].items()}

    @property
    def is_default(self) -> bool:
        """Whether nothing better than the compiler's own order was found."""
        return not self.recipe["passes"] and not self.recipe["disabled_passes"]

    @property
    def proven(self) -> bool:
        """Whether the result was run beside the original and computed the same, or is the default."""
        return self.is_default or verdict_of(self.recipe) == "equal"

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the recipe."""
        Path(path).write_text(json.dumps(self.recipe, indent=2) + "\n")


def verdict_of(recipe: Mapping[str, Any]) -> str | None:
    """What came of running both programs, if a recipe says so."""
    outputs = (recipe.get("evidence") or {}).get("outputs") or {}
    return outputs.get("verdict")


def _engine_of(program: bytes | str | os.PathLike[str] | Program) -> str:
    """The compiler that a program is for, by its name."""
    if isinstance(program, bytes):
        return _native.engines()[0]
    return _native.engine_of(program.name if isinstance(program, Program) else os.fspath(program))


def _one_program(
    program: bytes | str | os.PathLike[str] | Program, engine: str, start: str | None
) -> _native.World:
    # Only here: `python -m xla_gym.engine` must find that module not imported yet.
    from xla_gym import _world

    if isinstance(program, bytes):
        program = Program("program", program)
    location = program if isinstance(program, Program) else os.fspath(program)
    world = _world.world(
        [location],
        engine=engine,
        start=start,
        passes=None,
        cache=None,
        cache_memory=256 << 20,
        pass_limit=30.0,
        memory_limit=None,
        remember_failures=True,
    )
    if len(world.benchmarks) != 1:
        raise _native.ConfigError(f"{location} stands for {len(world.benchmarks)} programs; name one")
    return world


def optimize(
    program: bytes | str | os.PathLike[str] | Program,
    *,
    engine: str | None = None,
    objective: str | None = None,
    method: str = "evolve",
    budget: int | None = None,
    seconds: float | None = None,
    seed: int = 0,
    trials: int = 8,
    coreset: bool = True,
    policy: str | os.PathLike[str] | None = "usual",
    measure: float | None = None,
    start: str | None = None,
    normalise: bool | None = None,
    store: str | os.PathLike[str] | None = None,
    report: bool = False,
    memory_growth: float = 1.1,
    unproven: bool = False,
) -> Optimized:
    """Finds the best pass order for a program.

    Args:
        program: A program as bytes (for XLA HLO text, a serialised HloModuleProto or StableHLO); a file; an
            id of the data set; or a :class:`xla_gym.data.Program`, for example of
            :func:`xla_gym.data.from_jax`.
        engine: For which compiler: ``xla``, ``toy``. None: by the ending of the file, else XLA.
        objective: ``run-time``, ``compile-time``, or what is counted. Of XLA: ``operations`` (at the end of
            the order), ``legal`` (operations before layout assignment), ``kernels``, ``flops``, ``bytes``,
            ``memory`` (what the final program needs beside inputs and outputs). Or a weighted sum
            (``0.7*kernels+0.3*bytes``); or several with commas, of which the best compromise is taken. None:
            what is usual for the compiler, of XLA ``legal``.
        method: ``random``, ``greedy``, ``beam``, ``mcts``, ``evolve`` or ``coreset``.
        budget: Runs of passes, at most; 2000 if neither this nor ``seconds`` is given.
        seconds: Seconds for everything together, proof included. With it, results depend on the machine. If
            neither is given, large programs get 240, or 480 if the compiler's pipeline takes long on them.
        seed: Seed of the search and of the inputs.
        trials: Sets of inputs on which outputs are compared.
        coreset: Whether orders that did well on other programs are tried first.
        policy: A trained policy that guides the search: one that comes along for the compiler (of XLA
            ``general`` and ``gpt2``), a file that ``xla-gym train`` wrote, or None. ``usual``: of XLA
            ``general``, of others none.
        measure: Measure run time and compile time beside the compiler's own, for so many seconds.
        start: Where the order begins: ``emitted``, the program as it came; of XLA also ``normalized``, on
            which passes rarely crash, and ``legal``, after what its pipeline needs in any case.
        normalise: An old way to say ``start="normalized"``.
        store: A store of recipes, consulted first and given the result.
        report: Whether to explain the result in an HTML page (``html``).
        memory_growth: By which factor the memory that the final program needs may grow, where it is not the
            objective.
        unproven: Whether to answer also with what cannot be run beside the original, because it needs
            several devices or random numbers of its own, say; ``proven`` is False then.

    """
    from xla_gym import _world

    start = _world.start_of(start, normalise, stacklevel=2)
    world = _one_program(program, engine or _engine_of(program), start)
    recipe, after, html, interrupted, commands = _native.optimize_benchmark(
        world,
        0,
        objective=objective,
        method=method,
        budget=budget,
        seconds=seconds,
        seed=seed,
        trials=trials,
        coreset=coreset,
        policy=None if policy is None else os.fspath(policy),
        measure=measure,
        store=None if store is None else os.fspath(store),
        report=report,
        memory_growth=memory_growth,
        unproven=unproven,
    )
    return Optimized(json.loads(recipe), after, html, interrupted, dict(commands))


def apply_recipe(
    recipe: Mapping[str, Any] | str | os.PathLike[str],
    program: bytes | str | os.PathLike[str] | Program,
    *,
    engine: str | None = None,
    force: bool = False,
) -> bytes:
    """The program after the passes of a recipe, in the compiler's binary form.

    ``recipe`` is a file or what :func:`optimize` gave, also in earlier versions. The program has to be the
    one that the recipe was made for, or :class:`xla_gym.RecipeMismatch` is raised, unless ``force`` says that
    it does not matter. The recipe says for which compiler it is, if ``engine`` does not.
    The passes that the recipe replaces (``disabled_passes``) are still to be told to the compiler.
    """
    if isinstance(recipe, Mapping):
        text = _native.read_recipe(json.dumps(dict(recipe)))
    else:
        path = Path(recipe)
        try:
            text = _native.read_recipe(path.read_text())
        except (OSError, ValueError, _native.ConfigError) as error:
            raise _native.ConfigError(f"{path} cannot be read as a recipe: {error}") from error
    known = json.loads(text)
    # The compiler's name, then its version.
    world = _one_program(program, engine or known["engine"].partition(" ")[0], known["start"])
    after, problems = _native.apply_recipe(world, 0, text, force)
    for problem in problems:
        warnings.warn(problem, stacklevel=2)
    return after
