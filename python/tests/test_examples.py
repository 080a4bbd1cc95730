"""Every example runs, and says what it is for."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"
# What others import is no program.
MODULES = {"curve.py"}

SMALL = ["--benchmarks", "hlo-v1/sorting/quantiles", "hlo-v1/mlp/nerf-forward"]
BUDGETS = {
    "figure1.py": (["--traj-limit", "4"], r"operations became \d+; discounted return -\d"),
    "random_agent.py": (
        [*SMALL, "--episodes", "2", "--traj-limit", "5", "--masked"],
        r"2 episodes: mean return -\d",
    ),
    "sb3_ppo.py": (
        [*SMALL, "--steps", "60", "--n-steps", "30", "--batch-size", "10", "--traj-limit", "5"],
        r"seed 0: 12 episodes, mean return of the first 10 -\d",
    ),
    "sb3_maskable_ppo.py": (
        [*SMALL, "--steps", "60", "--n-steps", "30", "--batch-size", "10", "--traj-limit", "5"],
        r"12 episodes, mean return of the first 10 -\d",
    ),
    "cleanrl_ppo.py": (
        [*SMALL, "--steps", "64", "--num-envs", "2", "--rollout", "16", "--traj-limit", "5"],
        r"step 64: mean return of the last episodes -\d",
    ),
    "jax_jit.py": (
        ["--models", "mlp", "--budget", "20", "--rounds", "3", "--compile-rounds", "2"],
        r"mlp +(yes|plain)",
    ),
    "rllib_register.py": (
        [*SMALL, "--iterations", "1", "--steps", "40", "--traj-limit", "5"],
        r"iteration 0: -\d",
    ),
}
NEEDS = {"rllib_register.py": "ray", "sb3_ppo.py": "stable_baselines3", "cleanrl_ppo.py": "torch"}
NEEDS["sb3_maskable_ppo.py"] = "sb3_contrib"
NEEDS["jax_jit.py"] = "jax"


def run(example: str, *arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "ignore", str(EXAMPLES / example), *arguments],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "CUDA_VISIBLE_DEVICES": ""},
        cwd=cwd,
    )


def test_every_example_is_tested():
    assert {path.name for path in EXAMPLES.glob("*.py")} - MODULES == set(BUDGETS)


def skip_without_its_library(example: str) -> None:
    library = NEEDS.get(example)
    if library and importlib.util.find_spec(library) is None:
        pytest.skip(f"{example} needs {library}, which is not installed")


@pytest.mark.parametrize("example", BUDGETS)
def test_it_runs(example, tmp_path):
    skip_without_its_library(example)
    budget, says = BUDGETS[example]
    done = run(example, *budget, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert re.search(says, done.stdout), done.stdout


@pytest.mark.parametrize("example", BUDGETS)
def test_its_help_has_the_command(example):
    skip_without_its_library(example)
    done = run(example, "--help")
    assert done.returncode == 0, done.stderr
    assert f"python examples/{example}" in done.stdout


@pytest.mark.skipif(importlib.util.find_spec("ray") is not None, reason="Ray is installed")
def test_without_ray_the_example_says_what_to_install():
    done = run("rllib_register.py")
    assert done.returncode == 1 and "pip install" in done.stderr


def test_the_curve_is_written(tmp_path):
    skip_without_its_library("sb3_ppo.py")
    budget, _ = BUDGETS["sb3_ppo.py"]
    done = run(
        "sb3_ppo.py", *budget, "--seed", "0", "1", "--out", "a.csv", "--plot", "a.svg", cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    rows = (tmp_path / "a.csv").read_text().splitlines()
    assert rows[0] == "seed,step,episode_return,benchmark,operations"
    assert [row.split(",")[:2] for row in rows[1:]] == [
        [str(seed), str(step)] for seed in (0, 1) for step in range(5, 61, 5)
    ]
    assert (tmp_path / "a.svg").read_text().count("<polyline") == 2
