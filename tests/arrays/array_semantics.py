"""Calls Cella's functions of arrays with random arguments, and compares them with NumPy's.

Usage: python array_semantics.py ARRAY_CALLS [--calls N] [--seed S] [--only FUNCTION] [--verbose]

Every call goes through the interpreter and, where the graph can be planned, through the kernels.
What is expected of floating-point functions is computed in double precision and rounded.
"""

import argparse
import json
import subprocess
import sys
from collections import Counter

import numpy as np
import scipy.special

NAMES = {
    "f32": np.float32, "f64": np.float64, "f16": np.float16,
    "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64,
    "u8": np.uint8, "u16": np.uint16, "u32": np.uint32, "u64": np.uint64,
    "bool": np.bool_, "c64": np.complex64, "c128": np.complex128,
}
# In the order of cella::dtype, for casts.
CODES = ["f32", "f64", "f16", "bf16", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "bool"]
OF_TYPE = {np.dtype(t): name for name, t in NAMES.items()}
FLOATS = ["f32", "f64"]
HALF = FLOATS + ["f16"]
INTEGERS = [n for n in NAMES if n[0] in "iu"]
COMPLEX = ["c64", "c128"]
ALL = HALF + INTEGERS + ["bool"] + COMPLEX


class Draw:
    """Random arguments."""

    def __init__(self, seed):
        self.r = np.random.default_rng(seed)

    def whole(self, low, high):
        return int(self.r.integers(low, high + 1))

    def one_of(self, some):
        return some[self.whole(0, len(some) - 1)]

    def chance(self, p):
        return self.r.random() < p

    def shape(self, least=0, most=4, empty=True):
        s = [self.whole(1, 5) for _ in range(self.whole(least, most))]
        for d in range(len(s)):
            if self.chance(0.15):
                s[d] = 1
            if empty and self.chance(0.03):
                s[d] = 0
        if s and self.chance(0.1):  # longer than the vectors of any processor
            s[self.whole(0, len(s) - 1)] = self.whole(6, 70)
        return tuple(s)

    def array(self, dtype, shape, special=True, low=None, high=None):
        t = np.dtype(NAMES[dtype])
        if t.kind == "b":
            return self.r.random(shape) < 0.5
        if t.kind in "iu":
            info = np.iinfo(t)
            low = max(info.min, -20) if low is None else low
            high = min(info.max, 20) if high is None else high
            x = self.r.integers(low, high + 1, size=shape).astype(t)
            if special and x.size and self.chance(0.2):
                x.flat[self.whole(0, x.size - 1)] = self.one_of([info.min, info.max])
            return x
        if t.kind == "c":
            return (self.r.normal(size=shape) + 1j * self.r.normal(size=shape)).astype(t)
        x = self.r.normal(size=shape) * self.one_of([1, 1, 10])
        if self.chance(0.3):
            x = np.round(x)
        if low is not None:
            x = low + (high - low) * self.r.random(shape)
        x = np.asarray(x).astype(t)
        if special and low is None and x.size and self.chance(0.25):
            x.flat[self.whole(0, x.size - 1)] = self.one_of([np.nan, np.inf, -np.inf, 0.0, -0.0])
        return x

    def axes(self, rank):
        if rank == 0 or self.chance(0.2):
            return []
        some = self.r.permutation(rank)[: self.whole(1, rank)]
        return [int(a) - (rank if self.chance(0.3) else 0) for a in some]

    def axis(self, rank):
        return self.whole(-rank, rank - 1)

    def broadcast(self, shape):
        """A shape that is broadcast to this one."""
        s = list(shape)[self.whole(0, len(shape)) if self.chance(0.4) else 0 :]
        return tuple(1 if self.chance(0.25) else e for e in s)


def exact(f, *arrays):
    """f in double precision, as the type of the first array or as what f makes of it."""
    t = arrays[0].dtype
    wide = [a.astype(np.complex128 if a.dtype.kind == "c" else np.float64) if a.dtype.kind in "fc" else a
            for a in arrays]
    y = np.asarray(f(*wide))
    if y.dtype.kind in "fc" and t.kind in "fc":
        y = y.astype(t if y.dtype.kind == t.kind else (np.float32 if t == np.complex64 else np.float64))
    return y


# ---- calls: each makes (arrays, lists of numbers, expected results)

CALLS = {}


def call(*names):
    def keep(make):
        for name in names:
            CALLS[name] = make
        return make

    return keep


def of_one(types, low=None, high=None):
    def make(d, name):
        x = d.array(d.one_of(types), d.shape(), low=low, high=high)
        return [x], [], [exact(getattr(np, name), x)]

    return make


for n in ("arcsinh", "arctan", "cos", "cosh", "exp", "expm1", "sin", "sinh", "tan", "tanh"):
    CALLS[n] = of_one(FLOATS)
for n in ("ceil", "floor", "rint", "trunc"):
    CALLS[n] = of_one(HALF)
for n in ("log", "log1p", "log2", "sqrt"):
    CALLS[n] = of_one(HALF)
CALLS["arccos"] = CALLS["arcsin"] = CALLS["arctanh"] = of_one(FLOATS, -0.99, 0.99)
CALLS["arccosh"] = of_one(FLOATS, 1.01, 20)
CALLS["conjugate"] = CALLS["real"] = CALLS["imag"] = CALLS["angle"] = of_one(COMPLEX)
CALLS["invert"] = of_one(INTEGERS + ["bool"])
CALLS["logical_not"] = of_one(["bool"])
CALLS["zeros_like"] = CALLS["ones_like"] = of_one(HALF + INTEGERS)


@call("abs", "sign", "square", "negative")
def same_type(d, name):
    x = d.array(d.one_of(HALF + INTEGERS), d.shape())
    return [x], [], [getattr(np, name)(x) if x.dtype.kind in "iu" else exact(getattr(np, name), x)]


@call("add", "subtract", "multiply", "maximum", "minimum", "squared_difference", "power", "divide",
      "arctan2", "floor_divide", "mod", "fmod", "bitwise_and", "bitwise_or", "bitwise_xor",
      "left_shift", "right_shift")
def of_two(d, name):
    types = {"power": HALF + INTEGERS, "divide": HALF + COMPLEX, "arctan2": FLOATS,
             "bitwise_and": INTEGERS + ["bool"], "bitwise_or": INTEGERS + ["bool"],
             "bitwise_xor": INTEGERS + ["bool"], "left_shift": INTEGERS, "right_shift": INTEGERS,
             "add": HALF + INTEGERS + COMPLEX, "subtract": HALF + INTEGERS + COMPLEX,
             "multiply": HALF + INTEGERS + COMPLEX}.get(name, HALF + INTEGERS)
    t = d.one_of(types)
    s = d.shape()
    shapes = [s, d.broadcast(s)]
    if d.chance(0.5):
        shapes.reverse()
    whole = NAMES[t] in [NAMES[i] for i in INTEGERS]
    x = d.array(t, shapes[0])
    if name == "power" and whole:
        y = d.array(t, shapes[1], special=False, low=0, high=5)
    elif name in ("left_shift", "right_shift"):
        y = d.array(t, shapes[1], special=False, low=0, high=70)
    elif name in ("mod", "fmod") and whole:  # by 0: x is left here, 0 there
        y = d.array(t, shapes[1])
        y = np.where(y == 0, y.dtype.type(1), y)
    elif name in ("floor_divide", "mod", "fmod") and not whole:
        # Quotients of huge numbers and tiny ones, and of infinities, are a matter of taste.
        x = d.array(t, shapes[0], special=False)
        y = d.array(t, shapes[1], special=False, low=0.5, high=3)
    else:
        y = d.array(t, shapes[1])
    if name == "power" and not whole:
        x = abs(d.array(t, shapes[0], special=False)) + x.dtype.type(0.01)
        y = d.array(t, shapes[1], special=False)
    f = (lambda a, b: (a - b) * (a - b)) if name == "squared_difference" else getattr(np, name)
    return [x, y], [], [f(x, y) if x.dtype.kind in "iub" else exact(f, x, y)]


@call("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")
def comparison(d, name):
    t = d.one_of(HALF + INTEGERS + (["bool"] if "equal" == name[-5:] and name[0] in "en" else []))
    s = d.shape()
    x, y = d.array(t, s), d.array(t, d.broadcast(s))
    return [x, y], [], [getattr(np, name)(x, y)]


@call("logical_and", "logical_or", "logical_xor")
def logic(d, name):
    s = d.shape()
    x, y = d.array("bool", d.broadcast(s)), d.array("bool", s)
    return [x, y], [], [getattr(np, name)(x, y)]


@call("where")
def where(d, name):
    t = d.one_of(ALL)
    s = d.shape()
    c, x, y = d.array("bool", d.broadcast(s)), d.array(t, s), d.array(t, d.broadcast(s))
    return [c, x, y], [], [np.where(c, x, y)]


@call("sum", "prod", "max", "min", "mean", "var", "norm", "any", "all", "logsumexp")
def folded(d, name):
    floats = name in ("mean", "var", "norm", "logsumexp")
    t = "bool" if name in ("any", "all") else d.one_of(FLOATS if floats else FLOATS + INTEGERS)
    x = d.array(t, d.shape(0, 4, empty=name in ("sum", "prod", "any", "all")), special=name != "var")
    if name == "prod":
        x = d.array(t, x.shape, special=False, low=-2 if t[0] in "if" else 0, high=2)
    axes, keep = d.axes(x.ndim), d.chance(0.5)
    at = tuple(axes) if axes else None
    f = {"norm": lambda a, **k: np.sqrt(np.sum(a * a, **k)),
         "logsumexp": lambda a, **k: np.logaddexp.reduce(a, **k)}.get(name) or getattr(np, name)
    if x.dtype.kind in "iu" and name in ("sum", "prod"):
        y = f(x, axis=at, keepdims=keep, dtype=x.dtype)
    elif x.dtype.kind in "iub":
        y = f(x, axis=at, keepdims=keep)
    elif name == "logsumexp" and at is None:
        y = exact(lambda a: np.logaddexp.reduce(a.ravel()).reshape((1,) * a.ndim if keep else ()), x)
    elif name == "logsumexp":
        def by_axes(a):
            for axis in sorted((k % a.ndim for k in at), reverse=True):
                a = np.logaddexp.reduce(a, axis=axis, keepdims=True)
            return a if keep else a.squeeze(tuple(k % a.ndim for k in at))
        y = exact(by_axes, x)
    else:
        y = exact(lambda a: f(a, axis=at, keepdims=keep), x)
    return [x], [axes, [int(keep)]], [np.asarray(y)]


@call("argmax", "argmin", "sort", "argsort", "cumsum", "cumprod")
def along(d, name):
    t = d.one_of(FLOATS + INTEGERS)
    x = d.array(t, d.shape(1, 4, empty=name[:3] != "arg"), special=name[:3] != "cum")
    if name == "cumprod":
        x = d.array(t, x.shape, special=False, low=-2 if t[0] in "if" else 0, high=2)
    a = d.axis(x.ndim)
    f = getattr(np, name)
    if name[:3] == "cum":
        y = f(x, axis=a, dtype=x.dtype) if x.dtype.kind in "iu" else exact(lambda v: f(v, axis=a), x)
    elif name in ("sort", "argsort"):
        y = f(x, axis=a, kind="stable")
    else:
        y = f(x, axis=a)
    return [x], [[a]], [y]


@call("reshape")
def reshape(d, name):
    x = d.array(d.one_of(ALL), d.shape())
    target, rest = [], x.size
    while rest > 1 and len(target) < 5:
        e = d.one_of([k for k in range(1, rest + 1) if rest % k == 0])
        target.append(e)
        rest //= e
    target.append(rest)
    if x.size and d.chance(0.3):
        target[d.whole(0, len(target) - 1)] = -1
    return [x], [target], [x.reshape(target)]


@call("transpose")
def transpose(d, name):
    x = d.array(d.one_of(ALL), d.shape(0, 5))
    order = [int(a) - (x.ndim if d.chance(0.3) else 0) for a in d.r.permutation(x.ndim)]
    return [x], [order], [x.transpose([a % x.ndim for a in order]) if x.ndim else x]


@call("expand_dims", "squeeze")
def one_axis(d, name):
    x = d.array(d.one_of(ALL), d.shape(0, 4))
    if name == "expand_dims":
        a = d.axis(x.ndim + 1)
        return [x], [[a]], [np.expand_dims(x, a)]
    a = d.axis(x.ndim + 1)
    x = np.expand_dims(x, a)
    return [x], [[a]], [x.squeeze(a)]


@call("broadcast_to")
def broadcast_to(d, name):
    s = d.shape()
    x = d.array(d.one_of(ALL), d.broadcast(s))
    return [x], [list(s)], [np.broadcast_to(x, s)]


@call("tile")
def tile(d, name):
    x = d.array(d.one_of(ALL), d.shape(1, 4, empty=False))
    n = [d.whole(1, 3) for _ in range(x.ndim)]
    return [x], [n], [np.tile(x, n)]


@call("flip")
def flip(d, name):
    x = d.array(d.one_of(ALL), d.shape(1, 4, empty=False))
    axes = d.axes(x.ndim) or [0]
    return [x], [axes], [np.flip(x, axes)]


@call("slice")
def slice_(d, name):
    x = d.array(d.one_of(ALL), d.shape(1, 4, empty=False))
    start, stop, step = [], [], []
    for e in x.shape:
        a, b = sorted((d.whole(0, e - 1), d.whole(0, e - 1)))
        if d.chance(0.3):
            start.append(b), stop.append(a - 1), step.append(-d.whole(1, 2))
        else:
            start.append(a), stop.append(b + 1), step.append(d.whole(1, 3))
    at = tuple(slice(a, None if c < 0 and b < 0 else b, c) for a, b, c in zip(start, stop, step))
    return [x], [start, stop, step], [x[at]]


@call("concatenate", "stack")
def joined(d, name):
    t, s = d.one_of(ALL), list(d.shape(1, 4))
    a = d.axis(len(s) + (name == "stack"))
    parts = []
    for _ in range(d.whole(1, 4)):
        own = list(s)
        if name == "concatenate":
            own[a] = d.whole(1, 4)
        parts.append(d.array(t, tuple(own)))
    return parts, [[a]], [getattr(np, name)(parts, axis=a)]


@call("split")
def split(d, name):
    s = list(d.shape(1, 4, empty=False))
    n, a = d.whole(1, 4), d.axis(len(s))
    s[a] *= n
    x = d.array(d.one_of(ALL), tuple(s))
    return [x], [[n], [a]], np.split(x, n, axis=a)


@call("pad", "pad_reflect", "pad_edge")
def pad(d, name):
    x = d.array(d.one_of(HALF + INTEGERS), d.shape(1, 4, empty=False))
    most = [e - 1 if name == "pad_reflect" else 3 for e in x.shape]
    before, after = ([d.whole(0, m) for m in most] for _ in range(2))
    widths, value = list(zip(before, after)), d.whole(0, 7)
    if name == "pad":
        return [x], [before, after, [value]], [np.pad(x, widths, constant_values=value)]
    return [x], [before, after], [np.pad(x, widths, mode=name[4:])]


@call("take", "take_along_axis")
def take(d, name):
    x = d.array(d.one_of(ALL), d.shape(1, 4, empty=False))
    a = d.axis(x.ndim)
    if name == "take":
        i = d.array(d.one_of(["i32", "i64"]), d.shape(0, 2), special=False, low=0, high=x.shape[a] - 1)
        return [x, i], [[a]], [np.take(x, i, axis=a)]
    s = list(x.shape)
    s[a] = d.whole(1, 5)
    i = d.array(d.one_of(["i32", "i64"]), tuple(s), special=False, low=0, high=x.shape[a] - 1)
    return [x, i], [[a]], [np.take_along_axis(x, i, axis=a)]


@call("tril", "triu")
def triangle(d, name):
    x = d.array(d.one_of(HALF + INTEGERS), d.shape(2, 4, empty=False))
    k = d.whole(-4, 4)
    return [x], [[k]], [getattr(np, name)(x, k)]


@call("diagonal", "trace")
def diagonal(d, name):
    n = d.whole(1, 5)
    x = d.array(d.one_of(FLOATS), (n, n))
    return [x], [], [exact(getattr(np, name), x)]


@call("clip")
def clip(d, name):
    x = d.array(d.one_of(HALF + INTEGERS), d.shape())
    low, high = sorted((d.whole(0, 5), d.whole(0, 20)))
    return [x], [[low, high]], [np.clip(x, x.dtype.type(low), x.dtype.type(high))]


@call("matmul")
def matmul(d, name):
    t = d.one_of(FLOATS + INTEGERS + COMPLEX)
    m, k, n = d.whole(1, 6), d.whole(1, 6), d.whole(1, 6)
    batch = d.shape(0, 2, empty=False)
    ta, tb = d.chance(0.3), d.chance(0.3)
    a = d.array(t, (() if d.chance(0.3) else batch) + ((k, m) if ta else (m, k)), special=False)
    b = d.array(t, batch + ((n, k) if tb else (k, n)), special=False)
    f = lambda x, y: np.matmul(x.swapaxes(-1, -2) if ta else x, y.swapaxes(-1, -2) if tb else y)
    return [a, b], [[int(ta), int(tb)]], [f(a, b) if a.dtype.kind in "iu" else exact(f, a, b)]


@call("outer")
def outer(d, name):
    t = d.one_of(FLOATS + INTEGERS)
    x, y = d.array(t, (d.whole(1, 6),), special=False), d.array(t, (d.whole(1, 6),), special=False)
    return [x, y], [], [np.outer(x, y) if x.dtype.kind in "iu" else exact(np.outer, x, y)]


@call("tensordot")
def tensordot(d, name):
    t = d.one_of(FLOATS)
    x = d.array(t, d.shape(1, 3, empty=False), special=False)
    count = d.whole(0, min(2, x.ndim))
    a = [int(k) for k in d.r.permutation(x.ndim)[:count]]
    s = [x.shape[k] for k in a] + [d.whole(1, 4) for _ in range(d.whole(0, 2))]
    order = [int(k) for k in d.r.permutation(len(s))]
    y = d.array(t, tuple(s[k] for k in order), special=False)
    b = [order.index(k) for k in range(count)]
    return [x, y], [a, b], [exact(lambda p, q: np.tensordot(p, q, (a, b)), x, y)]


@call("astype")
def astype(d, name):
    to = d.one_of([c for c in CODES if c != "bf16"])
    x = d.array(d.one_of(HALF + INTEGERS + ["bool"]), d.shape(), special=False)
    if x.dtype.kind == "f" and to[0] in "iu":  # outside of the type C++ and NumPy do what they like
        x = d.array(OF_TYPE[x.dtype], x.shape, low=-100 if to[0] == "i" else 0, high=100)
    return [x], [[CODES.index(to)]], [x.astype(NAMES[to])]


# ---- special functions and statistics

for n, low, high in (("gammaln", 0.01, 30), ("digamma", 0.01, 30), ("i0e", -50, 50), ("i1e", -50, 50),
                     ("erfinv", -0.999, 0.999)):
    def special(d, name, low=low, high=high):
        x = d.array(d.one_of(HALF), d.shape(), low=low, high=high)
        return [x], [], [exact(getattr(scipy.special, name), x)]
    CALLS[n] = special
CALLS["exp2"] = CALLS["sinc"] = of_one(FLOATS, -5, 5)
CALLS["log10"] = of_one(FLOATS, 0.01, 100)
CALLS["isnan"] = CALLS["isinf"] = CALLS["isfinite"] = of_one(HALF)


@call("logaddexp", "hypot", "xlogy", "isclose")
def of_two_floats(d, name):
    t, s = d.one_of(FLOATS), d.shape()
    x, y = d.array(t, s), d.array(t, d.broadcast(s))
    if name == "xlogy":
        x, y = d.array(t, s, special=False), d.array(t, y.shape, low=0.1, high=9)
    if name == "isclose" and d.chance(0.5):
        y = np.asarray(x + 1e-6 * d.array(t, s, special=False)).astype(x.dtype)
    if name == "isclose":
        return [x, y], [], [(abs(x - y) <= abs(y) * x.dtype.type(1e-5) + x.dtype.type(1e-8)) & np.isfinite(y) | (x == y)]
    return [x, y], [], [exact(getattr(np, name, None) or getattr(scipy.special, name), x, y)]


@call("heaviside", "nan_to_num")
def replaced(d, name):
    x = d.array(d.one_of(FLOATS), d.shape())
    if name == "heaviside":
        return [x], [], [np.where(np.isnan(x), 0, np.heaviside(x, 0.5)).astype(x.dtype)]
    return [x], [], [np.nan_to_num(np.clip(x, -100, 100), nan=7).astype(x.dtype)]


@call("std", "vector_norm", "count_nonzero")
def folded_further(d, name):
    x = d.array(d.one_of(FLOATS), d.shape(0, 4, empty=False), special=name == "count_nonzero")
    axes, keep = d.axes(x.ndim), d.chance(0.5)
    at = tuple(axes) if axes else None
    if name == "std":
        return [x], [axes, [int(keep)]], [exact(lambda a: np.std(a, axis=at, keepdims=keep), x)]
    if name == "count_nonzero":
        return [x], [axes, [int(keep)]], [np.asarray(np.count_nonzero(x, axis=at, keepdims=keep)).astype(np.int64)]
    order = d.one_of([0, 100, 150, 200, 300])
    f = lambda a: np.linalg.vector_norm(a, ord=order / 100, axis=at, keepdims=keep)
    return [x], [axes, [int(keep)], [order]], [exact(f, x)]


@call("diff", "median", "quantile", "cummax", "cummin")
def along_further(d, name):
    x = d.array(d.one_of(FLOATS), d.shape(1, 3, empty=False), special=name[:3] == "cum")
    a, keep, q = d.axis(x.ndim), d.chance(0.5), d.whole(0, 100)
    if name == "diff":
        x = np.concatenate([x, x[::-1]], axis=a)
        return [x], [[a]], [np.diff(x, axis=a)]
    if name[:3] == "cum":
        f = np.maximum if name == "cummax" else np.minimum
        return [x], [[a]], [f.accumulate(x, axis=a)]
    if name == "median":
        return [x], [[a], [int(keep)]], [exact(lambda v: np.median(v, axis=a, keepdims=keep), x)]
    return [x], [[a], [q], [int(keep)]], [exact(lambda v: np.quantile(v, q / 100, axis=a, keepdims=keep), x)]


@call("bincount", "bincount_weights")
def bincount(d, name):
    n = d.whole(1, 8)
    x = d.array(d.one_of(["i32", "i64"]), d.shape(0, 2), special=False, low=0, high=n - 1)
    if name == "bincount":
        return [x], [[n]], [np.bincount(x.ravel(), minlength=n).astype(np.int64)]
    w = d.array("f64", x.shape, special=False)
    return [x, w], [[n]], [np.bincount(x.ravel(), w.ravel(), minlength=n).astype(np.float64)]


@call("searchsorted")
def searchsorted(d, name):
    t = d.one_of(FLOATS + ["i32", "i64"])
    edges = np.sort(d.array(t, (d.whole(1, 9),), special=False))
    x = d.array(t, d.shape(0, 3), special=False)
    right = d.chance(0.5)
    return [edges, x], [[int(right)]], [np.asarray(np.searchsorted(edges, x, "right" if right else "left")).astype(np.int64)]


@call("histogram")
def histogram(d, name):
    x = np.round(d.array("f64", d.shape(), special=False), 1)
    low, bins = d.whole(-3, 2), d.whole(1, 12)
    high = low + d.whole(1, 4)
    return [x], [[bins], [low, high]], [np.histogram(x, bins, (low, high))[0].astype(np.int64)]


# ---- other places


@call("moveaxis", "swapaxes")
def moved(d, name):
    x = d.array(d.one_of(ALL), d.shape(1, 5))
    a, b = d.axis(x.ndim), d.axis(x.ndim)
    return [x], [[a, b]], [getattr(np, name)(x, a, b)]


@call("repeat", "roll")
def repeated(d, name):
    x = d.array(d.one_of(ALL), d.shape(1, 4, empty=name == "roll"))
    a, n = d.axis(x.ndim), d.whole(1, 4) if name == "repeat" else d.whole(-9, 9)
    return [x], [[n], [a]], [getattr(np, name)(x, n, axis=a)]


@call("rot90")
def rot90(d, name):
    x, k = d.array(d.one_of(ALL), d.shape(2, 4, empty=False)), d.whole(-5, 5)
    return [x], [[k]], [np.rot90(x, k, axes=(-2, -1))]


@call("meshgrid")
def meshgrid(d, name):
    t = d.one_of(ALL)
    x = [d.array(t, (d.whole(1, 5),)) for _ in range(3)]
    ij = d.chance(0.5)
    return x, [[int(ij)]], list(np.meshgrid(*x, indexing="ij" if ij else "xy"))


@call("pad_symmetric", "pad_wrap")
def pad_further(d, name):
    x = d.array(d.one_of(HALF + INTEGERS), d.shape(1, 4, empty=False))
    before, after = ([d.whole(0, e) for e in x.shape] for _ in range(2))
    return [x], [before, after], [np.pad(x, list(zip(before, after)), mode=name[4:])]


@call("unique")
def unique(d, name):
    x = np.round(d.array(d.one_of(FLOATS + ["i8", "i64", "u16"]), d.shape(empty=False), special=False))
    x = abs(x) if x.dtype.kind == "u" else x
    values, inverse, counts = np.unique(x, return_inverse=True, return_counts=True)
    size = len(values) + d.whole(0, 2)
    if x.dtype.kind == "u" and size > len(values):
        size = len(values)
    more = size - len(values)
    return [x], [[size]], [np.concatenate([values, np.full(more, -3).astype(x.dtype)]) if more else values,
                           np.concatenate([counts, np.zeros(more, np.int64)]), inverse.reshape(x.shape),
                           np.asarray(len(values))]


@call("segment")
def segment(d, name):
    t = d.one_of(FLOATS + ["i8", "i32", "u8"])
    n, count = d.whole(1, 9), d.whole(1, 5)
    x = d.array(t, (n,) + d.shape(0, 2, empty=False), special=False, low=-2 if t[0] != "u" else 0, high=2)
    i = d.array(d.one_of(["i32", "i64"]), (n,), special=False, low=-1, high=count)
    whole = x.dtype.kind in "iu"
    ends = (np.iinfo(x.dtype).min, np.iinfo(x.dtype).max) if whole else (-np.inf, np.inf)
    all = [np.full((count,) + x.shape[1:], e, x.dtype) for e in (0, *ends, 1)]
    inside = (i >= 0) & (i < count)
    for y, f in zip(all, (np.add, np.maximum, np.minimum, np.multiply)):
        f.at(y, i[inside], x[inside])
    return [x, i], [[count]], all


@call("scatter_elements")
def scatter_elements(d, name):
    t = d.one_of(FLOATS + ["i32", "i64"])
    x = d.array(t, d.shape(1, 3, empty=False), special=False, low=-3, high=3)
    a, mode = d.axis(x.ndim), d.whole(1, 4)  # 0, updates, do not say whose value stays
    s = [d.whole(1, e) for e in x.shape]
    i = d.array("i64", tuple(s), special=False, low=0, high=x.shape[a] - 1)
    v = d.array(t, tuple(s), special=False, low=-3, high=3)
    y = x.astype(np.float64) if x.dtype.kind == "f" else x.copy()
    at = list(np.indices(s))
    at[a] = i
    (np.add, np.multiply, np.maximum, np.minimum)[mode - 1].at(y, tuple(at), v)
    return [x, i, v], [[a], [mode]], [y.astype(x.dtype)]


# ---- sums of products, linear algebra, transforms


@call("einsum")
def einsum(d, name):
    letters = "abcde"[: d.whole(1, 5)]
    extent = {c: d.whole(1, 4) for c in letters}
    terms = ["".join(d.one_of(letters) for _ in range(d.whole(0, 3))) for _ in range(d.whole(1, 3))]
    dots = d.chance(0.3)
    arrays, left = [], []
    for term in terms:
        lead = tuple(1 if d.chance(0.3) else e for e in (2, 3)[d.whole(0, 2):]) if dots else ()
        arrays.append(d.array("f64", lead + tuple(extent[c] for c in term), special=False))
        left.append(("..." if dots else "") + term)
    used = [c for c in letters if any(c in t for t in terms)]
    equation = ",".join(left)
    if d.chance(0.7):
        order = [used[k] for k in d.r.permutation(len(used))[: d.whole(0, len(used))]]
        equation += "->" + ("..." if dots else "") + "".join(order)
    return arrays, [[ord(c) for c in equation]], [np.asarray(np.einsum(equation, *arrays))]


@call("cholesky", "inv", "det", "slogdet", "eigvalsh", "matrix_power")
def of_square(d, name):
    n = d.whole(1, 7)
    x = d.array(d.one_of(FLOATS), d.shape(0, 2, empty=False) + (n, n), special=False, low=-1, high=1)
    if name == "cholesky":
        x = x @ x.swapaxes(-1, -2) + np.eye(n, dtype=x.dtype)
    elif name == "eigvalsh":
        x = x + x.swapaxes(-1, -2)
    else:
        x = x + 3 * np.eye(n, dtype=x.dtype)
    if name == "matrix_power":
        k = d.whole(-3, 5)
        return [x], [[k]], [exact(lambda a: np.linalg.matrix_power(a, k), x)]
    y = exact(getattr(np.linalg, name), x) if name != "slogdet" else None
    if y is None:
        y = [v.astype(x.dtype) for v in np.linalg.slogdet(x.astype(np.float64))]
        return [x], [], [np.asarray(v) for v in y]
    return [x], [], [y]


@call("solve", "lstsq")
def equations(d, name):
    n, m = d.whole(1, 6), d.whole(0, 4)
    t, batch = d.one_of(FLOATS), d.shape(0, 2, empty=False)
    if name == "solve":
        a = d.array(t, batch + (n, n), special=False, low=-1, high=1) + 3 * np.eye(n, dtype=NAMES[t])
        b = d.array(t, (batch if d.chance(0.6) else ()) + (n, d.whole(1, 3)), special=False)
        return [a, b], [], [exact(np.linalg.solve, a, b)]
    a = d.array(t, (n + m, n), special=False, low=-1, high=1) + 3 * np.eye(n + m, n, dtype=NAMES[t])
    a = a.T if d.chance(0.3) else a
    b = d.array(t, (a.shape[0], 2) if d.chance(0.5) else (a.shape[0],), special=False)
    return [a.copy(), b], [], [exact(lambda p, q: np.linalg.lstsq(p, q, rcond=None)[0], a, b)]


@call("qr", "svdvals", "pinv")
def of_matrix(d, name):
    m, n = d.whole(1, 7), d.whole(1, 7)
    if name == "qr":
        m, n = max(m, n), min(m, n)
    x = d.array(d.one_of(FLOATS), d.shape(0, 2, empty=False) + (m, n), special=False, low=-1, high=1)
    x = x + 2 * np.eye(m, n, dtype=x.dtype)
    if name == "qr":
        return [x], [], [v.astype(x.dtype) for v in np.linalg.qr(x.astype(np.float64))]
    return [x], [], [exact(np.linalg.pinv if name == "pinv" else np.linalg.svdvals, x)]


@call("kron")
def kron(d, name):
    x, y = (d.array("f64", (d.whole(1, 4), d.whole(1, 4)), special=False) for _ in range(2))
    return [x, y], [], [np.kron(x, y)]


@call("fft", "ifft", "rfft", "irfft", "fftn")
def transform(d, name):
    wide = d.chance(0.5)
    real = name == "rfft" or (name in ("fft", "fftn") and d.chance(0.5))
    x = d.array(("f64" if wide else "f32") if real else ("c128" if wide else "c64"), d.shape(1, 3, empty=False),
                special=False)
    a = d.axis(x.ndim)
    numbers = [[a]]
    f = lambda v: getattr(np.fft, name)(v, axis=a)
    if name == "irfft":
        count = 2 * (x.shape[a] - 1) + (d.whole(0, 1) if x.shape[a] > 1 else 1)
        numbers.append([count])
        f = lambda v: np.fft.irfft(v, count, axis=a)
    if name == "fftn":
        axes = [int(k) for k in d.r.permutation(x.ndim)[: d.whole(1, x.ndim)]]
        numbers = [axes]
        f = lambda v: np.fft.fftn(v, axes=axes)
    y = f(x.astype(np.float64 if real else np.complex128))
    return [x], numbers, [y.astype({"f": np.float64 if wide else np.float32,
                                    "c": np.complex128 if wide else np.complex64}[y.dtype.kind])]


# ---- comparison

SUMS = {"mod", "fmod", "sum", "mean", "var", "norm", "prod", "cumsum", "cumprod", "matmul", "tensordot", "trace",
        "logsumexp", "std", "vector_norm", "diff", "bincount_weights", "segment", "scatter_elements", "einsum", "kron",
        "fft", "ifft", "rfft", "irfft", "fftn", "median", "quantile", "gammaln", "digamma", "xlogy", "logaddexp",
        "sinc", "i0e", "i1e"}
# What is computed in many steps, of matrices whose condition is small.
DECOMPOSED = {"cholesky", "inv", "det", "slogdet", "eigvalsh", "matrix_power", "solve", "lstsq", "qr", "svdvals", "pinv"}


def differs(name, got, want, arrays):
    """What differs, or nothing."""
    if got.dtype != want.dtype or got.shape != want.shape:
        return f"{OF_TYPE[got.dtype]}{list(got.shape)} instead of {OF_TYPE.get(want.dtype)}{list(want.shape)}"
    if want.dtype.kind not in "fc":
        return "" if np.array_equal(got, want) else f"{got.tolist()} instead of {want.tolist()}"
    eps = float(np.finfo(want.dtype).eps)
    tiny = float(np.finfo(want.dtype).tiny)
    relative = 4 * eps
    size = abs(want.astype(np.complex128 if want.dtype.kind == "c" else np.float64))
    if name in DECOMPOSED:
        relative, size = 2000 * eps, size + size.max(initial=1)
    elif name in SUMS or want.dtype.kind == "c":
        # Beside the largest number that goes in.
        relative = 64 * eps
        finite = [abs(a[np.isfinite(a)]).max(initial=0) for a in arrays if a.dtype.kind in "fc"]
        size = size + float(np.prod([float(f) for f in finite] or [0])) + max(map(float, finite), default=0)
    with np.errstate(all="ignore"):
        near = abs(got.astype(size.dtype if want.dtype.kind == "f" else np.complex128) - want) <= relative * size + 2 * tiny
    same = near | (got == want) | (np.isnan(got) & np.isnan(want))
    return "" if same.all() else f"{got.tolist()} instead of {want.tolist()}"


def text(array):
    return {"dtype": OF_TYPE[array.dtype], "shape": list(array.shape),
            "bytes": np.ascontiguousarray(array).tobytes().hex()}


def array_of(j):
    return np.frombuffer(bytes.fromhex(j["bytes"]), NAMES[j["dtype"]]).reshape(j["shape"])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--calls", type=int, default=20000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only")
    parser.add_argument("--verbose", action="store_true")
    given = parser.parse_args()
    np.seterr(all="ignore")
    names = [given.only] if given.only else sorted(CALLS)
    def start():
        return subprocess.Popen([given.program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    cella = start()
    wrong, planned = Counter(), Counter()
    for k in range(given.calls):
        name = names[k % len(names)]
        draw = Draw([given.seed, k])
        arrays, numbers, expected = CALLS[name](draw, name)
        line = json.dumps({"f": name, "in": [text(a) for a in arrays], "n": numbers})
        cella.stdin.write(line + "\n")
        cella.stdin.flush()
        reply = cella.stdout.readline()
        if not reply:
            cella = start()
            reply = '{"error": "it crashed"}'
        answer = json.loads(reply)
        fault = answer.get("error", "")
        for tier in ("interpreted", "planned"):
            results = answer.get(tier)
            if fault or results is None:
                continue
            planned[tier] += 1
            if len(results) != len(expected):
                fault = f"{tier}: {len(results)} results instead of {len(expected)}"
            for got, want in zip(results, expected):
                found = differs(name, array_of(got), want, arrays)
                fault = fault or (found and f"{tier}: {found}")
        if fault:
            wrong[name] += 1
            if given.verbose or wrong[name] == 1:
                print(f"{name}, call {k}: {fault[:400]}\n    of {numbers} and "
                      + ", ".join(f"{OF_TYPE[a.dtype]}{list(a.shape)} {a.tolist()}"[:300] for a in arrays))
    cella.stdin.close()
    cella.wait()
    print(f"{given.calls} calls of {len(names)} functions, {planned['planned']} of them on kernels as well: "
          f"{sum(wrong.values())} differ" + "".join(f", {n} {c}" for n, c in wrong.most_common()))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
