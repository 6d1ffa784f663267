#!/usr/bin/env python3
"""Compiles the gradient of a loop for several trip counts and prints a line of JSON for each: compile
time, size of the graph and of the program, memory, and time per step. All but the memory are to stay
the same.

usage: derivatives_growth.py [--compiler g++] [--steps 10 100 1000 10000] [--report FILE]
"""
import argparse
import json
import pathlib
import subprocess
import tempfile

import compile_time
import report

SOURCE = pathlib.Path(__file__).resolve().parent / "derivatives" / "growth.cpp"


def measure(compiler, steps, directory):
    program = pathlib.Path(directory) / f"growth_{steps}"
    command = [compiler, *compile_time.flags(compiler, []), "-O3", "-march=native", f"-DSTEPS={steps}",
               str(SOURCE), "-o", str(program)]
    _, user, memory = compile_time.run(command)
    subprocess.run(["strip", str(program)], check=True)
    size = program.stat().st_size
    line = json.loads(subprocess.run([program], capture_output=True, text=True, check=True).stdout)
    line.update(compile_seconds=round(user, 2), compiler_mb=round(memory), program_kb=size // 1000)
    print(json.dumps(line), flush=True)
    return line


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--compiler", default="g++")
    p.add_argument("--steps", type=int, nargs="+", default=[10, 100, 1000, 10000])
    p.add_argument("--report", metavar="FILE",
                   help="Markdown file whose section <!-- growth --> takes the table")
    options = p.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        lines = [measure(options.compiler, steps, directory) for steps in options.steps]
    header = ["steps", "compile s", "nodes in the graph", "program kB", "arena kB", "ns per step"]
    rows = [[line["steps"], line["compile_seconds"], line["nodes"], line["program_kb"],
             f"{line['arena_bytes'] / 1000:.1f}", line["nanoseconds_per_step"]] for line in lines]
    if options.report:
        report.replace_section(options.report, "growth", report.table(header, rows))


if __name__ == "__main__":
    main()
