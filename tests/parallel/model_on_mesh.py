"""The example model_on_mesh learns on many ranks what it learns on one, on threads and under MPI, and one device
reads what it saves.   model_on_mesh.py PROGRAM [MPIEXEC]"""
import csv
import os
import subprocess
import sys
import tempfile

program, mpiexec = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else ""


def train(folder, launcher, mesh, mode, *options):
    log, saved = os.path.join(folder, "log.csv"), os.path.join(folder, "net.safetensors")
    line = [*launcher, program, "--mesh", mesh, "--mode", mode, "--samples", "1000", "--log", log, "--save", saved,
            *options]
    done = subprocess.run(line, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, (line, done.stdout, done.stderr)
    assert done.stdout.count("accuracy ") == 1, done.stdout  # the first rank prints
    with open(log) as file:
        rows = [{k: float(v) for k, v in row.items() if k != "seconds"} for row in csv.DictReader(file)]
    assert [row["epoch"] for row in rows] == [0, 1], rows
    return rows, os.path.getsize(saved)


with tempfile.TemporaryDirectory() as folder:
    one, size = train(folder, [], "data=1", "serial", "--threads-as-ranks")
    assert one[1]["loss"] < one[0]["loss"], one
    for mesh, count in (("data=2", 2), ("data=3", 3), ("data=2,model=2", 4)):
        for mode in ("data", "zero3") if count != 3 else ("zero1", "automatic"):
            for kind in ("threads", "mpi") if mpiexec else ("threads",):
                launcher = [] if kind == "threads" else [mpiexec, "--oversubscribe", "--allow-run-as-root", "-n",
                                                         str(count)]
                many, bytes_saved = train(folder, launcher, mesh, mode,
                                                *(["--threads-as-ranks"] if kind == "threads" else []))
                # In the second epoch learning sets in, and rounding grows; in f64 the losses stay the same.
                for a, b, most in zip(one, many, (1e-5, 1e-2), strict=True):
                    assert abs(a["loss"] - b["loss"]) <= most * a["loss"], (mesh, mode, kind, one, many)
                    assert abs(a["accuracy"] - b["accuracy"]) < 0.02, (mesh, mode, kind, one, many)
                assert bytes_saved == size, (bytes_saved, size)
                print(mesh, mode, kind, "ok")
