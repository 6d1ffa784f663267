"""The example train_parallel has the same losses on one rank and on many, in every mode, on threads
and under MPI; what it cannot do, it refuses.   same_losses.py PROGRAM [MPIEXEC]"""
import json
import os
import subprocess
import sys
import tempfile

program, mpiexec = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else ""


def losses(folder, launcher, *options, steps=6):
    path = os.path.join(folder, "out.json")
    if os.path.exists(path):
        os.remove(path)
    line = [*launcher, program, "--steps", str(steps), "--json", path, *options]
    done = subprocess.run(line, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, (line, done.stdout, done.stderr)
    with open(path) as file:
        found = json.load(file)
    for key in ("median_ms", "predicted_ms", "bytes_on_device"):
        assert found[key] > 0, (key, found)
    assert found["exposed_communication_ms"] >= 0
    return found["losses"]


def ranks(mesh):
    count = 1
    for axis in mesh.split(","):
        count *= int(axis.split("=")[1])
    return count


with tempfile.TemporaryDirectory() as folder:
    for net in ("lenet", "resnet20", "gpt", "moe"):
        one = losses(folder, [], "--net", net, "--mesh", "data=1", "--mode", "serial",
                     "--threads-as-ranks")
        assert len(set(one)) == 6, one
        for mesh in ("data=2", "data=3", "data=2,model=2"):
            modes = ["data", "zero1", "zero2", "zero3", "automatic"] + (["tensor"] if "model" in mesh else [])
            modes += ["expert"] if net == "moe" else []
            for mode in modes:
                launchers = {"threads": []}
                if mpiexec:
                    launchers["mpi"] = [mpiexec, "--oversubscribe", "--allow-run-as-root", "-n",
                                        str(ranks(mesh))]
                for kind, launcher in launchers.items():
                    extra = ["--threads-as-ranks"] if kind == "threads" else []
                    many = losses(folder, launcher, "--net", net, "--mesh", mesh, "--mode", mode,
                                  *extra)
                    for a, b in zip(one, many, strict=True):
                        assert abs(a - b) <= 1e-5 * abs(a), (net, mesh, mode, kind, one, many)
                    print(net, mesh, mode, kind, "ok")

    # What four ranks have begun two go on with, and one.
    for net in ("lenet", "moe"):
        def run(steps, mesh, mode, *options):
            return losses(folder, [], "--net", net, "--mesh", mesh, "--mode", mode, "--threads-as-ranks",
                          *options, steps=steps)
        whole = run(6, "data=1", "serial")
        index = os.path.join(folder, net + ".json")
        first = run(3, "data=4", "zero3", "--save", index)
        for mesh, mode in (("data=2", "zero1"), ("data=1", "serial")):
            rest = run(3, mesh, mode, "--load", index, "--done", "3")
            for a, b in zip(whole, first + rest, strict=True):
                assert abs(a - b) <= 1e-5 * abs(a), (net, mesh, mode, whole, first, rest)
            print(net, "goes on with", mesh, "ok")

    for options, sentence in (
        (["--mode", "sequence"], "mode sequence: there are serial, data, zero1, zero2, zero3, tensor, expert and automatic"),
        (["--net", "vgg"], "net vgg: there are lenet, resnet20, gpt and moe"),
        (["--mesh", "data=33"], "less than a sample for each of the 33 ranks of the axis data"),
    ):
        done = subprocess.run([program, "--threads-as-ranks", *options], capture_output=True,
                              text=True, timeout=60)
        assert done.returncode == 1 and sentence in done.stderr, (options, done.stderr)
