"""Learn in which order a compiler's passes should run, on real compilers.

>>> import gymnasium, xla_gym
>>> env = gymnasium.make("xla-v0", benchmark_locs=["hlo-v1/gpt2/*"], traj_limit=40)

Environments: ``xla-v0`` (opcode counts, the paper's reward), ``xla-shaped-v0`` (shaped reward; the paper's
``xla-v1``), ``xla-cost-v0`` (cost features beside the counts; the paper's ``xla-v2``) and ``xla-graph-v0``
(the program as a graph); ``toy-v0`` and so on for a toy compiler, which needs nothing to be fetched. They are
described in :mod:`xla_gym.envs`; the benchmark graphs in :mod:`xla_gym.data`; where compilers come from in
:mod:`xla_gym.engine`; ``xla_gym.jit``, for functions of JAX, in :mod:`xla_gym.jax`.
"""

import importlib
from typing import TYPE_CHECKING, Any

from xla_gym import data
from xla_gym._native import (
    BenchmarkNotFoundError,
    CacheError,
    CompilerError,
    ConfigError,
    EngineNotFoundError,
    ForkedError,
    NotRunningError,
    ProgramError,
    RecipeMismatch,
    StateError,
    UnknownPassError,
    XlaGymError,
    __version__,
)
from xla_gym._optimize import Optimized, Stage, apply_recipe, optimize
from xla_gym._register import register

if TYPE_CHECKING:
    from xla_gym.jax import XlaGymWarning as XlaGymWarning
    from xla_gym.jax import jit as jit

__all__ = [
    "BenchmarkNotFoundError",
    "CacheError",
    "CompilerError",
    "ConfigError",
    "EngineNotFoundError",
    "ForkedError",
    "NotRunningError",
    "Optimized",
    "ProgramError",
    "RecipeMismatch",
    "Stage",
    "StateError",
    "UnknownPassError",
    "XlaGymError",
    "__version__",
    "apply_recipe",
    "data",
    "optimize",
    "register",
]

# Gymnasium 1 no longer follows entry points: whoever imports this module has the environments.
register()


def __getattr__(name: str) -> Any:
    # Only who asks for it needs JAX, which takes a while to import.
    if name in {"XlaGymWarning", "jax", "jit"}:
        module = importlib.import_module("xla_gym.jax")
        return module if name == "jax" else getattr(module, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
