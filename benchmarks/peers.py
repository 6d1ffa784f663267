#!/usr/bin/env python3
"""Times Cella's workloads and those of other frameworks on this machine, alternately.

Every measurement is a process of its own, and only one runs at a time. A peer is a command; in it,
{workload} and {threads} are replaced. It prints a line of JSON as `workload` does, or a line with
"median X ms min Y". NAME may be limited: libtorch:lenet32:1=... is run for that workload with one
thread only. For example

  benchmarks/peers.py --cella build/release/benchmarks/workload --rounds 3 \\
      --peer 'torch=bash run.sh DIR torch {workload} {threads}' \\
      --peer 'libtorch:lenet32:1=./libtorch_lenet' \\
      --lines performance.jsonl --report docs/performance.md

Each line also says how many processors other processes used meanwhile ("others"), and how much
time the machine's host took away ("stolen"): figures from a busy machine say little.
"""
import argparse
import collections
import itertools
import json
import os
import re
import resource
import statistics
import subprocess
import sys
import time

import report

# How many times as fast as the fastest peer each is meant to be, with one thread and with two.
AIMS = {
    "lenet32": (8, 8), "lenet256": (6, 6), "lenet1_infer": (4, 4),
    "mlp32": (1.8, 1.8), "mlp128_wide": (1.2, 1.2), "mlp1_infer": (6, 6),
    "resnet20_32": (2.2, 2.2), "resnet20_1_infer": (1.8, 1.8),
    "resnet50_8": (1.5, 1.5), "resnet50_1_infer": (1.2, 1.2),
    "gpt_8": (1.35, 1.35), "gpt_1_infer": (1.2, 1.2), "lstm64": (1.35, 1.35),
    "mobilenet2_1_infer": (1.3, 1.3), "bert_base_1_infer": (1.15, 1.15), "gpt_decode": (1.3, 1.3),
    "resnet50_32_infer": (1.2, 1.2), "gru128": (1.3, 1.3), "embedding_bag": (2, 2),
    "unet_4": (1.4, 1.4), "vit_8": (1.3, 1.3),
}
MEMORY_AIM = 0.6  # of the most frugal peer's
# Seconds from the start to the third step.
START_AIMS = {"resnet50_8": 1.0, "resnet50_1_infer": 1.0} | {
    name: 0.1 for name in AIMS if name.startswith(("lenet", "mlp", "resnet20"))}


def arguments():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--cella", metavar="PROGRAM", help="the program `workload`")
    p.add_argument("--peer", action="append", default=[], metavar="NAME[:WORKLOAD[:THREADS]]=COMMAND")
    p.add_argument("--workloads", nargs="+", default=list(AIMS))
    p.add_argument("--threads", nargs="+", type=int, default=[1, 2])
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--patience", type=float, default=60,
                   help="seconds to wait for other processes before each measurement")
    p.add_argument("--lines", metavar="FILE", help="append each measurement as a line of JSON")
    p.add_argument("--from", dest="old", nargs="+", metavar="FILE",
                   help="measure nothing: take the lines of these files")
    p.add_argument("--report", metavar="FILE",
                   help="Markdown file whose sections <!-- peers KIND --> and <!-- aims KIND --> take "
                        "the tables; default: print")
    p.add_argument("--kind", default="", help="of machine, for which the report has tables of their own")
    return p.parse_args()


def peers_of(options):
    """[(name, workload or None, threads or None, command)], Cella last."""
    result = []
    for text in options.peer:
        key, sep, command = text.partition("=")
        parts = key.split(":")
        if not sep or len(parts) > 3:
            sys.exit(f"--peer {text!r} is not NAME[:WORKLOAD[:THREADS]]=COMMAND")
        parts += [None] * (3 - len(parts))
        result.append((parts[0], parts[1], int(parts[2]) if parts[2] else None, command))
    if options.cella:
        result.append(("cella", None, None, options.cella + " {workload} {threads}"))
    return result


def run(command, threads):
    """Runs a command: (standard output, seconds it took)."""
    environment = dict(os.environ, OMP_NUM_THREADS=str(threads), MKL_NUM_THREADS=str(threads),
                       OPENBLAS_NUM_THREADS=str(threads))
    start = time.monotonic()
    process = subprocess.Popen(["bash", "-c", command], env=environment, text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    output, errors = process.communicate()
    if process.returncode:
        last = (errors or output).strip().splitlines()[-1:]
        raise RuntimeError(f"ended with {process.returncode}: {' '.join(last)}")
    return output, time.monotonic() - start


def measure(name, command, workload, threads, patience):
    command = command.replace("{workload}", workload).replace("{threads}", str(threads))
    report.wait_until_quiet(patience)
    busy, stolen = report.processor_seconds()
    own = resource.getrusage(resource.RUSAGE_CHILDREN)
    output, seconds = run(command, threads)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    own = used.ru_utime + used.ru_stime - own.ru_utime - own.ru_stime
    now_busy, now_stolen = report.processor_seconds()
    line = None
    for text in output.splitlines():
        found = re.search(r"median ([\d.]+) ms min ([\d.]+)", text)
        if text.startswith("{"):
            line = json.loads(text)
        elif found:
            version = re.search(r"\d+\.\d+(\.\d+)?", text[:found.start()])
            line = dict(version=version[0] if version else "", median_ms=float(found[1]),
                        min_ms=float(found[2]))
    if line is None:
        raise RuntimeError(f"printed no measurement: {output[-200:]!r}")
    line.update(framework=name, workload=workload, threads=threads,
                others=round(max(0.0, now_busy - busy - own) / seconds, 3),
                stolen=round((now_stolen - stolen) / seconds, 3))
    return line


def measure_all(options):
    lines, failed = [{"machine": report.machine()}], set()

    def keep(line):
        if options.lines:
            with open(options.lines, "a") as f:
                f.write(json.dumps(line) + "\n")

    keep(lines[0])
    for round_ in range(options.rounds):
        for workload, threads in itertools.product(options.workloads, options.threads):
            for name, only_workload, only_threads, command in peers_of(options):
                if only_workload not in (None, workload) or only_threads not in (None, threads):
                    continue
                if (name, workload, threads) in failed:
                    continue
                try:
                    line = measure(name, command, workload, threads, options.patience)
                except RuntimeError as e:
                    failed.add((name, workload, threads))
                    print(f"{name} {workload} {threads}: {e}", file=sys.stderr)
                    continue
                line["round"] = round_ + 1
                lines.append(line)
                print(json.dumps(line), file=sys.stderr, flush=True)
                keep(line)
    return lines


def load(path):
    """The lines of a file that `--lines` has written."""
    with open(path) as f:
        return [json.loads(line) for line in f if line.strip()]


def combined(lines):
    """{(workload, threads): {framework: figures over all rounds}}: the median of the medians, the
    least of the minima."""
    groups = collections.defaultdict(lambda: collections.defaultdict(list))
    for line in lines:
        if "machine" in line:
            continue
        groups[line["workload"], line["threads"]][line["framework"]].append(line)
    result = {}
    for key, frameworks in groups.items():
        result[key] = {}
        for name, rows in frameworks.items():
            starts = [r["to_third_step_s"] for r in rows if r.get("to_third_step_s") is not None]
            sizes = [r["peak_rss_mb"] for r in rows if r.get("peak_rss_mb") is not None]
            result[key][name] = dict(
                median=statistics.median(r["median_ms"] for r in rows),
                minimum=min(r["min_ms"] for r in rows),
                start=statistics.median(starts) if starts else None,
                memory=max(sizes) if sizes else None,
                share=peak_share(rows))
    return result


def peak_share(rows):
    """What the fastest step reaches of the multiply-add peak, where a framework counts that."""
    counted = [r for r in rows if r.get("gflop") and r.get("peak_gflops")]
    if not counted:
        return None
    # The peak is a property of the machine, and what disturbs its measurement only lowers it.
    peak = max(r["peak_gflops"] for r in counted)
    return counted[0]["gflop"] * 1e3 / min(r["min_ms"] for r in counted) / peak


def number(x, digits=3):
    return "" if x is None else f"{x:.{digits}g}" if abs(x) < 1000 else f"{x:.0f}"


def percent(x):
    return "" if x is None else f"{100 * x:.0f} %"


def verdict(reached, aim):
    return f"{reached:.2f}" + ("" if reached >= aim else f" (aim {aim:g})")


def aims_table(lines):
    """Where Cella stands beside the fastest peer, the most frugal peer, and its own aims: a figure
    that misses its aim has the aim beside it."""
    all_figures = combined(lines)
    rows = []
    for workload, aims in AIMS.items():
        row = [f"`{workload}`"]
        memory = start = share = None
        for threads, aim in zip((1, 2), aims):
            frameworks = all_figures.get((workload, threads), {})
            own = frameworks.get("cella")
            others = [f for name, f in frameworks.items() if name != "cella"]
            if not own or not others:
                row += ["", ""]
                continue
            for figure in ("median", "minimum"):
                ratio = min(f[figure] for f in others) / own[figure]
                row.append(verdict(ratio, aim) if aim else f"{ratio:.2f}")
            if threads == 1:
                sizes = [f["memory"] for f in others if f["memory"]]
                memory = own["memory"] / min(sizes) if sizes and own["memory"] else None
                start, share = own["start"], own["share"]
        row.append(percent(share))
        row.append("" if memory is None else
                   percent(memory) + ("" if memory <= MEMORY_AIM else f" (aim {percent(MEMORY_AIM)})"))
        limit = START_AIMS.get(workload, float("inf"))
        row.append("" if start is None else number(start) + ("" if start <= limit else f" (aim {limit:g})"))
        if any(row[1:]):
            rows.append(row)
    header = ["workload", "1 thread: median", "min", "2 threads: median", "min", "share of peak",
              "memory of the most frugal peer's", "start to third step s"]
    return report.table(header, rows)


def markdown(lines):
    machines = [line["machine"] for line in lines if "machine" in line]
    lines = [line for line in lines if "machine" not in line]
    versions = {line["framework"]: line.get("version", "") for line in lines}
    counts = collections.Counter((r["workload"], r["threads"], r["framework"]) for r in lines)
    rounds = "-".join(str(n) for n in sorted({min(counts.values()), max(counts.values())}))
    busy = sorted(line.get("others", 0) for line in lines)
    text = [*(machines[-1] if machines else []),
            "- frameworks: " + ", ".join(f"{n} {v}".strip() for n, v in sorted(versions.items())),
            f"- {rounds} measurements of each, one process at a time; meanwhile other processes used "
            f"{busy[0]:.2f} to {busy[-1]:.2f} processors (median {statistics.median(busy):.2f})", ""]
    header = ["workload", "framework", "median ms", "min ms", "median against the fastest peer",
              "min against the fastest peer", "share of peak", "start to third step s", "peak memory MB"]
    threads_seen = sorted({line["threads"] for line in lines})
    for threads in threads_seen:
        rows = []
        for (workload, t), frameworks in combined(lines).items():
            if t != threads:
                continue
            others = [f for n, f in frameworks.items() if n != "cella"]
            for name, f in sorted(frameworks.items(), key=lambda item: item[1]["median"]):
                ratios = ["", ""]
                if others:
                    ratios = [f"{min(o[k] for o in others) / f[k]:.2f}x" for k in ("median", "minimum")]
                rows.append([workload, f"**{name}**" if name == "cella" else name,
                             number(f["median"]), number(f["minimum"]), *ratios,
                             percent(f["share"]), number(f["start"]), number(f["memory"])])
        text += [f"### {threads} thread{'s' * (threads > 1)}", "", *report.table(header, rows), ""]
    return text[:-1]


def main():
    options = arguments()
    if options.old:
        lines = [line for path in options.old for line in load(path)]
    else:
        if not options.cella and not options.peer:
            sys.exit("name something to measure: --cella or --peer, or --from for old lines")
        lines = measure_all(options)
    if all("machine" in line for line in lines):
        sys.exit("there are no measurements")
    text, aims = markdown(lines), aims_table(lines)
    if options.report:
        report.replace_section(options.report, f"peers {options.kind}".strip(), text)
        if len(aims) > 2:
            report.replace_section(options.report, f"aims {options.kind}".strip(), aims)
    else:
        print("\n".join([*text, "", *aims]))


if __name__ == "__main__":
    main()
