#!/usr/bin/env python3
"""Measures what a user of the library pays while compiling: time, memory and size of LeNet-5's
training program, the time that including the whole library or a part of it takes, and the same for
each workload of the benchmark as a program of its own; the first program of the README, with
and without the kernels that are compiled once; programs of more and more equal blocks.

usage: compile_time.py [--include DIR ...] [--compilers g++ clang++-19] [--rounds 3]
                       [--workloads [NAME ...]] [--blocks] [--report docs/performance.md]

One compiler runs at a time. The memory is the largest that one process of the compiler used. The
start is that of the whole process, from its creation to its end after three steps.
"""
import argparse
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import peers
import report

HERE = pathlib.Path(__file__).resolve().parent
INCLUDE = HERE.parent / "include"
THEMES = ["nn.hpp", "run.hpp", "train.hpp", "data.hpp", "files.hpp"]  # the parts of cella.hpp
BLOCKS = {"dense": (2, 32), "residual": (8, 20, 48), "gpt": (1, 4, 12, 48)}  # compile_time/equal_blocks.cpp
# As the target cella::cella has them.
GNU = ["-fconstexpr-ops-limit=1000000000", "-fconstexpr-loop-limit=10000000", "--param=ggc-min-heapsize=262144"]
CLANG = ["-fconstexpr-steps=1000000000"]


def flags(compiler, directories):
    own = CLANG if "clang" in compiler else GNU
    return ["-std=c++20", *own, "-ffp-contract=fast", f"-I{INCLUDE}", *(f"-I{d}" for d in directories)]


def run(command, cwd=None):
    """(wall seconds, user seconds, peak MB, standard error) of one command; ends the script if it
    fails."""
    with tempfile.TemporaryFile() as errors:
        start = time.monotonic()
        process = subprocess.Popen(command, cwd=cwd, stdout=subprocess.DEVNULL, stderr=errors)
        _, status, used = os.wait4(process.pid, 0)
        wall = time.monotonic() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        errors.seek(0)
        if process.returncode:
            sys.exit(f"{' '.join(map(str, command))}\n" + errors.read().decode(errors="replace")[-2000:])
    return wall, used.ru_utime, used.ru_maxrss / 1024


def repeated(command, rounds, patience, cwd=None):
    """The run with the least user time: what others do on the machine only adds to it."""
    runs = []
    for _ in range(rounds):
        report.wait_until_quiet(patience)
        runs.append(run(command, cwd))
    return min(runs, key=lambda r: r[1])


def measure(compiler, options, directory):
    """Rows of the table."""
    base = [compiler, *flags(compiler, options.include)]
    source = HERE / "compile_time" / "lenet_training.cpp"
    program = directory / "lenet_training"
    rows = []
    wall, user, memory = repeated([*base, "-O3", "-march=native", source, "-o", program, "-pthread"],
                                  options.rounds, options.patience)
    subprocess.run(["strip", program], check=True)
    starts = []
    for _ in range(20):
        starts.append(run([program, "3"])[0] * 1e3)
    rows.append(["LeNet-5 training program, -O3 -march=native", f"{wall:.1f}", f"{user:.1f}",
                 f"{memory:.0f}", f"{program.stat().st_size / 1e3:.0f}",
                 f"{statistics.median(starts):.1f} ({min(starts):.1f})"])
    for label, own in [("first_model", []), ("first_model with cella::kernels", ["-DCELLA_KERNELS"])]:
        wall, user, memory = repeated(
            [*base, "-O3", "-march=native", *own, "-c", HERE.parent / "examples" / "first_model.cpp",
             "-o", directory / "first_model.o"], options.rounds, options.patience)
        rows.append([f"{label}, -O3 -march=native", f"{wall:.1f}", f"{user:.1f}", f"{memory:.0f}", "", ""])
    for header in ["cella.hpp", *THEMES]:
        empty = directory / "include.cpp"
        empty.write_text(f"#include <cella/{header}>\nint main() {{}}\n")
        wall, user, memory = repeated([*base, "-O0", "-c", empty, "-o", directory / "include.o"],
                                      options.rounds, options.patience)
        rows.append([f"#include <cella/{header}>, -O0", f"{wall:.1f}", f"{user:.1f}", f"{memory:.0f}",
                     "", ""])
    return rows


def measure_workloads(compiler, options, directory):
    """Rows of the table of workloads."""
    base = [compiler, *flags(compiler, options.include), "-O3", "-march=native", "-pthread",
            f"-I{HERE / 'workload'}", "-DCELLA_WORKLOAD_WITHOUT_PROFILE"]
    rows = []
    for name in options.workloads:
        program = directory / name
        wall, user, memory = repeated(
            [*base, f"-DCELLA_WORKLOAD={name}", f'-DCELLA_WORKLOAD_SOURCE="{name}.cpp"',
             HERE / "compile_time" / "workload_alone.cpp", "-o", program],
            options.rounds, options.patience)
        subprocess.run(["strip", program], check=True)
        rows.append([f"`{name}`", f"{wall:.1f}", f"{user:.1f}", f"{memory:.0f}",
                     f"{program.stat().st_size / 1e3:.0f}"])
    return rows


def measure_blocks(compiler, options, directory):
    """Rows of the table of equal blocks."""
    base = [compiler, *flags(compiler, options.include), "-O3", "-march=native", "-pthread"]
    rows = []
    for kind, counts in BLOCKS.items():
        for count in counts:
            wall, user, memory = repeated(
                [*base, f"-DCELLA_BLOCKS={count}", f"-DCELLA_BLOCK_KIND={kind}",
                 HERE / "compile_time" / "equal_blocks.cpp", "-o", directory / "blocks"],
                1, options.patience)
            run([directory / "blocks"])
            rows.append([kind, str(count), f"{wall:.1f}", f"{user:.1f}", f"{memory:.0f}"])
    return rows


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--include", nargs="+", default=[], help="where the dependencies' headers are")
    p.add_argument("--compilers", nargs="+", default=["g++", "clang++-19"])
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--workloads", nargs="*", metavar="NAME",
                   help="compile these with the first compiler too; without a name, all")
    p.add_argument("--blocks", action="store_true", help="compile programs of equal blocks, too")
    p.add_argument("--patience", type=float, default=60,
                   help="seconds to wait for other processes before each run")
    p.add_argument("--report", metavar="FILE",
                   help="Markdown file whose section <!-- compile time --> takes the table")
    options = p.parse_args()
    if options.workloads == []:
        # That one is planned at run time, by the kernels' library.
        options.workloads = [name for name in peers.AIMS if name != "vit_8"]
    rows, used, alone, blocks = [], [], [], []
    with tempfile.TemporaryDirectory() as directory:
        for compiler in options.compilers:
            if report.first_line(compiler, "--version") is None:
                print(f"{compiler} cannot be run", file=sys.stderr)
                continue
            used.append(compiler)
            rows += [[f"{compiler}: {row[0]}", *row[1:]]
                     for row in measure(compiler, options, pathlib.Path(directory))]
        if options.workloads and used:
            alone = measure_workloads(used[0], options, pathlib.Path(directory))
        if options.blocks and used:
            blocks = measure_blocks(used[0], options, pathlib.Path(directory))
    header = ["compilation", "wall s", "user s", "compiler's peak MB", "stripped size kB",
              "process of three steps ms: median (min)"]
    text = [*report.machine(used), "", *report.table(header, rows)]
    if alone:
        text += ["", f"Each workload as a program of its own, {used[0]} -O3 -march=native:", "",
                 *report.table(["workload", "wall s", "user s", "compiler's peak MB",
                                "stripped size kB"], alone)]
    if blocks:
        text += ["", f"Training programs of equal blocks, {used[0]} -O3 -march=native (`compile_time/equal_blocks.cpp`):", "",
                 *report.table(["kind", "blocks", "wall s", "user s", "compiler's peak MB"], blocks)]
    if options.report:
        report.replace_section(options.report, "compile time", text)
    else:
        print("\n".join(text))


if __name__ == "__main__":
    main()
