"""run_in_venv.py runs the script with the right packages, says that it was skipped, or fails.

Usage: python run_in_venv_test.py     (needs no network: it makes a package of its own)
"""

import hashlib
import os
import subprocess
import sys
import tempfile
import unittest
import zipfile
from pathlib import Path

sys.dont_write_bytecode = True  # beside the sources
import run_in_venv


def make_wheel(folder, version):
    """Writes a package with one module and returns its line for pip, with its hash."""
    info = f"tiny-{version}.dist-info"
    files = {
        "tiny.py": f"VERSION = '{version}'\n",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: tiny\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/RECORD": "",
    }
    path = Path(folder) / f"tiny-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        for name, text in files.items():
            wheel.writestr(name, text)
    return f"tiny=={version} --hash=sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}"


class RunInVenv(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.keep = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.keep.cleanup)
        cls.folder = Path(cls.keep.name)
        cls.wheels = cls.folder / "wheels"
        cls.wheels.mkdir()
        cls.lines = {v: make_wheel(cls.wheels, v) for v in ("1.0", "2.0")}
        cls.script = cls.folder / "script.py"
        cls.script.write_text("import sys, tiny; print('ran', tiny.VERSION); sys.exit(5)\n")

    def ran(self, line, ci="", wheels=None):
        requirements = self.folder / "requirements.txt"
        requirements.write_text(line + "\n")
        kept = {k: v for k, v in os.environ.items() if not k.startswith("PIP_")}
        offline = {
            "PIP_CONFIG_FILE": os.devnull,
            "PIP_NO_INDEX": "1",
            "PIP_FIND_LINKS": str(wheels or self.wheels),
            "CI": ci,
        }
        done = subprocess.run(
            [sys.executable, run_in_venv.__file__, self.folder / "venv", requirements, self.script],
            env=kept | offline,
            capture_output=True,
            text=True,
        )
        return done.returncode, done.stdout

    def test_the_script_sees_exactly_the_version_asked_for_and_its_status_is_handed_on(self):
        for version in ("1.0", "2.0", "1.0"):
            status, out = self.ran(self.lines[version])
            self.assertEqual(status, 5, out)
            self.assertIn(f"ran {version}", out)

    def test_packages_that_cannot_be_had_are_skipped_here_and_a_failure_in_ci(self):
        line = "tiny==3.0 --hash=sha256:" + "0" * 64
        for ci, expected in {"": 77, "false": 77, "true": 1, "1": 1}.items():
            status, out = self.ran(line, ci)
            self.assertEqual(status, expected, out)
            self.assertIn("cannot be installed", out)
            self.assertNotIn("ran", out)

    def test_a_package_with_another_hash_and_one_without_are_not_run(self):
        status, out = self.ran("tiny==1.0 --hash=sha256:" + "0" * 64)
        self.assertEqual(status, 1, out)
        self.assertIn("failed: the packages are not those of", out)
        status, out = self.ran("tiny==1.0", ci="true")
        self.assertEqual(status, 1, out)
        self.assertNotIn("ran", out)


if __name__ == "__main__":
    try:
        import ensurepip
    except ImportError:  # a package of its own in some distributions
        sys.exit(run_in_venv.missing("this Python cannot make virtual environments"))
    unittest.main()
