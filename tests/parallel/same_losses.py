"""The example train_parallel has the same losses on one rank and on many, in every mode, on threads
and under MPI; what it cannot do, it refuses.   same_losses.py PROGRAM [MPIEXEC]"""
import json
import os
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

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


def precision(net):
    """Batch norms of few images make rounding grow: in f32 the losses of six steps differ by 1e-3 for
    two orders of summation, and would hide what else is wrong."""
    return ["--precision", "f64"] if net == "resnet20" else []


with tempfile.TemporaryDirectory() as folder:
    plan = os.path.join(folder, "plan.json")

    def compare(net, one, mesh, mode, *options):
        # What threads have searched for processes are given, but with the first net: there each of them finds the same.
        searched = mode == "automatic" and net != "lenet"
        for kind in ("threads", "mpi") if mpiexec else ("threads",):
            launcher = [] if kind == "threads" else [mpiexec, "--oversubscribe", "--allow-run-as-root",
                                                     "-n", str(ranks(mesh))]
            extra = ["--threads-as-ranks"] if kind == "threads" else []
            if searched:
                extra += ["--plan" if kind == "threads" else "--given-plan", plan]
            many = losses(folder, launcher, "--net", net, *precision(net), "--mesh", mesh, "--mode", mode, *options,
                          *extra)
            for a, b in zip(one, many, strict=True):
                limit = 1e-9 if precision(net) else 1e-5
                assert abs(a - b) <= limit * abs(a), (net, mesh, mode, options, kind, one, many)
            print(net, mesh, mode, *options, kind, "ok")

    for net in ("lenet", "resnet20", "gpt", "moe"):
        one = losses(folder, [], "--net", net, *precision(net), "--mesh", "data=1", "--mode", "serial",
                     "--threads-as-ranks")
        assert len(set(one)) == 6, one
        for mesh in ("data=2", "data=3", "data=2,model=2"):
            modes = ["data", "zero1", "zero2", "zero3", "automatic"] + (["tensor"] if "model" in mesh else [])
            modes += ["expert"] if net == "moe" else []
            for mode in modes:
                compare(net, one, mesh, mode)
        for mesh in ("pipe=2", "pipe=4", "data=2,pipe=2"):
            compare(net, one, mesh, "pipeline")
        compare(net, one, "pipe=2", "pipeline", "--schedule", "gpipe", "--microbatches", "1")
        for mesh in ("pipe=2", "data=2,pipe=2"):
            compare(net, one, mesh, "pipeline", "--schedule", "zero-bubble")
        if net in ("lenet", "gpt"):
            compare(net, one, "pipe=4", "pipeline", "--schedule", "zero-bubble", "--microbatches", "8")
            compare(net, one, "pipe=2", "pipeline", "--schedule", "gpipe", "--microbatches", "4")
            for mesh in ("pipe=2", "pipe=4", "data=2,pipe=2"):
                compare(net, one, mesh, "pipeline", "--chunks", "2", "--microbatches", "4")
        if net in ("gpt", "moe"):
            for mesh in ("sequence=2", "data=2,sequence=2"):
                for attention in ("ring", "gathered"):
                    compare(net, one, mesh, "sequence", "--attention", attention)
            for mesh in ("sequence=4", "data=3"):  # of the axis `data`, unequal places
                compare(net, one, mesh, "sequence", "--attention", "ring")
        if net == "gpt":
            for mesh in ("model=2", "model=4"):
                compare(net, one, mesh, "tensor")
                compare(net, one, mesh, "automatic")

    # What four ranks have begun two go on with, and one.
    for net in ("lenet", "moe"):
        def run(steps, mesh, mode, *options):
            return losses(folder, [], "--net", net, "--mesh", mesh, "--mode", mode, "--threads-as-ranks",
                          *options, steps=steps)
        whole = run(6, "data=1", "serial")
        index = os.path.join(folder, net + ".json")
        for before, begun, *how in (("data=4", "zero3"), ("data=2,pipe=2", "pipeline"),
                                    ("pipe=2", "pipeline", "--chunks", "2" if net == "lenet" else "1")):
            first = run(3, before, begun, *how, "--save", index)
            for mesh, mode in (("data=2", "zero1"), ("pipe=2", "pipeline"), ("data=1", "serial")):
                rest = run(3, mesh, mode, "--load", index, "--done", "3")
                for a, b in zip(whole, first + rest, strict=True):
                    assert abs(a - b) <= 1e-5 * abs(a), (net, begun, mesh, mode, whole, first, rest)
                print(net, "goes on from", before, "with", mesh, "ok")

    # Heads, too, are written as one device has them.
    index = os.path.join(folder, "heads.json")
    for before, after in ((("data=2,model=2", "tensor"), ("data=1", "serial")), (("data=1", "serial"), ("model=4", "tensor"))):
        first = losses(folder, [], "--net", "gpt", "--mesh", before[0], "--mode", before[1], "--threads-as-ranks", "--save",
                       index, steps=3)
        rest = losses(folder, [], "--net", "gpt", "--mesh", after[0], "--mode", after[1], "--threads-as-ranks", "--load",
                      index, "--done", "3", steps=3)
        whole = losses(folder, [], "--net", "gpt", "--mesh", "data=1", "--mode", "serial", "--threads-as-ranks")
        for a, b in zip(whole, first + rest, strict=True):
            assert abs(a - b) <= 1e-5 * abs(a), (before, after, whole, first, rest)
        print("gpt goes on from", *before, "with", *after, "ok")

    # What was measured of a machine, a rank measured alone, and the predicted step as pictures.
    speed = {"bytes_per_second": 5e9, "latency": 1e-6}
    machine = {"axes": [{"name": "data", "size": 2, **speed, "overlap": 0.5, "measured": {"all_reduce": speed}}],
               "flops_per_second": 1e11, "memory_bytes_per_second": 2e10, "memory_bytes": 1e10}
    paths = {name: os.path.join(folder, name) for name in ("machine", "drawing", "timeline", "trace", "data plan",
                                                           "pipeline plan", "wrong")}
    with open(paths["machine"], "w") as file:
        json.dump(machine, file)
    with open(paths["wrong"], "w") as file:
        json.dump({**machine, "flops_per_second": 0}, file)
    assert losses(folder, [], "--threads-as-ranks", "--topology", paths["machine"], "--calibrate", "3", "--drawing",
                  paths["drawing"], "--timeline", paths["timeline"], "--trace", paths["trace"]) == losses(
                      folder, [], "--threads-as-ranks", "--topology", paths["machine"])
    for mode in ("data", "pipeline"):
        losses(folder, [], "--threads-as-ranks", "--mode", mode, "--plan", paths[mode + " plan"])
        with open(paths[mode + " plan"]) as file:
            assert json.load(file)["mode"] == mode
    for name in ("drawing", "timeline"):
        assert xml.etree.ElementTree.parse(paths[name]).getroot().tag.endswith("svg")
    with open(paths["trace"]) as file:
        assert any(e["name"] == "all_reduce" for e in json.load(file)["traceEvents"])

    for options, sentence in (
        (["--topology", paths["wrong"]], "wrong: this mesh has 0 as flops_per_second"),
        (["--topology", paths["machine"], "--mesh", "model=2", "--mode", "automatic"],
         "topology: nothing is known of the axis model of the mesh model=2, only of data=2; measure a mesh that "
         "has it with cella-measure-mesh"),
        (["--topology", "nowhere"], 'cannot read "nowhere"'),
        (["--given-plan", "nowhere"], 'cannot read "nowhere"'),
        (["--given-plan", paths["wrong"]], "this is no plan: "),
        (["--given-plan", paths["data plan"], "--mesh", "data=4"], "this plan is for the mesh data=2, not data=4"),
        (["--given-plan", paths["data plan"], "--mode", "zero1"], "this is a plan of mode data, not zero1"),
        (["--given-plan", paths["data plan"], "--net", "gpt"], "this plan is of another graph"),
        (["--given-plan", paths["data plan"], "--mode", "pipeline"], "--given-plan is for the others"),
        (["--mode", "hexagonal"], "mode hexagonal: there are serial, data, zero1, zero2, zero3, tensor, "
                                  "sequence, expert, pipeline and automatic"),
        (["--mode", "sequence"], "mode sequence: the samples of this net are no sequences; take --net gpt, long_gpt or moe"),
        (["--mode", "pipeline", "--microbatches", "5"],
         "mode pipeline: the argument x f32[32,1,28,28] is not divided evenly by 5 microbatches"),
        (["--mode", "pipeline", "--mesh", "pipe=2", "--microbatches", "1", "--chunks", "2"],
         "with 2 stages on each of 2 ranks microbatches are a multiple of the ranks, not 1"),
        (["--mode", "pipeline", "--mesh", "pipe=2", "--schedule", "zero-bubble", "--chunks", "2"],
         "in the schedule zero-bubble each rank has one stage, not 2"),
        (["--net", "resnet20", "--mode", "pipeline", "--microbatches", "2"],
         "needs all samples at once, so that the batch is not divided into microbatches"),
        (["--mode", "pipeline", "--mesh", "pipe=2,expert=2"], "nothing is along expert"),
        (["--net", "vgg"], "net vgg: there are lenet, resnet20, gpt, long_gpt and moe"),
        (["--mesh", "data=33"], "less than a sample for each of the 33 ranks of the axis data"),
    ):
        done = subprocess.run([program, "--threads-as-ranks", *options], capture_output=True,
                              text=True, timeout=60)
        assert done.returncode == 1 and sentence in done.stderr, (options, done.stderr)
