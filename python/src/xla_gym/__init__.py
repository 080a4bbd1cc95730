"""Learn in which order a compiler's passes should run, on the real XLA.

>>> import gymnasium, xla_gym
>>> env = gymnasium.make("xla-v0", benchmark_locs=["hlo-v1/gpt2/*"], traj_limit=40)

Environments: ``xla-v0`` (opcode counts, the paper's reward), ``xla-v1`` (shaped reward), ``xla-v2``
(cost features beside the counts) and ``xla-graph-v0`` (the program as a graph). They are described
in :mod:`xla_gym.envs`; the benchmark graphs in :mod:`xla_gym.data`; where the compiler comes from in
:mod:`xla_gym.engine`.
"""

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
    StateError,
    UnknownPassError,
    XlaGymError,
    __version__,
)
from xla_gym._register import register

__all__ = [
    "BenchmarkNotFoundError",
    "CacheError",
    "CompilerError",
    "ConfigError",
    "EngineNotFoundError",
    "ForkedError",
    "NotRunningError",
    "ProgramError",
    "StateError",
    "UnknownPassError",
    "XlaGymError",
    "__version__",
    "data",
    "register",
]

# Gymnasium 1 no longer follows entry points: whoever imports this module has the environments.
register()
