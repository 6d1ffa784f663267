#!/usr/bin/env python3
"""Times the programs of this folder beside a tool of the GradBench suite, one after the other, and
prints docs/gradbench.md's table: least times of all runs. Exit status 1 if a result is wrong."""
import argparse
import json
import pathlib
import subprocess
import sys

FUNCTIONS = {  # of each problem: the function, its derivative
    "det": ("primal", "gradient"), "llsq": ("primal", "gradient"), "lse": ("primal", "gradient"),
    "kmeans": ("cost", "dir"), "ht": ("objective", "jacobian"), "ba": ("objective", "jacobian"),
    "gmm": ("objective", "jacobian"), "lstm": ("objective", "jacobian"),
    "ode": ("primal", "gradient")}


def close(found, wanted):
    """As the suite's run.py compares."""
    if isinstance(wanted, dict):
        return isinstance(found, dict) and all(
            k in found and close(found[k], wanted[k]) for k in wanted)
    if isinstance(wanted, list):
        return (isinstance(found, list) and len(found) == len(wanted)
                and all(map(close, found, wanted)))
    if isinstance(wanted, (int, float)):
        return abs(found - wanted) <= 1e-6 * max(1, abs(wanted))
    return found == wanted


def least(tool, suite, name, function):
    """The least time of a run in milliseconds, and whether the result is right."""
    program = [tool / name.split("_")[0], suite / "in" / f"{name}.json", function]
    lines = subprocess.run(program, capture_output=True, text=True, check=True).stdout.splitlines()
    wanted = json.loads((suite / "reference" / f"{name}.{function}.json").read_text())
    times = [json.loads(line)["nanoseconds"] for line in lines[1:] if '"evaluate"' in line]
    return min(times) / 1e6, close(json.loads(lines[0]), wanted)


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("suite", type=pathlib.Path, help="the suite's folder")
    p.add_argument("ours", type=pathlib.Path, help="the folder of these programs")
    p.add_argument("theirs", type=pathlib.Path, help="a folder of the suite's programs")
    p.add_argument("--rounds", type=int, default=3)
    options = p.parse_args()
    wrong = []
    print(f"| input | ours | {options.theirs.name} | ratio | function | derivative / function |")
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    for problem, (function, derivative) in FUNCTIONS.items():
        for file in sorted((options.suite / "in").glob(f"{problem}_*.json")):
            best = {}
            for _ in range(options.rounds):
                for key in ((options.theirs, derivative), (options.ours, derivative),
                            (options.ours, function)):
                    time, right = least(key[0], options.suite, file.stem, key[1])
                    best[key] = min(time, best.get(key, time))
                    if not right:
                        wrong.append(f"{key[0]}: {file.stem} {key[1]}")
            ours, theirs = best[options.ours, derivative], best[options.theirs, derivative]
            own = best[options.ours, function]
            print(f"| {file.stem} | {ours:.3g} | {theirs:.3g} | {theirs / ours:.2g} | {own:.3g} "
                  f"| {ours / own:.2g} |", flush=True)
    for w in sorted(set(wrong)):
        print("wrong:", w, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
