"""Tests of setup_llvm.py on folders that look like LLVM: no network, no root."""

import contextlib
import importlib.util
import io
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

SETUP_PY = Path(__file__).resolve().with_name("setup_llvm.py")
sys.path.insert(0, str(SETUP_PY.parent))
_spec = importlib.util.spec_from_file_location("xla_gym_setup_llvm", SETUP_PY)
setup_llvm = importlib.util.module_from_spec(_spec)
sys.modules[_spec.name] = setup_llvm
_spec.loader.exec_module(setup_llvm)


class SetupLlvmTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name, "llvm")
        for patch in (
            mock.patch.object(setup_llvm, "PREFIX", self.folder),
            mock.patch.dict(os.environ),
        ):
            patch.start()
            self.addCleanup(patch.stop)
        os.environ.pop("LLVM_SYS_191_PREFIX", None)

    def make(self, version="19.1.7", without=()):
        for name in setup_llvm.NEEDED:
            if name in without:
                continue
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"#!/bin/sh\necho {version}\n")
            path.chmod(0o755)

    def ensure(self):
        """Runs a set-up; returns what it printed and what it installed."""
        output = io.StringIO()
        with (
            mock.patch.object(setup_llvm.setup, "install_packages") as install,
            contextlib.redirect_stdout(output),
        ):
            install.side_effect = lambda packages: self.make()
            setup_llvm.ensure_llvm()
        return output.getvalue(), [call.args[0] for call in install.call_args_list]

    def refusal(self, text):
        return self.assertRaisesRegex(setup_llvm.SetupError, text)

    def test_what_is_there_is_kept(self):
        self.make()
        self.assertEqual(self.ensure(), ("", []))

    def test_what_is_missing_is_installed_once(self):
        output, installed = self.ensure()
        self.assertIn("there is no", output)
        expected = [
            "clang-19",
            "libclang-rt-19-dev",
            "libpolly-19-dev",
            "libzstd-dev",
            "llvm-19",
            "llvm-19-dev",
        ]
        self.assertEqual(installed, [expected])
        self.assertEqual(self.ensure(), ("", []))

    def test_only_what_is_missing_is_named(self):
        self.make(without=["bin/clang"])
        output, installed = self.ensure()
        self.assertIn("lacks bin/clang\n", output)
        self.assertEqual(installed, [["clang-19", "libpolly-19-dev", "libzstd-dev"]])

    def test_another_version_is_refused(self):
        self.make(version="14.0.6")
        with self.refusal("holds LLVM 14.0.6, not 19"):
            self.ensure()

    def test_llvm_config_that_does_not_run(self):
        self.make()
        (self.folder / "bin/llvm-config").write_text("#!/bin/sh\nexit 1\n")
        self.assertIn("does not run", setup_llvm.problem(self.folder))

    def test_a_named_folder_is_taken_and_never_filled(self):
        self.make()
        with mock.patch.object(setup_llvm, "PREFIX", self.folder / "other"):
            os.environ["LLVM_SYS_191_PREFIX"] = str(self.folder)
            self.assertEqual(self.ensure(), ("", []))
            os.environ["LLVM_SYS_191_PREFIX"] = str(self.folder / "nowhere")
            with self.refusal("LLVM_SYS_191_PREFIX does not lead"):
                self.ensure()

    def test_without_root_the_command_is_said(self):
        no_root = mock.patch.object(setup_llvm.setup.os, "geteuid", return_value=1000)
        with contextlib.redirect_stdout(io.StringIO()), no_root:
            with self.refusal("sudo apt-get install .* llvm-19-dev\n.*works without it"):
                setup_llvm.ensure_llvm()

    def test_check_installs_nothing(self):
        environment = {**os.environ, "LLVM_SYS_191_PREFIX": str(self.folder)}
        command = [sys.executable, str(SETUP_PY), "--check"]

        def check():
            return subprocess.run(
                command, env=environment, capture_output=True, text=True, check=False
            )

        run = check()
        self.assertEqual((run.returncode, run.stdout), (1, ""))
        self.assertIn("make setup-llvm", run.stderr)
        self.make()
        run = check()
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        self.assertIn("19.1.7 is ready", run.stdout)


if __name__ == "__main__":
    unittest.main()
