"""A rank that is killed or stopped at a random moment is named, and all ranks end within a stated time.
What the last checkpoint has goes on with fewer ranks and the same batches: the losses are those of ranks
of which none was lost.   lost_ranks.py PROGRAM MPIEXEC [--trials N] [--seed S]"""
import argparse
import json
import os
import pathlib
import random
import signal
import subprocess
import tempfile
import time

TIMEOUT, EVERY = 1.0, 5
SETUPS = (  # ranks, mesh and mode, and what goes on afterwards
    (2, ("--mesh", "data=2"), (1, ("--mesh", "data=1", "--mode", "serial"))),
    (2, ("--mesh", "pipe=2", "--mode", "pipeline"), (1, ("--mesh", "data=1", "--mode", "serial"))),
    (3, ("--mesh", "data=3", "--mode", "zero3"), (2, ("--mesh", "data=2", "--mode", "zero1"))),
    (4, ("--mesh", "data=2,pipe=2", "--mode", "pipeline"), (2, ("--mesh", "data=2", "--mode", "zero3"))),
)


def arguments():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("program")
    p.add_argument("mpiexec")
    p.add_argument("--trials", type=int, default=3)
    p.add_argument("--seed", type=int, default=4)
    return p.parse_args()


def launched(o, ranks, *options):
    line = [o.mpiexec, "--oversubscribe", "--allow-run-as-root", "-n", str(ranks), o.program, "--net", "lenet",
            "--timeout", str(TIMEOUT), *options]
    return subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def process_of(launcher, rank):
    """The process that mpiexec has started for a rank."""
    for name in os.listdir("/proc"):
        try:
            with open(f"/proc/{name}/stat") as file:
                parent = int(file.read().rsplit(")", 1)[1].split()[1])
            with open(f"/proc/{name}/environ") as file:
                if f"OMPI_COMM_WORLD_RANK={rank}\0" in file.read() and parent == launcher.pid:
                    return int(name)
        except (OSError, ValueError, IndexError):
            continue
    raise AssertionError("the ranks have ended: " + launcher.communicate()[1])


def checkpoints(folder):
    """The steps behind each checkpoint that has its index."""
    return sorted(int(p.stem.split("-")[1]) for p in folder.glob("net-*.json"))


def losses(o, folder, ranks, *options):
    path = folder / "losses.json"
    done = launched(o, ranks, "--json", str(path), *options)
    said = done.communicate(timeout=60)[1]
    assert done.returncode == 0, (options, said)
    return json.loads(path.read_text())["losses"]


def lose(o, folder, ranks, options):
    """Loses a rank: (which one, how, the seconds until all had ended, what they said)."""
    lost, how = random.randrange(ranks), random.choice((signal.SIGKILL, signal.SIGSTOP))
    launcher = launched(o, ranks, "--steps", "1000000", "--save", str(folder / "net.json"),
                        "--save-every", str(EVERY), *options)
    try:
        limit = time.monotonic() + 30
        while not checkpoints(folder):
            assert time.monotonic() < limit and launcher.poll() is None, "no checkpoint was written"
            time.sleep(0.005)
        process = process_of(launcher, lost)
        time.sleep(random.uniform(0, 0.4))
        os.kill(process, how)
        begin = time.monotonic()
        said = launcher.communicate(timeout=30)[1]
    finally:
        launcher.kill()
    assert launcher.returncode != 0
    return lost, how, time.monotonic() - begin, said


def main():
    o = arguments()
    random.seed(o.seed)
    slowest = 0
    for trial in range(o.trials):
        ranks, options, (fewer, then) = SETUPS[trial % len(SETUPS)]
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            lost, how, seconds, said = lose(o, folder, ranks, options)
            named = (f"rank {lost} has not come to a collective operation for {TIMEOUT:g} s"
                     if how == signal.SIGSTOP else f"noticed that process rank {lost}")
            assert named in said, (trial, lost, how, said)
            # The watch looks every 20 ms; the rest is mpiexec, which ends the others.
            assert seconds < TIMEOUT + 4, (trial, lost, how, seconds)
            slowest = max(slowest, seconds)
            last = checkpoints(folder)[-1]
            rest = losses(o, folder, fewer, "--load", str(folder / f"net-{last}.json"), "--done", str(last),
                          "--steps", "3", *then)
            whole = losses(o, folder, ranks, "--steps", str(last + 3), *options)[last:]
            for a, b in zip(whole, rest, strict=True):
                assert abs(a - b) <= 1e-5 * abs(a) + 1e-7, (trial, options, last, whole, rest)
        print(f"{how.name} of rank {lost} of {ranks}, {' '.join(options)}: named, all had ended after "
              f"{seconds:.1f} s; {fewer} went on behind step {last}", flush=True)
    print(f"{o.trials} times; the longest took {slowest:.1f} s")


if __name__ == "__main__":
    main()
