"""The wheel works where nothing else of this repository is."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import xla_gym

EXAMPLES = Path(__file__).parent.parent / "examples"


@pytest.fixture(scope="module")
def fresh(tmp_path_factory) -> Path:
    """The Python of a new environment in which there is the wheel with what it asks for."""
    wheel = os.environ.get("XLA_GYM_WHEEL")
    if not wheel:
        pytest.skip("XLA_GYM_WHEEL is not set to the wheel that is to be installed")
    folder = tmp_path_factory.mktemp("fresh")
    subprocess.run([sys.executable, "-m", "venv", folder], check=True, timeout=120)
    python = folder / "bin" / "python"
    install = [python, "-m", "pip", "install", "--quiet", Path(wheel).resolve()]
    subprocess.run(install, check=True, timeout=300)
    return python


def test_the_first_example_runs_in_a_fresh_environment(fresh, tmp_path):
    done = subprocess.run(
        [fresh, EXAMPLES / "figure1.py", "--traj-limit", "3"],
        capture_output=True,
        text=True,
        timeout=300,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert "operations became" in done.stdout and "step 3/3" in done.stdout


def test_the_fresh_environment_uses_what_was_installed(fresh, tmp_path):
    code = "import xla_gym; print(xla_gym.__file__, xla_gym.__version__)"
    done = subprocess.run(
        [fresh, "-c", code], capture_output=True, text=True, check=True, timeout=60, cwd=tmp_path
    )
    path, version = done.stdout.split()
    assert Path(path).is_relative_to(fresh.parent.parent) and version == xla_gym.__version__


@pytest.fixture
def no_engine(monkeypatch, tmp_path):
    """Neither an engine nor leave to fetch one."""
    monkeypatch.setenv("XLA_GYM_ENGINE_DIR", str(tmp_path))
    monkeypatch.setenv("XLA_GYM_NO_FETCH", "1")
    monkeypatch.delenv("XLA_GYM_WORKER_XLA", raising=False)
    return tmp_path


def test_without_an_engine_the_error_says_what_to_run(make, no_engine):
    with pytest.raises(xla_gym.EngineNotFoundError) as error:
        # Arguments that nothing else used, or a compiler that runs already would do.
        make(cache_memory=12345)
    text = str(error.value)
    assert f"run `{sys.executable} -m xla_gym.engine`" in text
    assert "XLA_GYM_ENGINE_DIR" in text and str(no_engine) in text
    assert not list(no_engine.iterdir()), "it fetched what it was forbidden to fetch"


def test_the_command_says_the_same(python, no_engine):
    done = subprocess.run(
        [sys.executable, "-m", "xla_gym.engine"],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=no_engine,
    )
    assert done.returncode == 1 and done.stdout == ""
    assert done.stderr.startswith("xla_gym.engine: XLA is not in")
