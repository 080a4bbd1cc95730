"""Prepare a Debian or Ubuntu machine to build XLA Gym's LLVM worker.

Looks for LLVM 19 with its headers and for the clang of the same version, and
installs the Debian packages that are missing. Run again at any time: what is
there is kept. Everything but the LLVM worker builds and runs without it.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

import setup
from setup import SetupError, say

MAJOR = "19"
PREFIX = Path(f"/usr/lib/llvm-{MAJOR}")

# What the build or the tests need, below LLVM's folder -> Debian package that brings it.
NEEDED = {
    "bin/llvm-config": f"llvm-{MAJOR}-dev",
    "include/llvm/IR/Module.h": f"llvm-{MAJOR}-dev",
    f"lib/libLLVM-{MAJOR}.so": f"llvm-{MAJOR}-dev",
    "bin/opt": f"llvm-{MAJOR}",
    "bin/clang": f"clang-{MAJOR}",
    f"lib/clang/{MAJOR}/lib": f"libclang-rt-{MAJOR}-dev",
}
# What LLVM's own list of libraries names beside them.
BESIDE = [f"libpolly-{MAJOR}-dev", "libzstd-dev"]

WAY_OUT = (
    f"LLVM {MAJOR} is in Debian 12 and later. Elsewhere, install it in another way and set"
    " LLVM_SYS_191_PREFIX to its folder. Everything but the LLVM worker works without it."
)


def prefix() -> Path:
    """LLVM's folder: where the build looks for it."""
    return Path(os.environ.get("LLVM_SYS_191_PREFIX") or PREFIX)


def version(folder: Path) -> str | None:
    """What its llvm-config says; None if it says nothing."""
    try:
        run = subprocess.run(
            [folder / "bin/llvm-config", "--version"], capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return run.stdout.strip()


def missing(folder: Path) -> list[str]:
    return [name for name in NEEDED if not (folder / name).exists()]


def problem(folder: Path) -> str | None:
    """What keeps LLVM from being used; None when it is ready."""
    if not folder.is_dir():
        return f"there is no {folder}"
    if names := missing(folder):
        return f"{folder} lacks {', '.join(names)}"
    found = version(folder)
    if found is None:
        return f"{folder / 'bin/llvm-config'} does not run"
    if found.split(".")[0] != MAJOR:
        return f"{folder} holds LLVM {found}, not {MAJOR}"
    return None


def packages(folder: Path) -> list[str]:
    """Those that bring what is missing."""
    return sorted({NEEDED[name] for name in missing(folder)} | set(BESIDE))


def ensure_llvm() -> None:
    folder = prefix()
    reason = problem(folder)
    if reason is None:
        return
    if folder != PREFIX:
        raise SetupError(f"LLVM_SYS_191_PREFIX does not lead to LLVM {MAJOR}: {reason}")
    if folder.is_dir() and not missing(folder):
        raise SetupError(f"{reason}\n{WAY_OUT}")
    say(f"LLVM {MAJOR} is not complete: {reason}")
    try:
        setup.install_packages(packages(folder))
    except SetupError as error:
        raise SetupError(f"{error}\n{WAY_OUT}") from None
    if reason := problem(folder):
        raise SetupError(f"installed, but {reason}\n{WAY_OUT}")


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument(
        "--check", action="store_true", help="say whether LLVM is ready, and install nothing"
    )
    return parser.parse_args()


def main() -> int:
    options = parse_arguments()
    try:
        if options.check:
            if reason := problem(prefix()):
                raise SetupError(f"{reason}; run `make setup-llvm`")
        else:
            ensure_llvm()
        say(f"LLVM {version(prefix())} is ready in {prefix()}")
    except KeyboardInterrupt:
        print("set-up: stopped; run it again to go on", file=sys.stderr)
        return 130
    except (SetupError, OSError) as error:
        print(f"set-up: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
