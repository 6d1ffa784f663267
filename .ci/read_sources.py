#!/usr/bin/env python3
"""Lets a compiler read sources that nothing builds here, so that none is broken unnoticed.

usage: read_sources.py BUILD REGEX    a configured build folder with compile_commands.json; which of its files
"""
import json
import os
import re
import shlex
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path


def read(entry: dict) -> bool:
    words = shlex.split(entry["command"])
    output = words.index("-o")
    del words[output:output + 2]
    run = subprocess.run(words + ["-fsyntax-only"], cwd=entry["directory"], capture_output=True, text=True)
    if run.returncode:
        print(f"{entry['file']}\n{run.stderr[:4000]}", file=sys.stderr)
    return run.returncode == 0


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    build, regex = sys.argv[1:]
    entries = json.loads(Path(build, "compile_commands.json").read_text())
    entries = [e for e in entries if re.search(regex, e["file"])]
    if not entries:
        sys.exit(f"read_sources.py: {build} compiles no file whose name has {regex}; is all of it configured?")
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        broken = list(pool.map(read, entries)).count(False)
    print(f"{len(entries) - broken} of {len(entries)} files compile")
    sys.exit(broken > 0)


if __name__ == "__main__":
    main()
