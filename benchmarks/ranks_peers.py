#!/usr/bin/env python3
"""Times training steps on two ranks of one thread each beside PyTorch's DDP and FSDP (gloo), alternately, and
beside what the simulator predicts; Cella also on one rank with two threads. For example

  benchmarks/ranks_peers.py --programs build/release/benchmarks --python VENV/bin/python --report docs/parallel.md

PYTHON has PyTorch. Ranks of Cella are processes of MPI (mpiexec), and threads. The topology that predictions
use is measured first, by cella-measure-mesh. A time is the median of the rounds' medians.
"""
import argparse
import collections
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

import report

WORKLOADS = ("resnet20_32", "gpt_8", "mlp128_wide", "lenet32")
AIM = 1.4  # times as fast as the faster of the two
EXPOSED = 0.05  # of the step


def arguments():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--programs", metavar="FOLDER", type=pathlib.Path,
                   help="with the programs `ranks` and `cella-measure-mesh`")
    p.add_argument("--python", metavar="PYTHON", help="with PyTorch; without it there are no peers")
    p.add_argument("--mpiexec", default="mpiexec")
    p.add_argument("--workloads", nargs="+", default=WORKLOADS, choices=WORKLOADS)
    p.add_argument("--rounds", type=int, default=2)
    p.add_argument("--patience", type=float, default=60,
                   help="seconds to wait for other processes before each measurement")
    p.add_argument("--lines", metavar="FILE", help="append each measurement as a line of JSON")
    p.add_argument("--from", dest="old", metavar="FILE", help="measure nothing: take the lines of this file")
    p.add_argument("--report", metavar="FILE", help="Markdown file whose section <!-- ranks KIND --> takes the tables")
    p.add_argument("--kind", default="", help="of processor, where the file has sections for several")
    return p.parse_args()


def run(o, *command):
    report.wait_until_quiet(o.patience)
    environment = dict(os.environ, OMP_NUM_THREADS="1", MKL_NUM_THREADS="1")
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, env=environment)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}: {done.stderr.strip()[-400:]}")
    return done.stdout


def measure(o, folder):
    mpi = [o.mpiexec, "--oversubscribe", "--allow-run-as-root", "-n", "2"]
    starts = {"threads": ([], ["--threads-as-ranks"]), "mpi": (mpi, [])}
    for name, (before, behind) in starts.items():
        run(o, *before, o.programs / "cella-measure-mesh", "--output", folder / name, *behind)
    here = pathlib.Path(__file__).resolve().parent
    lines = []
    for round_ in range(o.rounds):
        for workload in o.workloads:
            found = []
            for name, (before, behind) in starts.items():
                for mode in ("data", "zero3"):
                    found.append((f"cella {name} {mode}", run(
                        o, *before, o.programs / "ranks", workload, "--mode", mode, "--topology", folder / name,
                        *behind)))
            found.append(("cella two threads", run(
                o, o.programs / "ranks", workload, "--mesh", "data=1", "--mode", "serial", "--threads", "2",
                "--threads-as-ranks")))
            for peer in ("ddp", "fsdp") if o.python else ():
                found.append((peer, run(o, o.python, here / "ranks_torch.py", peer, workload)))
            for name, text in found:
                line = dict(json.loads(text.strip().splitlines()[-1]), name=name, round=round_ + 1)
                print(json.dumps(line), file=sys.stderr, flush=True)
                lines.append(line)
                if o.lines:
                    with open(o.lines, "a") as f:
                        f.write(json.dumps(line) + "\n")
    return lines


def markdown(lines):
    groups = collections.defaultdict(lambda: collections.defaultdict(list))
    for line in lines:
        groups[line["workload"]][line["name"]].append(line)

    def middle(rows, key="median_ms"):
        return statistics.median(r[key] for r in rows)

    times, costs = [], []
    for workload, names in groups.items():
        ms = {name: middle(rows) for name, rows in names.items()}
        row = [f"`{workload}`"] + [f"{ms[n]:.3g}" for n in ("cella threads data", "cella mpi data")]
        row += [f"{ms[n]:.3g}" if n in ms else "" for n in ("ddp", "cella mpi zero3", "fsdp")]
        for kind in ("threads", "mpi"):
            ratio = min(ms["ddp"], ms["fsdp"]) / ms[f"cella {kind} data"] if "ddp" in ms else None
            row.append("" if ratio is None else f"{ratio:.2f}" + ("" if ratio >= AIM else f" (aim {AIM:g})"))
        row += [f"{ms['cella two threads']:.3g}", f"{ms['cella two threads'] / ms['cella threads data']:.2f}"]
        times.append(row)
        for name, rows in names.items():
            if "predicted_ms" not in rows[0] or rows[0]["ranks"] == 1:
                continue
            share = middle(rows, "exposed_ms") / middle(rows)
            error = middle(rows, "predicted_ms") / middle(rows) - 1
            costs.append([f"`{workload}`, {name.removeprefix('cella ')}", f"{middle(rows):.3g}",
                          f"{middle(rows, 'alone_ms'):.3g}", f"{middle(rows, 'predicted_ms'):.3g}",
                          f"{100 * error:+.0f} %",
                          f"{100 * share:.1f} %" + ("" if share < EXPOSED else f" (aim {100 * EXPOSED:g})"),
                          f"{100 * middle(rows, 'predicted_exposed_ms') / middle(rows, 'predicted_ms'):.1f} %"])
    versions = {line["framework"]: line["version"] for line in lines}
    rounds = max(line["round"] for line in lines)
    return [
        *report.machine(compilers=("g++",)),
        f"- PyTorch {versions.get('ddp', 'was not asked')}; {rounds} {'rounds' if rounds > 1 else 'round'}, medians in milliseconds", "",
        *report.table(["step of", "2 threads as ranks, data", "2 ranks of MPI, data", "DDP", "2 ranks of MPI, zero3",
                       "FSDP", "DDP or FSDP / threads", "/ MPI", "1 rank, 2 threads", "that / threads as ranks"],
                      times), "",
        *report.table(["step of", "measured", "a rank alone", "predicted", "off by", "exchanging, of the step",
                       "predicted"], costs)]


def main():
    o = arguments()
    if o.old:
        lines = [json.loads(line) for line in pathlib.Path(o.old).read_text().splitlines()]
    elif o.programs:
        with tempfile.TemporaryDirectory() as folder:
            lines = measure(o, pathlib.Path(folder))
    else:
        sys.exit("name the programs to measure, --programs, or old lines, --from")
    text = markdown(lines)
    if o.report:
        report.replace_section(o.report, f"ranks {o.kind}".strip(), text)
    else:
        print("\n".join(text))


if __name__ == "__main__":
    main()
