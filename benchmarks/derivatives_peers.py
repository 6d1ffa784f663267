#!/usr/bin/env python3
"""Times the derivatives of benchmarks/derivatives with another framework, one process per call, and
prints one line of JSON as `derivatives` does.

usage: derivatives_peers.py {jax,torch,torch_compile} NAME [THREADS]

With peers.py, one after the other in the same minutes:

  benchmarks/peers.py --cella build/release/benchmarks/derivatives --threads 1 --rounds 3 \\
      --workloads scan_1000_f32 scan_1000_f64 while_f64 while_bounded_f64 hessian_f32 hessian_f64 \\
      --peer 'jax=python benchmarks/derivatives_peers.py jax {workload}' \\
      --peer 'torch=python benchmarks/derivatives_peers.py torch {workload}'

Each is written as its users write it. JAX refuses reverse mode through a while_loop, which is what
`while_f64` asks for; with a bound on the steps it is a scan that does nothing once the condition
fails (`while_bounded_f64`). PyTorch's loops are Python's.
"""
import json
import resource
import sys
import time

START = time.perf_counter()
SECONDS = 2


def report(framework, version, name, call, first):
    """`call()` runs once and waits; `first` makes a list of the first results."""
    for _ in range(3):
        value = call()
    to_third = time.perf_counter() - START
    times = []
    begin = time.perf_counter()
    while time.perf_counter() - begin < SECONDS or len(times) < 5:
        before = time.perf_counter()
        call()
        times.append(1e3 * (time.perf_counter() - before))
    times.sort()
    print(json.dumps(dict(
        framework=framework, version=version, workload=name, threads=1,
        median_ms=times[len(times) // 2], min_ms=times[0], steps=len(times),
        to_third_step_s=round(to_third, 3),
        peak_rss_mb=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        results=[float(f"{v:.9g}") for v in first(value)[:6]])))


def net(i):
    """Weights, inputs and targets of the net."""
    return ([(k * 7 % 13 - 6) / 8 for k in range(64)],
            [[((5 * r + c) * 5 % 11 - 5) / 4 for c in range(5)] for r in range(16)],
            [[(k * 3 % 7 - 3) / 2] for k in range(16)])[i]


Y, P = [1, 0.5], [1.1, 0.4, 0.1, 0.4]


def run_jax(name):
    import jax
    import jax.numpy as jnp
    jax.config.update("jax_platforms", "cpu")
    if name.endswith("f64"):
        jax.config.update("jax_enable_x64", True)
    number = jnp.float64 if name.endswith("f64") else jnp.float32

    def field(y, p):
        meetings = y[0] * y[1]
        return jnp.stack([p[0] * y[0] - p[1] * meetings, p[2] * meetings - p[3] * y[1]])

    def runge_kutta(y, p, h):
        k1 = field(y, p)
        k2 = field(y + h / 2 * k1, p)
        k3 = field(y + h / 2 * k2, p)
        k4 = field(y + h * k3, p)
        return y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)

    def scan_end(y, p):
        n = int(name.split("_")[1])
        y, _ = jax.lax.scan(lambda z, _: (runge_kutta(z, p, 10.0 / n), None), y, None, length=n)
        return jnp.sum(y**2)

    def while_end(y, p):
        y = jax.lax.while_loop(lambda z: z[0] > 0.5, lambda z: runge_kutta(z, p, 1e-3), y)
        return jnp.sum(y**2)

    def bounded_end(y, p):
        step = lambda z: jax.lax.cond(z[0] > 0.5, lambda v: runge_kutta(v, p, 1e-3), lambda v: v, z)
        y, _ = jax.lax.scan(lambda z, _: (step(z), None), y, None, length=20000)
        return jnp.sum(y**2)

    if name.startswith("hessian"):
        x, t = jnp.array(net(1), number), jnp.array(net(2), number)

        def error(w):
            w1, b1 = w[:45].reshape(5, 9), w[45:54]
            w2, b2 = w[54:63].reshape(9, 1), w[63:]
            return jnp.mean((jnp.tanh(x @ w1 + b1) @ w2 + b2 - t)**2)

        function, arguments = jax.jit(jax.hessian(error)), [jnp.array(net(0), number)]
    else:
        end = bounded_end if "bounded" in name else while_end if "while" in name else scan_end
        function = jax.jit(jax.grad(end, argnums=(0, 1)))
        arguments = [jnp.array(Y, number), jnp.array(P, number)]

    def first(value):
        return [float(v) for v in jnp.ravel(value[0] if isinstance(value, tuple) else value)]

    report("jax", jax.__version__, name, lambda: jax.block_until_ready(function(*arguments)), first)


def run_torch(name, compiles):
    import torch
    torch.set_num_threads(1)
    number = torch.float64 if name.endswith("f64") else torch.float32

    def field(y, p):
        meetings = y[0] * y[1]
        return torch.stack([p[0] * y[0] - p[1] * meetings, p[2] * meetings - p[3] * y[1]])

    def runge_kutta(y, p, h):
        k1 = field(y, p)
        k2 = field(y + h / 2 * k1, p)
        k3 = field(y + h / 2 * k2, p)
        k4 = field(y + h * k3, p)
        return y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)

    if name.startswith("hessian"):
        x, t = torch.tensor(net(1), dtype=number), torch.tensor(net(2), dtype=number)

        def error(w):
            w1, b1 = w[:45].reshape(5, 9), w[45:54]
            w2, b2 = w[54:63].reshape(9, 1), w[63:]
            return torch.mean((torch.tanh(x @ w1 + b1) @ w2 + b2 - t)**2)

        function = torch.func.hessian(error)
        if compiles:
            function = torch.compile(function)
        w = torch.tensor(net(0), dtype=number)
        call = lambda: function(w)
    else:
        if compiles:
            runge_kutta = torch.compile(runge_kutta)

        def call():
            y0 = torch.tensor(Y, dtype=number, requires_grad=True)
            p = torch.tensor(P, dtype=number, requires_grad=True)
            y = y0
            if name.startswith("scan"):
                n = int(name.split("_")[1])
                for _ in range(n):
                    y = runge_kutta(y, p, 10.0 / n)
            else:
                while y[0] > 0.5:
                    y = runge_kutta(y, p, 1e-3)
            torch.sum(y**2).backward()
            return y0.grad, p.grad

    def first(value):
        value = value[0] if isinstance(value, tuple) else value
        return value.detach().reshape(-1).tolist()

    report("torch_compile" if compiles else "torch", torch.__version__, name, call, first)


def main():
    if len(sys.argv) < 3 or sys.argv[1] not in ("jax", "torch", "torch_compile"):
        sys.exit(__doc__)
    framework, name = sys.argv[1:3]
    if framework == "jax":
        run_jax(name)
    else:
        run_torch(name, framework == "torch_compile")


if __name__ == "__main__":
    main()
