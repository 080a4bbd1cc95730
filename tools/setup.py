"""Prepare a Debian or Ubuntu machine to build XLA Gym.

Installs the missing Debian packages, then puts the XLA engine (two shared
libraries and their headers, taken from a pinned TensorFlow wheel) into the
engine folder. Run again at any time: what is there is kept, what is damaged
or half finished is repaired.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import hashlib
import importlib.util
import json
import os
import platform
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

REPO_ROOT = Path(__file__).resolve().parent.parent

# Program the build calls -> Debian package that brings it.
DEBIAN_PACKAGES = {"g++": "g++", "make": "make"}


@dataclass(frozen=True)
class PinnedWheel:
    """The one wheel file the engine is taken from."""

    version: str
    filename: str
    sha256: str
    size: int
    unpacked_size: int  # what extraction writes, rounded up: for the disk check


TENSORFLOW = PinnedWheel(
    version="2.21.0",
    filename="tensorflow-2.21.0-cp311-cp311-manylinux_2_27_x86_64.whl",
    sha256="9056fbc9ba04235810b71ae6cbd958a196e8804fb53bbcffbf3e23b56155f124",
    size=572_440_367,
    unpacked_size=1_400_000_000,
)
# These tags make pip fetch the pinned file whatever Python runs this.
PIP_TAGS = "--python-version 3.11 --implementation cp --platform manylinux_2_27_x86_64"

# Library in the wheel -> name the linker looks for.
LIBRARIES = {
    "libtensorflow_cc.so.2": "libtensorflow_cc.so",
    "libtensorflow_framework.so.2": "libtensorflow_framework.so",
}

# Folders below tensorflow/include/ that the XLA headers reach (found with
# g++ -M over xla/*.h, xla/hlo/**, xla/service and xla/pjrt). The others (MLIR,
# CUDA, TensorFlow itself) are many times as large and no shim needs them.
# Changing this list makes the next set-up extract again.
INCLUDE_PREFIXES = [
    "Eigen",
    "absl",
    "external/farmhash_archive",
    "external/highwayhash",
    "google",
    "ml_dtypes",
    "tsl",
    "unsupported",
    "xla",
]

STAMP = "engine.json"
DOWNLOADS = "download"
# Everything unfinished carries this prefix, so that whatever an interrupted
# run leaves behind can be told from finished work by its name alone.
PARTIAL = ".partial-"
CHUNK = 1 << 20

HELP_EPILOG = """\
environment:
  XLA_GYM_ENGINE_DIR  engine folder, where --engine-dir is not given

exit codes:
  0    everything is there (with --print-dir: the engine is ready)
  1    something could not be set up (with --print-dir: not ready)
  2    wrong command line
  130  stopped by Ctrl-C or a termination signal; run it again to go on
"""


class SetupError(Exception):
    """Something the user has to know or do; the text is shown as it is."""


def say(text: str) -> None:
    print(f"set-up: {text}", flush=True)


def megabytes(count: float) -> str:
    return f"{count / 1e6:,.0f} MB"


def shown(path: Path) -> str:
    """The path as short as it can be: relative where it lies below us."""
    here = Path.cwd()
    return str(path.relative_to(here) if here in path.parents else path)


class Progress:
    """A line that is redrawn on a terminal; now and then a line elsewhere."""

    def __init__(self, label: str, total: int):
        self.label, self.total, self.done = label, max(total, 1), 0
        self.live = sys.stdout.isatty() and os.environ.get("TERM") != "dumb"
        self.interval = 0.1 if self.live else 15.0
        self.started = self.drawn = time.monotonic()
        if not self.live:
            say(f"{label} ({megabytes(total)})")

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self,
        failure: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        if self.live:
            print("\r\033[K", end="", flush=True)
        if failure is None:
            say(f"{self.label}: done in {time.monotonic() - self.started:.1f} s")

    def advance(self, count: int) -> None:
        self.show(self.done + count)

    def show(self, done: int) -> None:
        self.done = min(done, self.total)
        now = time.monotonic()
        if now - self.drawn < self.interval:
            return
        self.drawn = now
        rate = self.done / (now - self.started)
        left = f"{(self.total - self.done) / rate:.0f} s left" if rate else "starting"
        percent = 100 * self.done // self.total
        line = f"{self.label}: {percent} %, {megabytes(rate)}/s, {left}"
        if self.live:
            width = shutil.get_terminal_size().columns - 1
            print(f"\rset-up: {line}"[: width + 1], end="\033[K", flush=True)
        else:
            say(line)


def check_platform() -> None:
    machine = platform.machine()
    if sys.platform != "linux" or machine not in ("x86_64", "amd64"):
        found = f"{machine} {platform.system()}"
        raise SetupError(f"the pinned wheel supports only x86_64 Linux; this is {found}")


def missing_packages(need_pip: bool) -> list[str]:
    packages = {p for program, p in DEBIAN_PACKAGES.items() if not shutil.which(program)}
    if need_pip and importlib.util.find_spec("pip") is None:
        packages.add("python3-pip")
    return sorted(packages)


def ensure_packages(need_pip: bool) -> None:
    packages = missing_packages(need_pip)
    if not packages:
        return
    install_packages(packages)
    importlib.invalidate_caches()
    if missing_packages(need_pip):
        names = " ".join(packages)
        raise SetupError(f"{names} installed, but {sys.executable} or PATH does not see it")


def install_packages(packages: list[str]) -> None:
    names = " ".join(packages)
    if not shutil.which("apt-get"):
        raise SetupError(f"missing, and there is no apt-get to install it: {names}")
    update = ["apt-get", "update"]
    install = ["apt-get", "install", "-y", "--no-install-recommends", *packages]
    if os.geteuid() != 0:
        advice = f"sudo {shlex.join(update)} && sudo {shlex.join(install)}"
        raise SetupError(f"Debian packages are missing. Run this, then try again:\n  {advice}")
    say(f"installing Debian packages: {names}")
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for command in (update, install):
        apt = subprocess.Popen(command, env=environment)
        try:
            status = apt.wait()
        except KeyboardInterrupt:
            apt.wait()  # it has had the Ctrl-C too; killing it would break dpkg's state
            raise
        if status != 0:
            raise SetupError(f"this command failed: {shlex.join(command)}")


def engine_home(engine_dir: Path, wheel: PinnedWheel) -> Path:
    return engine_dir / f"xla-tf-{wheel.version}"


def file_sha256(path: Path, progress: Progress) -> str:
    digest = hashlib.sha256()
    with open(path, "rb") as source:
        while chunk := source.read(CHUNK):
            digest.update(chunk)
            progress.advance(len(chunk))
    return digest.hexdigest()


def engine_problem(home: Path, wheel: PinnedWheel, verify: bool = False) -> str | None:
    """What keeps the engine from being used; None when it is ready.

    Sizes only, unless verify is set: hashing 1.3 GB at every build is too slow.
    """
    try:
        stamp = json.loads((home / STAMP).read_text())
        sizes = {name: entry["size"] for name, entry in stamp["files"].items()}
        origin = (stamp["wheel_sha256"], stamp["include_prefixes"])
    except OSError:
        return f"{STAMP} is missing"
    except (ValueError, KeyError, TypeError, AttributeError):
        return f"{STAMP} is damaged"
    if origin != (wheel.sha256, INCLUDE_PREFIXES):
        return "it was made from another wheel or list of headers"
    for name, size in sizes.items():
        try:
            found = os.stat(home / name).st_size
        except OSError:
            return f"{name} is missing"
        if found != size:
            return f"{name} has {found:,} bytes instead of {size:,}"
    for link in LIBRARIES.values():
        if not (home / "lib" / link).exists():
            return f"lib/{link} is missing"
    if verify:
        with Progress("checking the engine", sum(sizes.values())) as progress:
            for name, entry in stamp["files"].items():
                if file_sha256(home / name, progress) != entry["sha256"]:
                    return f"{name} has the wrong content"
    return None


@contextlib.contextmanager
def locked(engine_dir: Path, wait: bool = True) -> Iterator[None]:
    """Holds the engine folder. The kernel drops the lock should we be killed."""
    with open(engine_dir / ".lock", "a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if not wait:
                raise
            say(f"another set-up is at work in {shown(engine_dir)}; waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextlib.contextmanager
def partial_folder(engine_dir: Path) -> Iterator[Path]:
    folder = tempfile.mkdtemp(prefix=PARTIAL, dir=engine_dir)
    try:
        yield Path(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def remove_leftovers(engine_dir: Path) -> None:
    for leftover in engine_dir.glob(f"{PARTIAL}*"):
        say(f"removing {leftover.name}, left by an interrupted set-up")
        shutil.rmtree(leftover)


def remove_at_once(path: Path) -> None:
    """Deletes a folder such that nobody sees it half deleted, not even after a kill."""
    if os.path.lexists(path):
        with partial_folder(path.parent) as folder:
            os.replace(path, folder / path.name)


def check_disk_space(engine_dir: Path, needed: int) -> None:
    free = shutil.disk_usage(engine_dir).free
    if free < needed:
        sizes = f"set-up needs {megabytes(needed)}, {megabytes(free)} are free"
        raise SetupError(f"not enough disk space in {shown(engine_dir)}: {sizes}")


def wheel_problem(path: Path, wheel: PinnedWheel) -> str | None:
    if not path.is_file():
        return "there is no such file"
    size = path.stat().st_size
    if size != wheel.size:
        return f"it has {size:,} bytes instead of {wheel.size:,}"
    with Progress("checking the wheel", size) as progress:
        sha256 = file_sha256(path, progress)
    return None if sha256 == wheel.sha256 else f"its sha256 is {sha256}, not {wheel.sha256}"


def downloaded_wheel(engine_dir: Path, wheel: PinnedWheel, verbose: bool) -> Path:
    """The checked wheel: an earlier run's download where it is good, else a new one."""
    path = engine_dir / DOWNLOADS / wheel.filename
    if path.exists():
        problem = wheel_problem(path, wheel)
        if problem is None:
            return path
        say(f"the wheel in {shown(path.parent)} is damaged ({problem}); downloading it again")
        path.unlink()
    # pip copies its download to the destination: for a moment there are two.
    check_disk_space(engine_dir, 2 * wheel.size + wheel.unpacked_size)
    with partial_folder(engine_dir) as folder:
        run_pip_download(folder, wheel, verbose)
        problem = wheel_problem(folder / wheel.filename, wheel)
        if problem is not None:
            raise SetupError(f"pip brought a wrong {wheel.filename}: {problem}")
        path.parent.mkdir(exist_ok=True)
        os.replace(folder / wheel.filename, path)
    return path


def run_pip_download(folder: Path, wheel: PinnedWheel, verbose: bool) -> None:
    requirements, log = folder / "requirements.txt", folder / "pip.log"
    requirements.write_text(f"tensorflow=={wheel.version} --hash=sha256:{wheel.sha256}\n")
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:"]
    command += [*PIP_TAGS.split(), "--require-hashes", "-r", str(requirements), "-d", str(folder)]
    # Without a cache: it would keep one more copy of the wheel, in the home folder.
    command += ["--no-cache-dir", "--no-input", "--disable-pip-version-check"]
    # pip's temporary files go where the next run would clean them up, and
    # where their growth tells how far the download is.
    environment = {**os.environ, "TMPDIR": str(folder)}
    label = f"downloading tensorflow {wheel.version}"
    with open(log, "wb") as output, Progress(label, wheel.size) as progress:
        sink = None if verbose else output
        pip = subprocess.Popen(command, env=environment, stdout=sink, stderr=sink)
        try:
            while pip.poll() is None:
                if not verbose:
                    progress.show(bytes_in_wheels(folder))
                time.sleep(0.1)
        finally:
            pip.terminate()  # does nothing where pip has ended
            pip.wait()
        if pip.returncode != 0:
            tail = log.read_text(errors="replace").splitlines()[-12:]
            raise SetupError(
                "\n  ".join([f"pip failed with exit code {pip.returncode}:", *tail])
                + "\nCheck the network and pip's index configuration (pip config list),"
                f"\nor give {wheel.filename}, fetched elsewhere, with --wheel FILE."
            )


def bytes_in_wheels(folder: Path) -> int:
    total = 0
    with contextlib.suppress(OSError):  # pip removes files while we look
        for path in folder.rglob("*.whl"):
            total += path.stat().st_size
    return total


def engine_path(member: str) -> str | None:
    """Where a member of the wheel goes inside the engine; None: not wanted."""
    name = member[len("tensorflow/") :] if member.startswith("tensorflow/") else ""
    if name in LIBRARIES:
        return f"lib/{name}"
    if name == "THIRD_PARTY_NOTICES.txt":
        return name
    if not name.startswith("include/") or name.endswith("/"):
        return None
    header = name[len("include/") :]
    if header == "LICENSE":
        return header
    if header.rpartition("/")[2].startswith("LICENSE"):
        return f"licenses/{header}"
    wanted = header.startswith(tuple(f"{prefix}/" for prefix in INCLUDE_PREFIXES))
    return name if wanted else None


def extract(wheel_file: Path, home: Path, wheel: PinnedWheel) -> None:
    """Fills the empty folder home; the stamp comes last."""
    files = {}
    with zipfile.ZipFile(wheel_file) as archive:
        targets = {m: path for m in archive.infolist() if (path := engine_path(m.filename))}
        with Progress("extracting the engine", sum(m.file_size for m in targets)) as progress:
            for member, path in targets.items():
                sha256 = extract_member(archive, member, home / path, progress)
                files[path] = {"size": member.file_size, "sha256": sha256}
    for library, link in LIBRARIES.items():
        if f"lib/{library}" not in files:
            raise SetupError(f"there is no {library} in {wheel.filename}")
        (home / "lib" / link).symlink_to(library)
    stamp = {
        "version": wheel.version,
        "wheel_sha256": wheel.sha256,
        "library_sizes": {library: files[f"lib/{library}"]["size"] for library in LIBRARIES},
        "file_count": len(files),
        "include_prefixes": INCLUDE_PREFIXES,
        "files": files,
    }
    (home / STAMP).write_text(json.dumps(stamp, indent=1) + "\n")


def extract_member(
    archive: zipfile.ZipFile, member: zipfile.ZipInfo, target: Path, progress: Progress
) -> str:
    target.parent.mkdir(parents=True, exist_ok=True)
    digest = hashlib.sha256()
    with archive.open(member) as source, open(target, "wb") as output:
        while chunk := source.read(CHUNK):
            output.write(chunk)
            digest.update(chunk)
            progress.advance(len(chunk))
    return digest.hexdigest()


def install_engine(wheel_file: Path, home: Path, wheel: PinnedWheel) -> None:
    check_disk_space(home.parent, wheel.unpacked_size)
    with partial_folder(home.parent) as folder:
        # One folder deeper: the partial one is readable to its owner alone.
        new_home = folder / home.name
        new_home.mkdir()
        extract(wheel_file, new_home, wheel)
        remove_at_once(home)
        os.replace(new_home, home)


def ensure_engine(
    engine_dir: Path,
    wheel: PinnedWheel = TENSORFLOW,
    given_wheel: Path | None = None,
    keep_wheel: bool = False,
    verify: bool = False,
    verbose: bool = False,
) -> None:
    """Makes the engine ready, whatever state its folder is in."""
    home = engine_home(engine_dir, wheel)
    if engine_problem(home, wheel, verify) is None:
        # Leftovers are not ours while another set-up runs, or in a read-only folder.
        if any(engine_dir.glob(f"{PARTIAL}*")):
            with contextlib.suppress(OSError), locked(engine_dir, wait=False):
                remove_leftovers(engine_dir)
        return
    engine_dir.mkdir(parents=True, exist_ok=True)
    with locked(engine_dir):
        remove_leftovers(engine_dir)
        # Asked again: whoever held the lock before us may have done the work.
        problem = engine_problem(home, wheel, verify)
        if problem is None:
            return
        if home.exists():
            say(f"the engine in {shown(home)} is not usable ({problem}); setting it up again")
        if given_wheel is not None:
            problem = wheel_problem(given_wheel, wheel)
            if problem is not None:
                raise SetupError(f"{given_wheel} is not {wheel.filename}: {problem}")
        install_engine(given_wheel or downloaded_wheel(engine_dir, wheel, verbose), home, wheel)
        if not keep_wheel:
            remove_at_once(engine_dir / DOWNLOADS)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__,
        epilog=HELP_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    default_dir = Path(os.environ.get("XLA_GYM_ENGINE_DIR") or REPO_ROOT / ".engine")
    for name, placeholder, default, text in (
        ("--engine-dir", "DIR", default_dir, "engine folder (default: .engine in the repository)"),
        ("--wheel", "FILE", None, "take this TensorFlow wheel (its hash is checked), no download"),
    ):
        parser.add_argument(name, type=Path, metavar=placeholder, default=default, help=text)
    for name, text in (
        ("--keep-wheel", "keep the downloaded wheel in the engine folder, for later repairs"),
        ("--verify", "check the content of every engine file, not just its size"),
        ("--print-dir", "print the folder of the ready engine and do nothing else"),
        ("--verbose", "show the output of pip"),
    ):
        parser.add_argument(name, action="store_true", help=text)
    return parser.parse_args()


def set_up(options: argparse.Namespace) -> None:
    engine_dir = options.engine_dir.absolute()
    home = engine_home(engine_dir, TENSORFLOW)
    problem = engine_problem(home, TENSORFLOW)
    if options.print_dir:
        if problem is not None:
            raise SetupError(f"the engine in {shown(home)} is not ready: {problem}")
        print(home)
        return
    check_platform()
    ensure_packages(need_pip=problem is not None and options.wheel is None)
    how = {name: getattr(options, name) for name in ("keep_wheel", "verify", "verbose")}
    ensure_engine(engine_dir, TENSORFLOW, options.wheel, **how)
    say(f"XLA engine (tensorflow {TENSORFLOW.version}) is ready in {shown(home)}")


def main() -> int:
    options = parse_arguments()
    # As for Ctrl-C: so that it, too, stops pip and tidies up.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        set_up(options)
    except KeyboardInterrupt:
        print("set-up: stopped; run it again to go on", file=sys.stderr)
        return 130
    except (SetupError, OSError, zipfile.BadZipFile) as error:
        print(f"set-up: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
