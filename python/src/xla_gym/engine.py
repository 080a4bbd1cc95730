"""Where the compiler comes from.

The package brings a small worker program; XLA itself, a shared library of 1.2 GB, is taken from the
TensorFlow wheel on PyPI. It is looked for in ``$XLA_GYM_ENGINE_DIR``, else in the user's cache folder,
and fetched there at first use. ``python -m xla_gym.engine`` fetches it beforehand;
``XLA_GYM_NO_FETCH=1`` forbids fetching.
"""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path
from typing import NamedTuple

from xla_gym._native import EngineNotFoundError

_HERE = Path(__file__).resolve().parent


class Engine(NamedTuple):
    """The worker program, and the folder with the compiler's library."""

    worker: Path
    libraries: Path | None


def folder() -> Path:
    """The folder in which engines are kept."""
    if given := os.environ.get("XLA_GYM_ENGINE_DIR"):
        return Path(given)
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "xla-gym"


def find(fetch: bool = True) -> Engine:
    """The engine, fetched if it is not there and may be."""
    if given := os.environ.get("XLA_GYM_WORKER_XLA"):
        return Engine(Path(given), None)
    worker = _HERE / "_bin" / "xla-gym-worker-xla"
    if not worker.is_file():
        raise EngineNotFoundError(
            f"{worker} is missing: install a wheel of xla-gym for this platform, or set "
            "XLA_GYM_WORKER_XLA to the worker program that `make build` makes"
        )
    from xla_gym import _setup

    home = _setup.engine_home(folder(), _setup.TENSORFLOW)
    problem = _setup.engine_problem(home, _setup.TENSORFLOW)
    if problem is not None:
        if not fetch or os.environ.get("XLA_GYM_NO_FETCH"):
            raise EngineNotFoundError(
                f"XLA is not in {home} ({problem}); run `{sys.executable} -m xla_gym.engine`, which "
                "fetches 570 MB from PyPI, or set XLA_GYM_ENGINE_DIR to a folder that has it"
            )
        try:
            # What a program prints is its own; progress goes to standard error.
            with contextlib.redirect_stdout(sys.stderr):
                _setup.check_platform()
                _setup.ensure_engine(folder(), _setup.TENSORFLOW)
        except (_setup.SetupError, OSError) as error:
            raise EngineNotFoundError(f"XLA could not be fetched into {home}: {error}") from error
    return Engine(worker, home / "lib")


def main() -> int:
    """Fetches the engine and says where it is."""
    try:
        engine = find()
    except EngineNotFoundError as error:
        print(f"xla_gym.engine: {error}", file=sys.stderr)
        return 1
    print(f"worker: {engine.worker}\nlibrary: {engine.libraries or 'as built'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
