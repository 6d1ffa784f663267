#!/usr/bin/env python3
"""Lets the compiler read the benchmarks that nothing builds here, so that none is broken unnoticed.

usage: read_benchmarks.py BUILD    a configured build folder with compile_commands.json
"""
import json
import os
import shlex
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path


def is_read(file: str) -> bool:
    """All but GradBench's, which are built, and workloads, of which a small one stands for the others."""
    of_workloads = "/benchmarks/workload/" in file and not file.endswith("/lenet1_infer.cpp")
    return "/benchmarks/" in file and "/gradbench/" not in file and not of_workloads


def read(entry: dict) -> bool:
    words = shlex.split(entry["command"])
    output = words.index("-o")
    del words[output:output + 2]
    run = subprocess.run(words + ["-fsyntax-only"], cwd=entry["directory"], capture_output=True, text=True)
    if run.returncode:
        print(f"{entry['file']}\n{run.stderr[:4000]}", file=sys.stderr)
    return run.returncode == 0


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    entries = json.loads(Path(sys.argv[1], "compile_commands.json").read_text())
    entries = [e for e in entries if is_read(e["file"])]
    if not entries:
        sys.exit("read_benchmarks.py: this folder compiles no benchmarks; configure it with the preset release")
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        broken = list(pool.map(read, entries)).count(False)
    print(f"{len(entries) - broken} of {len(entries)} files of benchmarks compile")
    sys.exit(broken > 0)


if __name__ == "__main__":
    main()
