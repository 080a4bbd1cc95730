"""Where the compilers come from.

The package brings small worker programs, one for each compiler. XLA itself, a shared library of 1.2 GB, is
taken from the TensorFlow wheel on PyPI. It is looked for in ``$XLA_GYM_ENGINE_DIR``, else in the user's
cache folder, and fetched there at first use. ``python -m xla_gym.engine`` fetches it beforehand;
``XLA_GYM_NO_FETCH=1`` forbids fetching. The toy compiler is all in its worker.

``$XLA_GYM_WORKER_XLA``, ``$XLA_GYM_WORKER_TOY`` and so on name other workers.
"""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path
from typing import NamedTuple

from xla_gym._native import ConfigError, EngineNotFoundError, engines

_HERE = Path(__file__).resolve().parent

# Compilers whose libraries are fetched.
_FETCHED = "xla"


class Engine(NamedTuple):
    """The worker program, and the folder with the compiler's library, if it has one."""

    worker: Path
    libraries: Path | None


def folder() -> Path:
    """The folder in which engines are kept."""
    if given := os.environ.get("XLA_GYM_ENGINE_DIR"):
        return Path(given)
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "xla-gym"


def find(fetch: bool = True, *, engine: str = _FETCHED) -> Engine:
    """The engine of a compiler, fetched if it is not there and may be."""
    if engine not in engines():
        raise ConfigError(f"there is no compiler {engine!r}; there are {', '.join(engines())}")
    variable = f"XLA_GYM_WORKER_{engine.upper()}"
    if given := os.environ.get(variable):
        return Engine(Path(given), None)
    worker = _HERE / "_bin" / f"xla-gym-worker-{engine}"
    if not worker.is_file():
        raise EngineNotFoundError(
            f"{worker} is missing: install a wheel of xla-gym for this platform, or set "
            f"{variable} to the worker program that `make build` makes"
        )
    return Engine(worker, _fetched(fetch) if engine == _FETCHED else None)


def _fetched(fetch: bool) -> Path:
    """The folder with XLA, fetched if it is not there and may be."""
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
    return home / "lib"


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
