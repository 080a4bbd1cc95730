"""Tests of setup.py with a tiny fake wheel: no network, no root, a few seconds."""

import contextlib
import hashlib
import importlib.util
import io
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import zipfile
from pathlib import Path
from unittest import mock

SETUP_PY = Path(__file__).resolve().with_name("setup.py")
_spec = importlib.util.spec_from_file_location("xla_gym_setup", SETUP_PY)
setup = importlib.util.module_from_spec(_spec)
sys.modules[_spec.name] = setup
_spec.loader.exec_module(setup)

FAKE_MEMBERS = {
    "tensorflow/libtensorflow_cc.so.2": b"cc" * 5000,
    "tensorflow/libtensorflow_framework.so.2": b"framework" * 1000,
    "tensorflow/THIRD_PARTY_NOTICES.txt": b"notices",
    "tensorflow/include/LICENSE": b"license",
    "tensorflow/include/external/com_google_protobuf/LICENSE": b"protobuf license",
    "tensorflow/include/xla/shape.h": b"#pragma once\n",
    "tensorflow/include/xla/empty.h": b"",
    "tensorflow/include/xlarge/no.h": b"not wanted: only looks like xla",
    "tensorflow/include/tensorflow/core/no.h": b"not wanted",
    "tensorflow/python/no.py": b"not wanted",
}


class Killed(BaseException):
    """Stands for the moment an extraction is cut off."""


class SetupTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.engine_dir = Path(folder.name, "engine")
        self.wheel_file = Path(folder.name, "fake.whl")
        self.write_wheel(FAKE_MEMBERS)
        self.home = setup.engine_home(self.engine_dir, self.wheel)
        self.library = self.home / "lib" / "libtensorflow_cc.so.2"

    def write_wheel(self, members):
        with zipfile.ZipFile(self.wheel_file, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in members.items():
                archive.writestr(name, content)
        content = self.wheel_file.read_bytes()
        sha256 = hashlib.sha256(content).hexdigest()
        self.wheel = setup.PinnedWheel("0.0", "fake.whl", sha256, len(content), 100_000)

    def ensure(self, given=True, **options):
        """Runs a set-up; returns what it printed."""
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            given_wheel = self.wheel_file if given else None
            setup.ensure_engine(self.engine_dir, self.wheel, given_wheel, **options)
        return output.getvalue()

    def problem(self, verify=False):
        with contextlib.redirect_stdout(io.StringIO()):
            return setup.engine_problem(self.home, self.wheel, verify)

    def put_download(self, content):
        folder = self.engine_dir / setup.DOWNLOADS
        folder.mkdir(parents=True)
        (folder / self.wheel.filename).write_bytes(content)
        return folder

    def refusal(self, text):
        return self.assertRaisesRegex(setup.SetupError, text)

    def partial_folders(self):
        return list(self.engine_dir.glob(f"{setup.PARTIAL}*"))

    def fake_pip(self, content):
        def put(folder, wheel, verbose):
            (folder / wheel.filename).write_bytes(content)

        return mock.patch.object(setup, "run_pip_download", side_effect=put)

    def cut_off(self, how):
        """Lets extraction stop at its third file, by calling how()."""
        real, calls = setup.extract_member, []

        def extract_member(*arguments):
            calls.append(arguments)
            if len(calls) == 3:
                how()
            return real(*arguments)

        return mock.patch.object(setup, "extract_member", extract_member)

    def test_fresh_install(self):
        self.ensure()
        self.assertIsNone(self.problem(verify=True))
        found = {str(p.relative_to(self.home)) for p in self.home.rglob("*") if not p.is_dir()}
        expected = {
            "engine.json",
            "LICENSE",
            "THIRD_PARTY_NOTICES.txt",
            "licenses/external/com_google_protobuf/LICENSE",
            "include/xla/shape.h",
            "include/xla/empty.h",
            *(f"lib/{name}" for pair in setup.LIBRARIES.items() for name in pair),
        }
        self.assertEqual(found, expected)
        self.assertEqual(os.readlink(self.home / "lib/libtensorflow_cc.so"), "libtensorflow_cc.so.2")
        stamp = json.loads((self.home / "engine.json").read_text())
        self.assertEqual(stamp["library_sizes"]["libtensorflow_cc.so.2"], 10_000)
        self.assertEqual(stamp["file_count"], 7)
        self.assertTrue(self.wheel_file.exists(), "a given wheel is the user's")

    def test_second_run_does_nothing(self):
        self.ensure()
        before = self.library.stat()
        self.assertEqual(self.ensure(), "")
        self.assertEqual(self.library.stat(), before)

    def test_truncated_wheel_is_refused(self):
        self.wheel_file.write_bytes(self.wheel_file.read_bytes()[:-10])
        with self.refusal("bytes instead of"):
            self.ensure()
        self.assertFalse(self.home.exists())

    def test_wrong_hash_is_refused(self):
        content = bytearray(self.wheel_file.read_bytes())
        content[100] ^= 1
        self.wheel_file.write_bytes(content)
        with self.refusal("sha256"):
            self.ensure()
        self.assertFalse(self.home.exists())

    def test_given_wheel_that_does_not_exist(self):
        self.wheel_file.unlink()
        with self.refusal("no such file"):
            self.ensure()

    def test_wheel_without_library_is_refused(self):
        self.write_wheel({"tensorflow/libtensorflow_cc.so.2": b"cc"})
        with self.refusal("libtensorflow_framework"):
            self.ensure()
        self.assertEqual((self.home.exists(), self.partial_folders()), (False, []))

    def test_damage_is_repaired(self):
        def rewrite_stamp(**changes):
            path = self.home / "engine.json"
            path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))

        damages = {
            "engine.json is missing": lambda: (self.home / "engine.json").unlink(),
            "engine.json is damaged": lambda: (self.home / "engine.json").write_text("{"),
            "another wheel": lambda: rewrite_stamp(wheel_sha256="0"),
            "list of headers": lambda: rewrite_stamp(include_prefixes=["xla"]),
            "libtensorflow_cc.so.2 is missing": self.library.unlink,
            "9 bytes instead of 10,000": lambda: self.library.write_bytes(b"truncated"),
            "libtensorflow_cc.so is missing": lambda: (self.home / "lib/libtensorflow_cc.so").unlink(),
            "shape.h is missing": lambda: (self.home / "include/xla/shape.h").unlink(),
        }
        self.ensure()
        for expected, damage in damages.items():
            with self.subTest(expected):
                damage()
                output = self.ensure()
                self.assertIn(expected, output)
                self.assertIn("setting it up again", output)
                self.assertIsNone(self.problem(verify=True))
                self.assertEqual(self.partial_folders(), [])

    def test_changed_content_is_found_by_verify_only(self):
        self.ensure()
        self.library.write_bytes(b"x" * 10_000)
        self.assertEqual(self.ensure(), "")
        self.assertIn("wrong content", self.ensure(verify=True))
        self.assertIsNone(self.problem(verify=True))

    def test_stale_partial_is_removed(self):
        for state in ("absent", "ready"):
            with self.subTest(state):
                stale = self.engine_dir / f"{setup.PARTIAL}stale" / "lib"
                stale.mkdir(parents=True)
                self.assertIn("interrupted set-up", self.ensure())
                self.assertEqual(self.partial_folders(), [])

    def test_interrupted_extraction_leaves_nothing(self):
        def interrupt():
            raise KeyboardInterrupt

        with self.cut_off(interrupt), self.assertRaises(KeyboardInterrupt):
            self.ensure()
        self.assertEqual((self.home.exists(), self.partial_folders()), (False, []))
        self.ensure()
        self.assertIsNone(self.problem(verify=True))

    def test_killed_extraction_is_not_taken_for_complete(self):
        child = os.fork()
        if child == 0:
            with self.cut_off(lambda: os._exit(9)):  # as sudden as kill -9
                self.ensure()
            os._exit(0)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 9)
        self.assertFalse(self.home.exists())
        self.assertEqual(len(self.partial_folders()), 1)
        self.ensure()
        self.assertIsNone(self.problem(verify=True))
        self.assertEqual(self.partial_folders(), [])

    def test_interrupted_repair_keeps_the_old_files(self):
        self.ensure()
        (self.home / "engine.json").unlink()
        with self.cut_off(mock.Mock(side_effect=Killed)), self.assertRaises(Killed):
            self.ensure()
        self.assertTrue(self.library.exists())
        self.assertEqual(self.problem(), "engine.json is missing")

    def test_two_at_once(self):
        self.engine_dir.mkdir()
        second_output = []
        second = threading.Thread(target=lambda: second_output.append(self.second_run()))
        with mock.patch.object(setup, "say") as say:
            with setup.locked(self.engine_dir):
                second.start()
                while not say.called:
                    time.sleep(0.01)
                self.assertIn("waiting", say.call_args[0][0])
                self.assertTrue(second.is_alive())
                setup.install_engine(self.wheel_file, self.home, self.wheel)
                before = self.library.stat()
            second.join(10)
        self.assertEqual(second_output, ["done"])
        self.assertEqual(self.library.stat(), before, "the second run has nothing to do")

    def second_run(self):
        setup.ensure_engine(self.engine_dir, self.wheel, self.wheel_file)
        return "done"

    def test_download_is_removed_unless_kept(self):
        content = self.wheel_file.read_bytes()
        downloads = self.engine_dir / setup.DOWNLOADS
        with self.fake_pip(content) as pip:
            self.ensure(given=False)
            self.assertFalse(downloads.exists())
            (self.home / "engine.json").unlink()
            self.ensure(given=False, keep_wheel=True)
            self.assertEqual((downloads / "fake.whl").read_bytes(), content)
            (self.home / "engine.json").unlink()
            self.ensure(given=False)
            self.assertEqual(pip.call_count, 2, "the kept wheel is used again")

    def test_truncated_download_is_fetched_again(self):
        content = self.wheel_file.read_bytes()
        self.put_download(content[:50])
        with self.fake_pip(content):
            self.assertIn("downloading it again", self.ensure(given=False))
        self.assertIsNone(self.problem(verify=True))

    def test_wrong_download_is_refused(self):
        with self.fake_pip(b"something else"), self.assertRaises(setup.SetupError):
            self.ensure(given=False)
        self.assertEqual((self.home.exists(), self.partial_folders()), (False, []))

    def test_failing_pip_is_explained(self):
        no_pip = mock.patch.object(setup.sys, "executable", "false")
        with no_pip, self.refusal("--wheel FILE"):
            self.ensure(given=False)
        self.assertEqual(self.partial_folders(), [])

    def test_full_disk_is_told_beforehand(self):
        usage = mock.Mock(free=10)
        full = mock.patch.object(setup.shutil, "disk_usage", return_value=usage)
        with full, self.refusal("not enough disk space"):
            self.ensure()

    def test_missing_packages_without_root(self):
        def which(program):
            return None if program == "make" else program

        no_make = mock.patch.object(setup.shutil, "which", which)
        no_root = mock.patch.object(setup.os, "geteuid", return_value=1000)
        with no_make, no_root, self.refusal("sudo apt-get install .* make"):
            setup.ensure_packages(need_pip=False)

    def test_other_platform(self):
        other = mock.patch.object(setup.platform, "machine", return_value="aarch64")
        with other, self.refusal("only x86_64 Linux"):
            setup.check_platform()

    def test_print_dir_of_an_engine_that_is_not_ready(self):
        command = [sys.executable, str(SETUP_PY), "--print-dir", "--engine-dir", "nowhere"]
        run = subprocess.run(command, cwd=self.wheel_file.parent, capture_output=True, check=False)
        self.assertEqual((run.returncode, run.stdout), (1, b""))
        self.assertIn(b"not ready", run.stderr)


if __name__ == "__main__":
    unittest.main()
