#!/usr/bin/env python3
"""Times one training step of a workload in PyTorch, divided among processes of one thread each that exchange
by gloo, and prints one line of JSON as `ranks` does.

usage: ranks_torch.py {ddp,fsdp} {resnet20_32,gpt_8,mlp128_wide,lenet32} [RANKS]

Networks, global batches and updates are those of ranks.cpp; each rank has its part of the batch. Batch norms
have the statistics of a rank's own samples, as is PyTorch's default (Cella's have those of all). Three steps
warm up, then steps run for eight seconds, five at least and 3,000 at most.
"""
import json
import os
import socket
import statistics
import sys
import time


def networks():
    import torch
    from torch import nn
    import torch.nn.functional as F

    class Block(nn.Module):
        def __init__(self, i, o, stride):
            super().__init__()
            self.f = nn.Sequential(nn.Conv2d(i, o, 3, stride, 1, bias=False), nn.BatchNorm2d(o), nn.ReLU(),
                                   nn.Conv2d(o, o, 3, 1, 1, bias=False), nn.BatchNorm2d(o))
            self.d = (nn.Sequential(nn.Conv2d(i, o, 1, stride, bias=False), nn.BatchNorm2d(o)) if i != o
                      else nn.Identity())

        def forward(self, x):
            return F.relu(self.f(x) + self.d(x))

    class Layer(nn.Module):
        def __init__(self, d, heads):
            super().__init__()
            self.heads = heads
            self.n1, self.n2 = nn.LayerNorm(d), nn.LayerNorm(d)
            self.qkv, self.o = nn.Linear(d, 3 * d), nn.Linear(d, d)
            self.a, self.b = nn.Linear(d, 4 * d), nn.Linear(4 * d, d)

        def forward(self, x):
            n, t, d = x.shape
            q, k, v = self.qkv(self.n1(x)).view(n, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.o(y.transpose(1, 2).reshape(n, t, d))
            return x + self.b(F.gelu(self.a(self.n2(x)), approximate="tanh"))

    class Gpt(nn.Module):
        def __init__(self, words=1024, d=256, heads=4, layers=4, places=128):
            super().__init__()
            self.word = nn.Embedding(words, d)
            self.place = nn.Parameter(torch.randn(places, d) * 0.02)
            self.layers = nn.ModuleList(Layer(d, heads) for _ in range(layers))
            self.norm, self.head = nn.LayerNorm(d), nn.Linear(d, words, bias=False)

        def forward(self, x):
            x = self.word(x) + self.place
            for layer in self.layers:
                x = layer(x)
            return self.head(self.norm(x)).flatten(0, 1)

    def resnet20():
        blocks = [Block(16, 16, 1) for _ in range(3)]
        for i, o in ((16, 32), (32, 64)):
            blocks += [Block(i, o, 2), Block(o, o, 1), Block(o, o, 1)]
        return nn.Sequential(nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU(), *blocks,
                             nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))

    def mlp():
        return nn.Sequential(nn.Linear(784, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 10))

    def lenet():
        return nn.Sequential(nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 16, 5), nn.ReLU(),
                             nn.MaxPool2d(2), nn.Flatten(), nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(),
                             nn.Linear(84, 10))

    return dict(resnet20_32=resnet20, gpt_8=Gpt, mlp128_wide=mlp, lenet32=lenet)


def fully_sharded(model, mesh):
    from torch.distributed.fsdp import fully_shard
    for part in model.modules():
        if type(part).__name__ in ("Block", "Layer"):
            fully_shard(part, mesh=mesh)
    return fully_shard(model, mesh=mesh)


def train(rank, ranks, port, how, workload, results):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), OMP_NUM_THREADS="1")
    import torch
    import torch.distributed as dist
    import torch.nn.functional as F
    torch.set_num_threads(1)
    torch.manual_seed(1)
    dist.init_process_group("gloo", rank=rank, world_size=ranks)
    model = networks()[workload]()
    if workload == "gpt_8":
        x = torch.randint(0, 1024, (8 // ranks, 128))
        y = torch.randint(0, 1024, (8 // ranks * 128,))
    elif workload == "resnet20_32":
        if how == "ddp":  # FSDP takes contiguous parameters only
            model = model.to(memory_format=torch.channels_last)
        x = torch.randn(32 // ranks, 3, 32, 32).to(memory_format=torch.channels_last)
        y = torch.randint(0, 10, (32 // ranks,))
    elif workload == "lenet32":
        x, y = torch.randn(32 // ranks, 1, 28, 28), torch.randint(0, 10, (32 // ranks,))
    else:
        x, y = torch.randn(128 // ranks, 784), torch.randint(0, 10, (128 // ranks,))
    if how == "fsdp":
        from torch.distributed.device_mesh import init_device_mesh
        model = fully_sharded(model, init_device_mesh("cpu", (ranks,)))
    else:
        model = torch.nn.parallel.DistributedDataParallel(model, gradient_as_bucket_view=True)
    model.train()
    optimizer = (torch.optim.Adam(model.parameters(), 1e-3) if workload == "gpt_8"
                 else torch.optim.SGD(model.parameters(), 1e-3, 0.9))

    def step():
        optimizer.zero_grad(set_to_none=True)
        F.cross_entropy(model(x), y).backward()
        optimizer.step()

    for _ in range(3):
        step()
    begin = time.perf_counter()
    for _ in range(3):
        step()
    count = torch.tensor(min(max(int(8 * 3 / (time.perf_counter() - begin)), 5), 3000))
    dist.broadcast(count, 0)
    times = []
    for _ in range(int(count)):
        begin = time.perf_counter()
        step()
        times.append((time.perf_counter() - begin) * 1e3)
    if rank == 0:
        results.put(dict(framework=how, version=torch.__version__, workload=workload, ranks=ranks, threads=1,
                         median_ms=statistics.median(times), min_ms=min(times)))
    dist.destroy_process_group()
    results.close()
    results.join_thread()
    os._exit(0)  # gloo's threads may outlive it, and end the process in an error


def main():
    import multiprocessing
    if len(sys.argv) not in (3, 4) or sys.argv[1] not in ("ddp", "fsdp"):
        sys.exit(__doc__)
    ranks = int(sys.argv[3]) if len(sys.argv) == 4 else 2
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    spawn = multiprocessing.get_context("spawn")
    results = spawn.Queue()
    processes = [spawn.Process(target=train, args=(r, ranks, port, *sys.argv[1:3], results)) for r in range(ranks)]
    for p in processes:
        p.start()
    for p in processes:
        p.join()
    if any(p.exitcode for p in processes):
        sys.exit(f"{sys.argv[1]}: a rank has failed")
    print(json.dumps(results.get()))


if __name__ == "__main__":
    main()
