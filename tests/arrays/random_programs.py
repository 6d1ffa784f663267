"""Makes random programs of functions of arrays, and compares their values and gradients with JAX's.

Usage: python random_programs.py ARRAY_CALLS [--programs N] [--seed S] [--program K] [--verbose]

A program takes up to three arrays of f64, applies 5 to 30 functions, and ends in a sum. It goes
through the interpreter and through kernels, with one thread and with two; these must agree to the
last digit, and all with JAX in double precision.
"""

import argparse
import json
import subprocess
import sys
from collections import Counter

import jax
import jax.numpy as jnp
import numpy as np

jax.config.update("jax_enable_x64", True)
# Each function is compiled for each shape, and computed once.
jax.config.update("jax_disable_most_optimizations", True)


def keep(n):
    return {"axis": tuple(n[0]) or None, "keepdims": bool(n[1][0])}


# What each function is in JAX, given operands and the lists of numbers that Cella's gets.
FUNCTIONS = {
    "add": lambda x, n: x[0] + x[1],
    "subtract": lambda x, n: x[0] - x[1],
    "multiply": lambda x, n: x[0] * x[1],
    "negative": lambda x, n: -x[0],
    "square": lambda x, n: jnp.square(x[0]),
    "sqrt": lambda x, n: jnp.sqrt(x[0]),
    "exp": lambda x, n: jnp.exp(x[0]),
    "log": lambda x, n: jnp.log(x[0]),
    "log1p": lambda x, n: jnp.log1p(x[0]),
    "expm1": lambda x, n: jnp.expm1(x[0]),
    "sin": lambda x, n: jnp.sin(x[0]),
    "cos": lambda x, n: jnp.cos(x[0]),
    "tanh": lambda x, n: jnp.tanh(x[0]),
    "arctan": lambda x, n: jnp.arctan(x[0]),
    "arcsinh": lambda x, n: jnp.arcsinh(x[0]),
    "sigmoid": lambda x, n: jax.nn.sigmoid(x[0]),
    "abs": lambda x, n: jnp.abs(x[0]),
    "divide": lambda x, n: x[0] / x[1],
    "arctan2": lambda x, n: jnp.arctan2(x[0], x[1]),
    "logaddexp": lambda x, n: jnp.logaddexp(x[0], x[1]),
    "roll": lambda x, n: jnp.roll(x[0], n[0][0], axis=n[1][0]),
    "repeat": lambda x, n: jnp.repeat(x[0], n[0][0], axis=n[1][0]),
    "diff": lambda x, n: jnp.diff(x[0], axis=n[0][0]),
    "quantile": lambda x, n: jnp.quantile(x[0], n[1][0] / 100, axis=n[0][0], keepdims=bool(n[2][0])),
    "i0e": lambda x, n: jax.scipy.special.i0e(x[0]),
    "gammaln": lambda x, n: jax.scipy.special.gammaln(x[0]),
    "rfft_parts": lambda x, n: (lambda y: y.real + y.imag * 0.5)(jnp.fft.rfft(x[0], axis=n[0][0])),
    "solve_shifted": lambda x, n: jnp.linalg.solve(x[0] + 9 * jnp.eye(x[0].shape[-1]), x[1]),
    "cholesky_shifted": lambda x, n: jnp.linalg.cholesky(
        x[0] @ x[0].swapaxes(-1, -2) + jnp.eye(x[0].shape[-2])),
    "maximum": lambda x, n: jnp.maximum(x[0], x[1]),
    "minimum": lambda x, n: jnp.minimum(x[0], x[1]),
    "where_greater": lambda x, n: jnp.where(x[0] > x[1], x[1], x[0]),
    "sum": lambda x, n: jnp.sum(x[0], **keep(n)),
    "mean": lambda x, n: jnp.mean(x[0], **keep(n)),
    "prod": lambda x, n: jnp.prod(x[0], **keep(n)),
    "max": lambda x, n: jnp.max(x[0], **keep(n)),
    "min": lambda x, n: jnp.min(x[0], **keep(n)),
    "var": lambda x, n: jnp.var(x[0], **keep(n)),
    "norm": lambda x, n: jnp.sqrt(jnp.sum(x[0] * x[0], **keep(n))),
    "logsumexp": lambda x, n: jax.scipy.special.logsumexp(x[0], **keep(n)),
    "softmax": lambda x, n: jax.nn.softmax(x[0], axis=n[0][0]),
    "log_softmax": lambda x, n: jax.nn.log_softmax(x[0], axis=n[0][0]),
    "cumsum": lambda x, n: jnp.cumsum(x[0], axis=n[0][0]),
    "cumprod": lambda x, n: jnp.cumprod(x[0], axis=n[0][0]),
    "sort": lambda x, n: jnp.sort(x[0], axis=n[0][0]),
    "reshape": lambda x, n: x[0].reshape(n[0]),
    "transpose": lambda x, n: x[0].transpose(n[0]),
    "expand_dims": lambda x, n: jnp.expand_dims(x[0], n[0][0]),
    "broadcast_to": lambda x, n: jnp.broadcast_to(x[0], n[0]),
    "tile": lambda x, n: jnp.tile(x[0], n[0]),
    "flip": lambda x, n: jnp.flip(x[0], n[0]),
    "slice": lambda x, n: x[0][tuple(
        slice(a, None if c < 0 and b < 0 else b, c) for a, b, c in zip(*n))],
    "concatenate": lambda x, n: jnp.concatenate(x, axis=n[0][0]),
    "stack": lambda x, n: jnp.stack(x, axis=n[0][0]),
    "pad": lambda x, n: jnp.pad(x[0], list(zip(n[0], n[1])), constant_values=n[2][0]),
    "tril": lambda x, n: jnp.tril(x[0], n[0][0]),
    "clip": lambda x, n: jnp.clip(x[0], n[0][0], n[0][1]),
    "matmul": lambda x, n: jnp.matmul(x[0].swapaxes(-1, -2) if n[0][0] else x[0],
                                      x[1].swapaxes(-1, -2) if n[0][1] else x[1]),
    "tensordot": lambda x, n: jnp.tensordot(x[0], x[1], (n[0], n[1])),
}


class Program:
    """Steps (function, operands, numbers) on values, of which the first are the inputs."""

    def __init__(self, seed, number):
        self.r = np.random.default_rng([seed, number])
        self.inputs = [self.r.normal(size=self.shape()) for _ in range(self.whole(1, 3))]
        self.steps = []
        self.shapes = [x.shape for x in self.inputs]
        self.bounded = [True] * len(self.inputs)  # smaller than 10 or so
        length = self.whole(5, 30)
        while len(self.steps) < length:
            getattr(self, self.one_of(self.makers))()
        # What nobody has read yet is read now.
        read = {k for s in self.steps for k in s[1]}
        total = None
        for k in range(len(self.shapes)):
            if k in read and k != len(self.shapes) - 1:
                continue
            part = self.add("mean", [k], [[], [0]], ())
            total = part if total is None else self.add("add", [total, part], [], ())
        self.add("sum", [total], [[], [0]], ())

    makers = ["pointwise", "pointwise", "pair", "pair", "fold", "along", "move", "join", "choose", "product"]

    def whole(self, low, high):
        return int(self.r.integers(low, high + 1))

    def one_of(self, some):
        return some[self.whole(0, len(some) - 1)]

    def shape(self):
        return tuple(self.whole(1, 6) for _ in range(self.whole(0, 3)))

    def add(self, name, operands, numbers, shape, bounded=True):
        self.steps.append((name, operands, numbers))
        self.shapes.append(tuple(shape))
        self.bounded.append(bounded)
        return len(self.shapes) - 1

    def some(self):
        """A value, made small where it may have grown."""
        k = self.whole(max(0, len(self.shapes) - 6), len(self.shapes) - 1)
        return k if self.bounded[k] else self.add("tanh", [k], [], self.shapes[k])

    # ---- steps

    def pointwise(self):
        k = self.some()
        name = self.one_of(["negative", "square", "exp", "sin", "cos", "tanh", "arctan", "arcsinh",
                            "sigmoid", "expm1", "sqrt", "log", "log1p", "i0e", "gammaln"])
        if name in ("sqrt", "log", "log1p", "gammaln"):  # of numbers above 0
            square = self.add("square", [k], [], self.shapes[k])
            k = self.add("add", [square, self.add("exp", [self.add("sin", [k], [], self.shapes[k])], [],
                                                  self.shapes[k])], [], self.shapes[k])
        self.add(name, [k], [], self.shapes[k], bounded=name not in ("square", "exp", "expm1", "gammaln"))

    def pair(self):
        x = self.some()
        y = self.one_of([j for j in range(len(self.shapes)) if self.fits(x, j)])
        if not self.bounded[y]:
            y = self.add("tanh", [y], [], self.shapes[y])
        s = np.broadcast_shapes(self.shapes[x], self.shapes[y])
        name = self.one_of(["add", "subtract", "multiply", "divide", "arctan2", "logaddexp"])
        if name in ("divide", "arctan2"):
            y = self.add("exp", [self.add("sin", [y], [], self.shapes[y])], [], self.shapes[y])
        self.add(name, [x, y], [], s, bounded=name == "arctan2")

    def fits(self, x, y):
        try:
            return np.prod(np.broadcast_shapes(self.shapes[x], self.shapes[y])) <= 2000
        except ValueError:
            return False

    def fold(self):
        k = self.some()
        s = self.shapes[k]
        axes = [int(a) for a in self.r.permutation(len(s))[: self.whole(0, len(s))]]
        keepdims = self.whole(0, 1)
        name = self.one_of(["sum", "mean", "max", "min", "var", "norm", "logsumexp", "prod"])
        if name == "norm":  # not at 0
            k = self.add("exp", [k], [], s)
        gone = axes or range(len(s))
        out = [1 if d in gone else e for d, e in enumerate(s) if keepdims or d not in gone]
        self.add(name, [k], [axes, [keepdims]], out, bounded=name not in ("sum", "norm", "prod"))

    def along(self):
        k = self.some()
        s = self.shapes[k]
        if s:
            name = self.one_of(["softmax", "log_softmax", "cumsum", "cumprod", "sort", "roll", "diff", "repeat",
                                "quantile", "rfft_parts"])
            a = self.whole(0, len(s) - 1)
            at = lambda n: s[:a] + (n,) + s[a + 1 :]
            if name == "roll":
                self.add(name, [k], [[self.whole(-5, 5)], [a]], s)
            elif name == "repeat":
                if np.prod(s) <= 1000:
                    self.add(name, [k], [[2], [a]], at(2 * s[a]))
            elif name == "diff":
                if s[a] > 1:
                    self.add(name, [k], [[a]], at(s[a] - 1))
            elif name == "quantile":
                self.add(name, [k], [[a], [self.whole(0, 100)], [1]], at(1))
            elif name == "rfft_parts":
                self.add(name, [k], [[a]], at(s[a] // 2 + 1), bounded=False)
            else:
                self.add(name, [k], [[a - self.whole(0, 1) * len(s)]], s, bounded=name in ("softmax", "sort"))

    def move(self):
        k = self.some()
        s = self.shapes[k]
        size = int(np.prod(s))
        name = self.one_of(["reshape", "transpose", "expand_dims", "broadcast_to", "tile", "flip", "slice", "pad",
                            "tril"])
        if name == "reshape":
            e = self.one_of([d for d in range(1, size + 1) if size % d == 0])
            self.add(name, [k], [[e, size // e]], (e, size // e))
        elif name == "expand_dims":
            if len(s) < 4:
                a = self.whole(0, len(s))
                self.add(name, [k], [[a]], s[:a] + (1,) + s[a:])
        elif name == "broadcast_to":
            t = (self.whole(1, 3),) + tuple(self.whole(2, 4) if e == 1 else e for e in s)
            if len(s) < 4 and np.prod(t) <= 2000:
                self.add(name, [k], [list(t)], t)
        elif not s:
            return
        elif name == "transpose":
            order = [int(a) for a in self.r.permutation(len(s))]
            self.add(name, [k], [order], [s[a] for a in order])
        elif name == "tile":
            n = [self.whole(1, 2) for _ in s]
            if size * np.prod(n) <= 2000:
                self.add(name, [k], [n], [e * m for e, m in zip(s, n)])
        elif name == "flip":
            self.add(name, [k], [[self.whole(0, len(s) - 1)]], s)
        elif name == "slice":
            start, stop, step, t = [], [], [], []
            for e in s:
                a, b = sorted((self.whole(0, e - 1), self.whole(0, e - 1)))
                back = self.r.random() < 0.3
                start.append(b if back else a), stop.append(a - 1 if back else b + 1)
                step.append(-self.whole(1, 2) if back else self.whole(1, 2))
                t.append(-(-(b - a + 1) // abs(step[-1])))
            self.add(name, [k], [start, stop, step], t)
        elif name == "pad":
            before, after = ([self.whole(0, 2) for _ in s] for _ in range(2))
            t = [e + a + b for e, a, b in zip(s, before, after)]
            if np.prod(t) <= 2000:
                self.add(name, [k], [before, after, [self.whole(0, 1)]], t)
        elif len(s) >= 2:
            self.add("tril", [k], [[self.whole(-2, 2)]], s)

    def join(self):
        k = self.some()
        s = self.shapes[k]
        parts = [k] + [j for j in range(len(self.shapes)) if self.shapes[j] == s and self.bounded[j]][:2]
        if self.whole(0, 1) and s:
            a = self.whole(0, len(s) - 1)
            self.add("concatenate", parts, [[a]], s[:a] + (s[a] * len(parts),) + s[a + 1 :])
        elif len(s) < 4:
            a = self.whole(0, len(s))
            self.add("stack", parts, [[a]], s[:a] + (len(parts),) + s[a:])

    def choose(self):
        x = self.some()
        s = self.shapes[x]
        # Something else of the same shape, so that hardly two elements are equal.
        y = self.add("cos", [self.add("exp", [x], [], s)], [], s)
        self.add(self.one_of(["maximum", "minimum", "where_greater"]), [x, y], [], s)

    def product(self):
        x = self.some()
        s = self.shapes[x]
        if len(s) < 2:
            return
        name = self.one_of(["matmul", "matmul", "solve_shifted", "cholesky_shifted"])
        if name == "cholesky_shifted":
            self.add(name, [x], [], s[:-1] + (s[-2],))
            return
        if name == "solve_shifted":
            # Of a matrix whose elements are below 1 with itself, which a product makes square.
            if s[-1] == s[-2]:
                small = self.add("tanh", [x], [], s)
                self.add(name, [small, x], [], s)
            return
        transposed = self.add("transpose", [x], [[*range(len(s) - 2), len(s) - 1, len(s) - 2]],
                              s[:-2] + (s[-1], s[-2]))
        self.add("matmul", [x, self.add("sin", [transposed], [], self.shapes[transposed])], [[0, 0]],
                 s[:-1] + (s[-2],), bounded=False)

    # ---- its value

    def value(self, *inputs):
        values = list(inputs)
        for name, operands, numbers in self.steps:
            values.append(FUNCTIONS[name]([values[k] for k in operands], numbers))
        return values[-1]


def differs(got, want):
    got, want = np.asarray(got), np.asarray(want)
    if got.shape != want.shape:
        return f"{got.shape} instead of {want.shape}"
    size = max(abs(want).max(initial=0), 1e-3)
    return "" if abs(got - want).max(initial=0) <= 1e-9 * size else f"{got.tolist()} instead of {want.tolist()}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tool")
    parser.add_argument("--programs", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--program", type=int, help="only this one")
    parser.add_argument("--verbose", action="store_true")
    given = parser.parse_args()
    cella = subprocess.Popen([given.tool], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    numbers = [given.program] if given.program is not None else range(given.programs)
    wrong = skipped = steps = 0
    used = Counter()
    for number in numbers:
        p = Program(given.seed, number)
        value, gradients = jax.value_and_grad(p.value, argnums=tuple(range(len(p.inputs))))(*p.inputs)
        if not all(np.isfinite(g).all() and abs(g).max(initial=0) < 1e8 for g in (value, *gradients)):
            skipped += 1
            continue
        used.update(s[0] for s in p.steps)
        steps += len(p.steps)
        arrays = [{"dtype": "f64", "shape": list(x.shape), "bytes": np.ascontiguousarray(x).tobytes().hex()}
                  for x in p.inputs]
        cella.stdin.write(json.dumps({"program": p.steps, "in": arrays}) + "\n")
        cella.stdin.flush()
        reply = cella.stdout.readline()
        answer = json.loads(reply) if reply else {"error": "it crashed"}
        fault = answer.get("error", "")
        for tier in ("interpreted", "planned"):
            for got, want in zip(answer.get(tier) or [], (value, *gradients)):
                found = differs(np.frombuffer(bytes.fromhex(got["bytes"])).reshape(got["shape"]), want)
                fault = fault or (found and f"{tier}: {found}")
        if not fault and not answer.get("planned"):
            fault = "it was not planned"
        if fault:
            wrong += 1
            print(f"program {number}: {fault[:500]}")
            if given.verbose:
                for k, (s, shape) in enumerate(zip(p.steps, p.shapes[len(p.inputs) :])):
                    print(f"    %{k + len(p.inputs)} {list(shape)} = {s[0]} {s[1]} {s[2]}")
        if not reply:
            cella = subprocess.Popen([given.tool], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    cella.stdin.close()
    cella.wait()
    print(f"{len(numbers)} programs of {steps} steps and {len(used)} functions, {skipped} of them too large: "
          f"{wrong} differ")
    return 1 if wrong or skipped > len(numbers) // 4 else 0


if __name__ == "__main__":
    sys.exit(main())
