"""A rank that is killed or stopped at a random moment ends all ranks within a stated time, and is
named.   lost_ranks.py PROGRAM MPIEXEC"""
import os
import random
import signal
import subprocess
import sys
import time

program, mpiexec = sys.argv[1:3]
ranks, timeout = 2, 2.0
random.seed(4)


def process_of(launcher, rank):
    """The process that mpiexec has started for a rank."""
    while launcher.poll() is None:
        for name in os.listdir("/proc"):
            try:
                with open(f"/proc/{name}/stat") as file:
                    parent = int(file.read().rsplit(")", 1)[1].split()[1])
                with open(f"/proc/{name}/environ") as file:
                    ours = f"OMPI_COMM_WORLD_RANK={rank}\0" in file.read()
            except (OSError, ValueError, IndexError):
                continue
            if ours and parent == launcher.pid:
                return int(name)
        time.sleep(0.02)
    raise AssertionError("the ranks have ended: " + launcher.communicate()[1])


for trial in range(8):
    lost, how = trial % ranks, signal.SIGKILL if trial in (4, 5) else signal.SIGSTOP
    mode = ["--mesh", f"data={ranks}"] if trial < 6 else ["--mesh", f"pipe={ranks}", "--mode", "pipeline"]
    line = [mpiexec, "--oversubscribe", "--allow-run-as-root", "-n", str(ranks), program, "--net", "lenet",
            *mode, "--steps", "1000000", "--timeout", str(timeout)]
    launcher = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        process = process_of(launcher, lost)
        time.sleep(2 + random.random())
        os.kill(process, how)
        begin = time.time()
        said = launcher.communicate(timeout=30)[1]
    finally:
        launcher.kill()
    assert launcher.returncode != 0
    named = f"rank {lost} has not come to a collective operation for 2 s" if how == signal.SIGSTOP else \
        f"noticed that process rank {lost}"
    assert named in said, (trial, lost, how, said)
    print(how.name, lost, f"named; all had ended after {time.time() - begin:.1f} s")
