"""What the tests share: a state folder of their own, ways to make environments, small graphs."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

# Before anything reads it: tests must neither see nor leave what earlier runs remembered.
os.environ["XLA_GYM_STATE_DIR"] = tempfile.mkdtemp(prefix="xla-gym-tests-")

import gymnasium as gym  # noqa: E402
import numpy as np  # noqa: E402
import pytest  # noqa: E402

import xla_gym  # noqa: E402

SLOW = os.environ.get("XLA_GYM_SLOW") == "1"

SMALL = [
    "hlo-v1/sorting/quantiles",
    "hlo-v1/sorting/histogram",
    "hlo-v1/mlp/nerf-forward",
    "hlo-v1/gpt2/forward-1l",
]

# Programs of the toy compiler.
TOY = sorted(map(str, (Path(__file__).parents[2] / "testdata" / "toy").glob("*.toy")))

# As emitted, `scatter_simplifier` aborts the compiler on this one.
ABORTING = "hlo-v1/gpt2/train-1l-adamw"


@pytest.fixture
def make():
    """``gymnasium.make`` on small graphs; whatever it made is closed afterwards."""
    made = []

    def make_env(name: str = "xla-v0", **kwargs):
        kwargs.setdefault("benchmark_locs", SMALL)
        kwargs.setdefault("traj_limit", 20)
        made.append(gym.make(name, **kwargs))
        return made[-1]

    yield make_env
    for env in made:
        env.close()


@pytest.fixture
def make_vec():
    """``gymnasium.make_vec`` on small graphs; whatever it made is closed afterwards."""
    made = []

    def make_envs(num_envs: int, name: str = "xla-v0", **kwargs):
        kwargs.setdefault("benchmark_locs", SMALL)
        kwargs.setdefault("traj_limit", 20)
        made.append(gym.make_vec(name, num_envs, vectorization_mode="vector_entry_point", **kwargs))
        return made[-1]

    yield make_envs
    for envs in made:
        envs.close()


@pytest.fixture
def python():
    """Runs Python code in another process; returns what it printed, or fails with its errors."""

    def run(code: str, *arguments: str, **environment: str) -> str:
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", code, *arguments],
            env={**os.environ, **environment},
            # Not here: Python would take the package's sources for the installed package.
            cwd=tempfile.gettempdir(),
            capture_output=True,
            text=True,
            # Against hanging; a busy machine may take its time.
            timeout=600,
        )
        assert done.returncode == 0, f"{done.returncode}: {done.stderr}"
        return done.stdout

    return run


def random_actions(env: gym.Env, count: int, seed: int = 0) -> list[int]:
    """Actions that are the same in every run."""
    generator = np.random.default_rng(seed)
    return generator.integers(env.action_space.n, size=count).tolist()


def same(one: object, other: object) -> bool:
    """Whether two values of Gymnasium are equal, arrays inside them included."""
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, np.ndarray):
        return np.array_equal(one, other)
    return one == other


def rollout(env: gym.Env, actions: list[int], seed: int | None = 0) -> list[tuple]:
    """Everything that an environment says while it takes these actions, over as many episodes."""
    said: list[tuple] = [env.reset(seed=seed)]
    for action in actions:
        said.append(env.step(action))
        if said[-1][2] or said[-1][3]:
            said.append(env.reset())
    return said


def index_of(env: gym.Env, name: str) -> int:
    """The action of a pass."""
    return env.unwrapped.actions.index(name)


__all__ = ["ABORTING", "SLOW", "SMALL", "TOY", "index_of", "random_actions", "rollout", "same", "xla_gym"]
