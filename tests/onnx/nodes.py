"""Runs ONNX's own tests, which the package onnx carries, and compares the score with the one in docs.

Usage: python nodes.py ONNX_NODES PAGE
"""

import importlib.util
import subprocess
import sys
from pathlib import Path

program, page = sys.argv[1:]
# Found, not imported: its tests are data, and need nothing of what the package itself needs.
folder = Path(importlib.util.find_spec("onnx").submodule_search_locations[0]).parent
sys.exit(subprocess.run([program, folder, "--page", page, "--check"]).returncode)
