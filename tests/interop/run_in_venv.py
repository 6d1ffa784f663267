"""Runs a Python script with packages in a virtual environment, which is made on first use.

Usage: python run_in_venv.py VENV PACKAGES SCRIPT ARGUMENTS...     (PACKAGES: `safetensors,numpy`)
Exits with 77, which CTest counts as skipped, if the packages cannot be installed.
"""

import subprocess
import sys
import venv
from pathlib import Path


def main(folder, packages, script, *arguments):
    packages = packages.split(",")
    python = Path(folder) / "bin" / "python"
    probe = [python, "-c", "import " + ",".join(packages)]
    if not python.exists() or subprocess.run(probe, capture_output=True).returncode != 0:
        try:
            venv.create(folder, with_pip=True)
            install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
            subprocess.run([*install, *packages], check=True)
        except (OSError, subprocess.CalledProcessError) as fault:
            print(f"skipped: cannot install {', '.join(packages)} in {folder}: {fault}")
            return 77
    return subprocess.run([python, script, *arguments]).returncode


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
