#!/usr/bin/env python3
"""Measures what lies between an edit of a model and its first training step, as a compiled program
and in development (the target cella::development): seconds of the compiler and the linker, seconds
of the program until its first step is done.

usage: development_loop.py [--include DIR ...] [--compiler g++] [--rounds 3] [--no-compiled]

Each figure is the least of the rounds: what others do on the machine only adds to it, and so does
a host that hands out memory page by page to whoever touches it first. The kernels and the
precompiled header, which an edit does not touch, are made before.
"""
import argparse
import pathlib
import subprocess
import tempfile

import compile_time

HERE = pathlib.Path(__file__).resolve().parent


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--include", nargs="*", default=[])
    parser.add_argument("--compiler", default="g++")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--no-compiled", action="store_true", help="measure development only")
    options = parser.parse_args()

    base = [options.compiler, *compile_time.flags(options.compiler, options.include), "-march=native", "-pthread"]
    development = ["-DCELLA_KERNELS", "-DCELLA_DEVELOPMENT"]
    with tempfile.TemporaryDirectory() as name:
        directory = pathlib.Path(name)
        kernels = directory / "kernels.o"
        subprocess.run([*base, "-O2", "-DCELLA_KERNELS", "-c", compile_time.INCLUDE / "cella" / "kernels.cpp",
                        "-o", kernels], check=True)
        variants = [] if options.no_compiled else [("compiled, -O3", ["-O3"], []), ("compiled, -O1", ["-O1"], [])]
        for level in ["-O1", "-O0"]:
            header = directory / f"precompiled{level}" / "model.hpp"
            header.parent.mkdir()
            header.write_text("#include <cella/train/development.hpp>\n")
            own = [level, *development]
            subprocess.run([*base, *own, "-x", "c++-header", header, "-o", f"{header}.gch"], check=True)
            variants.append((f"development, {level}", own, [kernels]))
            variants.append(("the same, header precompiled", [*own, "-include", header], [kernels]))

        print("| model | how | compile s | to the first step s |\n| --- | --- | ---: | ---: |")
        for model in ["lenet5", "resnet50", "gpt"]:
            source = HERE / "compile_time" / f"{model}_step.cpp"
            for label, flags, objects in variants:
                program = directory / "program"
                command = [*base, *flags, source, *objects, "-o", program, "-lz"]
                wall = min(compile_time.run(command)[0] for _ in range(options.rounds))
                start = min(compile_time.run([program])[0] for _ in range(options.rounds))
                print(f"| {model} | {label} | {wall:.1f} | {start:.2f} |", flush=True)


if __name__ == "__main__":
    main()
