"""Runs a Python script in a virtual environment with the versions of packages that it asks for.

Usage: python run_in_venv.py VENV REQUIREMENTS SCRIPT ARGUMENTS...

REQUIREMENTS is a file for pip with a version and hashes for every package. The environment is made
on first use and whenever the interpreter changes, and filled when that file changes. If the packages cannot be had, this
exits with 77, which CTest counts as skipped; where the environment variable CI is set, with 1, since
nobody reads there what was skipped. Packages with other hashes are always a failure.
"""

import hashlib
import os
import subprocess
import sys
import venv
from pathlib import Path

SKIPPED = 77
INSTALL = "-m pip install --disable-pip-version-check --no-deps --require-hashes --only-binary :all:"


def in_ci():
    return os.environ.get("CI", "").lower() not in ("", "0", "false")


def missing(fault):
    """The exit status if the packages cannot be had."""
    print(f"{'failed' if in_ci() else 'skipped'}: {fault}", flush=True)
    return 1 if in_ci() else SKIPPED


def main(folder, requirements, script, *arguments):
    python = Path(folder) / "bin" / "python"
    stamp = Path(folder) / "holds"
    made = sys.version + "\n"
    filled = made + hashlib.sha256(Path(requirements).read_bytes()).hexdigest()
    state = stamp.read_text() if stamp.exists() else ""
    if state != filled:
        try:
            if not state.startswith(made):
                venv.create(folder, with_pip=True, clear=True)
            stamp.write_text(made)
        except (OSError, subprocess.CalledProcessError) as fault:
            return missing(f"no virtual environment can be made in {folder}: {fault}")
        pip = subprocess.run(
            [python, *INSTALL.split(), "-r", requirements], capture_output=True, text=True
        )
        print(pip.stdout, pip.stderr, sep="", flush=True)
        if "DO NOT MATCH THE HASHES" in pip.stderr:
            print(f"failed: the packages are not those of {requirements}", flush=True)
            return 1
        if pip.returncode != 0:
            return missing(f"the packages of {requirements} cannot be installed")
        stamp.write_text(filled)
    return subprocess.run([python, script, *arguments]).returncode


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
