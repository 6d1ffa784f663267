#!/usr/bin/env python3
"""Times single operations in Cella, PyTorch and JAX on this machine, with one thread, on the same numbers.

`--cella` is the program `operation_times`, whose table says which calls there are and what their operands
hold. Frameworks take turns in rounds; of each the least time counts. PyTorch runs eagerly, JAX what
`jax.jit` makes; both as their users call them, with results that are computed when the time is taken.
Whatever neither of the two can be asked for in a line or two is compared with the other one.

  benchmarks/operation_times.py --cella build/release/benchmarks/operation_times --rounds 2 \\
      --lines operations.jsonl --report docs/operations_performance.md

Results are compared by their mean; where they differ the line says so ("differs").
"""
import argparse
import collections
import json
import math
import os
import subprocess
import sys
import time

import report

PEERS = ("torch", "jax")
# Families that stand in the tables, and are not counted among all.
WITHOUT_AIM = ("linear algebra", "Fourier transform", "random numbers", "sparse product")


def arguments():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--cella", metavar="PROGRAM", help="the program `operation_times`")
    p.add_argument("--rounds", type=int, default=2)
    p.add_argument("--seconds", type=float, default=0.1, help="for each call of each framework")
    p.add_argument("--names", nargs="+", default=[], help="these operations only")
    p.add_argument("--lines", metavar="FILE", help="write each least time as a line of JSON")
    p.add_argument("--from", dest="old", nargs="+", metavar="FILE",
                   help="measure nothing: take the lines of these files, of which the last counts")
    p.add_argument("--report", metavar="FILE", help="put the table into this Markdown file")
    p.add_argument("--kind", default="", help="of machine, for which the report has a table of its own")
    p.add_argument("--peer", choices=PEERS, help=argparse.SUPPRESS)
    return p.parse_args()


# ---- operands

def numbers(np, operand, k):
    """What `operation_times` fills operand k with."""
    element, extents, low, high = operand
    h = np.arange(math.prod(extents), dtype=np.uint32) + np.uint32(k * 0x9e3779b9 % 2**32)
    h = (h ^ (h >> np.uint32(16))) * np.uint32(0x7feb352d)
    h = (h ^ (h >> np.uint32(15))) * np.uint32(0x846ca68b)
    x = low + (high - low) * ((h ^ (h >> np.uint32(16))) / 4294967296.0)
    types = {"f32": np.float32, "i32": np.int32, "bool": np.bool_}
    if element != "f32":
        x = np.floor(x)
    return x.astype(types[element]).reshape(extents)


# ---- the calls in other frameworks

def torch_calls():
    import torch
    import torch.nn.functional as F

    def index(i):  # PyTorch's indices have 64 bits
        return i.long()

    def pad(mode):
        return lambda x: F.pad(x, (2, 2, 2, 2), mode=mode)

    def zeros_like_rows(x):
        return torch.zeros_like(x)

    def regular(x):
        return x + torch.eye(x.shape[0])

    def scaled_columns(x, factors, rows=None):
        y = x.abs() * factors
        return y if rows is None else y + rows.abs()

    t = torch
    own = {
        "neg": t.neg, "log1p": t.log1p, "erfinv": t.erfinv, "i0e": t.special.i0e, "i1e": t.special.i1e,
        "relu": t.relu, "softplus": F.softplus, "gelu": F.gelu,
        "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"), "silu": F.silu, "mish": F.mish, "elu": F.elu,
        "selu": F.selu, "leaky_relu": F.leaky_relu, "hard_sigmoid": F.hardsigmoid, "hard_swish": F.hardswish,
        "clamp": lambda x: t.clamp(x, -1, 1), "nan_to_num": lambda x: t.nan_to_num(x, 0, 9, -9),
        "cast to i32": lambda x: x.to(t.int32), "cast to bf16": lambda x: x.to(t.bfloat16),
        "mod": t.remainder, "fmod": t.fmod, "floor_div": lambda x, y: t.floor_divide(x, y),
        "equal": t.eq, "less": t.lt, "greater_equal": t.ge, "is_nan": t.isnan, "is_finite": t.isfinite,
        "where": t.where, "add of i32": t.add, "mul of i32": t.mul, "left_shift": t.bitwise_left_shift,
        "right_shift": t.bitwise_right_shift,
        "sum": t.sum, "sum, axis 0": lambda x: t.sum(x, 0), "sum, axis 1": lambda x: t.sum(x, 1),
        "mean, axis 1": lambda x: t.mean(x, 1), "prod": t.prod, "prod, axis 0": lambda x: t.prod(x, 0),
        "prod, axis 1": lambda x: t.prod(x, 1), "max": t.amax, "max, axis 0": lambda x: t.amax(x, 0),
        "max, axis 1": lambda x: t.amax(x, 1), "min, axis 1": lambda x: t.amin(x, 1),
        "argmax, axis 0": lambda x: t.argmax(x, 0), "argmax, axis 1": lambda x: t.argmax(x, 1),
        "argmin, axis 1": lambda x: t.argmin(x, 1), "any, axis 1": lambda x: t.any(x, 1),
        "all, axis 0": lambda x: t.all(x, 0), "count_nonzero": t.count_nonzero,
        "logsumexp, axis 1": lambda x: t.logsumexp(x, 1),
        "variance, axis 0": lambda x: t.var(x, 0, correction=0),
        "variance, axis 1": lambda x: t.var(x, 1, correction=0),
        "standard_deviation": lambda x: t.std(x, correction=0),
        "l2_norm, axis 1": lambda x: t.linalg.vector_norm(x, 2, 1),
        "vector_norm of order 1": lambda x: t.linalg.vector_norm(x, 1, 1),
        "median, axis 1": lambda x: t.quantile(x, 0.5, 1), "quantile, axis 1": lambda x: t.quantile(x, 0.3, 1),
        "histogram": lambda x: t.histc(x, 50, -2, 2), "bincount": lambda x: t.bincount(x, minlength=100),
        "cumsum": lambda x: t.cumsum(x, 0), "cumsum, axis 0": lambda x: t.cumsum(x, 0),
        "cumsum, axis 1": lambda x: t.cumsum(x, 1),
        "cumsum, reversed": lambda x: t.cumsum(x.flip(1), 1).flip(1),
        "cumprod": lambda x: t.cumprod(x, 0), "cumprod, axis 0": lambda x: t.cumprod(x, 0),
        "cumprod, axis 1": lambda x: t.cumprod(x, 1), "cummax, axis 0": lambda x: t.cummax(x, 0)[0],
        "cummax, axis 1": lambda x: t.cummax(x, 1)[0], "cummin, axis 1": lambda x: t.cummin(x, 1)[0],
        "diff": lambda x: t.diff(x, dim=1),
        "transpose": lambda x: x.t().contiguous(),
        "transpose to channels last": lambda x: x.permute(0, 2, 3, 1).contiguous(),
        "concat, axis 0": lambda x, y: t.cat((x, y), 0), "concat, axis 1": lambda x, y: t.cat((x, y), 1),
        "stack": lambda x, y: t.stack((x, y), 1), "tile": lambda x: t.tile(x, (2, 2)),
        "repeat": lambda x: t.repeat_interleave(x, 2, 1), "slice": lambda x: x[:, 1:-1].contiguous(),
        "slice of every other": lambda x: x[:, ::2].contiguous(), "reverse": lambda x: t.flip(x, (1,)),
        "roll": lambda x: t.roll(x, 3, 1), "rot90": lambda x: t.rot90(x).contiguous(),
        "pad": lambda x: F.pad(x, (2, 2, 2, 2)), "pad_reflect": pad("reflect"), "pad_replicate": pad("replicate"),
        "pad_wrap": pad("circular"), "tril": t.tril, "triu": t.triu,
        "diagonal": lambda x: t.diagonal(x).contiguous(), "space_to_depth": lambda x: F.pixel_unshuffle(x, 2),
        "im2col": lambda x: F.unfold(x, 3, padding=1), "resize_nearest": lambda x: F.interpolate(x, scale_factor=2),
        "resize_bilinear": lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"),
        "outer sum": t.add, "sort": lambda x: t.sort(x)[0], "argsort": t.argsort,
        "sort, axis 0": lambda x: t.sort(x, 0)[0], "sort, axis 1": lambda x: t.sort(x, 1)[0],
        "sort, descending": lambda x: t.sort(x, 1, descending=True)[0], "argsort, axis 1": lambda x: t.argsort(x, 1),
        "top_k of a vector": lambda x: t.topk(x, 10)[0], "top_k, axis 1": lambda x: t.topk(x, 10, 1)[0],
        "top_k, indices": lambda x: t.topk(x, 10, 1)[1], "sort of i32": lambda x: t.sort(x)[0],
        "searchsorted": lambda e, x: t.searchsorted(t.cumsum(e, 0) * 0.02, x),
        "unique": lambda x: t.unique(t.round(x * 10)),
        "gather, axis 0": lambda x, i: t.index_select(x, 0, i), "gather, axis 1": lambda x, i: t.index_select(x, 1, i),
        "gather of a vector": lambda x, i: t.index_select(x, 0, i),
        "gather_elements, axis 0": lambda x, i: t.gather(x, 0, index(i)),
        "gather_elements, axis 1": lambda x, i: t.gather(x, 1, index(i)),
        "scatter": lambda x, i: zeros_like_rows(x).index_add_(0, i, x),
        "scatter of a vector": lambda x, i: zeros_like_rows(x).index_add_(0, i, x),
        "scatter_elements, axis 0": lambda x, y, i: t.scatter_add(x, 0, index(i), y),
        "scatter_elements, axis 1": lambda x, y, i: t.scatter_add(x, 1, index(i), y),
        "segment_mean": lambda x, i: zeros_like_rows(x).index_reduce_(0, i, x, "mean", include_self=False),
        "put_rows": lambda x, y, i: t.index_copy(x, 0, index(i), y),
        "gather_nd": lambda x, i: x[index(i[:, 0]), index(i[:, 1])],
        "one_hot": lambda i: F.one_hot(index(i), -1 if i is None else one_hot_depth[0]).float(),
        "softmax, axis 1": lambda x: t.softmax(x, 1), "softmax, axis 0": lambda x: t.softmax(x, 0),
        "log_softmax, axis 1": lambda x: t.log_softmax(x, 1),
        "cross_entropy": lambda x, i: F.cross_entropy(x, index(i)),
        "layer_norm": lambda x, g, b: F.layer_norm(x, g.shape, g, b),
        "rms_norm": lambda x, g: F.rms_norm(x, g.shape, g, 1e-5),
        "batch_norm": lambda x, g, b: F.batch_norm(x, None, None, g, b, training=True),
        "batch_norm, inference": lambda x, g, b, m, v: F.batch_norm(x, m, v, g, b),
        "group_norm": lambda x, g, b: F.group_norm(x, 2, g, b), "instance_norm": lambda x: F.instance_norm(x),
        "local_response_norm": lambda x: F.local_response_norm(x, 5),
        "l2_normalize": lambda x: F.normalize(x, dim=1),
        "max_pool 2": lambda x: F.max_pool2d(x, 2), "max_pool 3, stride 2": lambda x: F.max_pool2d(x, 3, 2, 1),
        "average_pool 2": lambda x: F.avg_pool2d(x, 2), "average_pool 3, stride 1": lambda x: F.avg_pool2d(x, 3, 1, 1),
        "lp_pool": lambda x: F.lp_pool2d(x, 2, 2), "global_average_pool": lambda x: x.mean((2, 3)),
        "adaptive_average_pool": lambda x: F.adaptive_avg_pool2d(x, 3),
        "adaptive_max_pool": lambda x: F.adaptive_max_pool2d(x, 3), "max_pool1d": lambda x: F.max_pool1d(x, 2),
        "average_pool1d": lambda x: F.avg_pool1d(x, 2), "max_pool3d": lambda x: F.max_pool3d(x, 2),
        "average_pool3d": lambda x: F.avg_pool3d(x, 2),
    }
    own |= {
        "cholesky": lambda x: t.linalg.cholesky(regular(x)), "inv": lambda x: t.linalg.inv(regular(x)),
        "det": lambda x: t.linalg.det(regular(x)), "qr": lambda x: t.mul(*t.linalg.qr(regular(x))),
        "eigh": lambda x: scaled_columns(*t.linalg.eigh(regular(x))[::-1]),
        "eigvalsh": lambda x: t.linalg.eigvalsh(regular(x)),
        "svd": lambda x: scaled_columns(*t.linalg.svd(regular(x), full_matrices=False)),
        "svd, values": lambda x: t.linalg.svdvals(regular(x)),
        "solve": lambda x, y: t.linalg.solve(regular(x), y),
        "solve_triangular": lambda x, y: t.linalg.solve_triangular(regular(x), y, upper=False),
        "irfft of rfft, axis 0": lambda x: t.fft.irfft(t.fft.rfft(x, dim=0), x.shape[0], 0),
        "random_uniform": t.rand_like, "random_normal": t.randn_like,
        "random_truncated_normal": lambda x: t.nn.init.trunc_normal_(t.empty_like(x)),
        "random_exponential": lambda x: t.empty_like(x).exponential_(),
        "random_bernoulli": t.bernoulli, "random_gamma": t._standard_gamma,
        "random_categorical": lambda x: t.multinomial(t.softmax(x, 1), 1),
        "random_beta": lambda x, y: t._sample_dirichlet(t.stack((x, y), 1))[:, 0],
        "random_poisson": t.poisson, "random_permutation": lambda x: t.randperm(x.shape[0]),
    }
    for name in ("irfft of rfft, 4096", "irfft of rfft, 3000"):
        own[name] = lambda x: t.fft.irfft(t.fft.rfft(x), x.shape[1])
    for name in ("csr matrix times 1 column", "csr matrix times 64 columns"):
        own[name] = lambda x, j, y: t.sparse_csr_tensor(
            t.arange(0, len(x) + 1, 10, dtype=j.dtype), j, x, (len(x) // 10,) * 2) @ y
    own["broadcast_to"] = lambda x: x.expand(broadcast_rows[0], -1).contiguous()
    own["segment_max"] = lambda x, i: t.full_like(x, -math.inf).index_reduce_(0, i, x, "amax")
    return own, t


one_hot_depth, broadcast_rows = [0], [0]  # of the size at hand


def jax_calls():
    import jax
    import jax.experimental.sparse
    import jax.numpy as jnp
    import jax.scipy.special as sp
    from jax import lax, nn

    def regular(x):
        return x + n.eye(x.shape[0])

    def scaled_columns(x, factors, rows=None):
        y = n.abs(x) * factors
        return y if rows is None else y + n.abs(rows)

    def norm(x, axes, shape):
        mean = x.mean(axes, keepdims=True)
        variance = x.var(axes, keepdims=True)
        return (x - mean) * lax.rsqrt(variance + 1e-5)

    def channels(g):
        return g[None, :, None, None]

    def groups(x, g, b):
        n, c, h, w = x.shape
        return norm(x.reshape(n, 2, -1), 2, None).reshape(x.shape) * channels(g) + channels(b)

    def pooled(x, size, stride, padding, start, op):
        rank = x.ndim - 2
        border = [(0, 0)] * 2 + [(padding, padding)] * rank
        return lax.reduce_window(x, start, op, (1, 1) + (size,) * rank, (1, 1) + (stride,) * rank, border)

    def largest(size, stride, padding=0):
        return lambda x: pooled(x, size, stride, padding, -jnp.inf, lax.max)

    def means(size, stride, padding=0):
        return lambda x: pooled(x, size, stride, padding, 0., lax.add) / size ** (x.ndim - 2)

    def pad(mode):
        return lambda x: jnp.pad(x, ((0, 0), (0, 0), (2, 2), (2, 2)), mode=mode)

    def resized(x, how):
        n, c, h, w = x.shape
        return jax.image.resize(x, (n, c, 2 * h, 2 * w), how)

    def space_to_depth(x):
        n, c, h, w = x.shape
        return x.reshape(n, c, h // 2, 2, w // 2, 2).transpose(0, 1, 3, 5, 2, 4).reshape(n, 4 * c, h // 2, w // 2)

    def parts_of(f):
        def pool(x):
            def bounds(n):
                return [(i * n // 3, -(-(i + 1) * n // 3)) for i in range(3)]
            rows = bounds(x.shape[2])
            columns = bounds(x.shape[3])
            return jnp.stack([jnp.stack([f(x[:, :, a:b, c:d], axis=(2, 3)) for c, d in columns], -1)
                              for a, b in rows], -2)
        return pool

    def response_norm(x):
        squares = jnp.pad(x * x, ((0, 0), (2, 2), (0, 0), (0, 0)))
        total = sum(squares[:, k:k + x.shape[1]] for k in range(5))
        return x / (1 + 1e-4 / 5 * total) ** 0.75

    def cross_entropy(x, i):
        return -jnp.mean(jnp.take_along_axis(nn.log_softmax(x, 1), i[:, None], 1))

    n = jnp
    calls = {
        "neg": n.negative, "rsqrt": lax.rsqrt, "asin": n.arcsin, "acos": n.arccos, "atan": n.arctan,
        "asinh": n.arcsinh, "acosh": n.arccosh, "atanh": n.arctanh, "atan2": n.arctan2, "erf": sp.erf,
        "erfc": sp.erfc, "erfinv": sp.erfinv, "lgamma": sp.gammaln, "digamma": sp.digamma, "i0e": sp.i0e,
        "i1e": sp.i1e, "sub": n.subtract, "mul": n.multiply, "div": n.divide, "pow": n.power,
        "sigmoid": nn.sigmoid, "relu": nn.relu, "softplus": nn.softplus,
        "gelu": lambda x: nn.gelu(x, approximate=False), "gelu_tanh": nn.gelu, "silu": nn.silu, "mish": nn.mish,
        "elu": nn.elu, "selu": nn.selu, "leaky_relu": nn.leaky_relu, "hard_sigmoid": nn.hard_sigmoid,
        "hard_swish": nn.hard_swish, "clamp": lambda x: n.clip(x, -1, 1),
        "nan_to_num": lambda x: n.nan_to_num(x, nan=0, posinf=9, neginf=-9),
        "cast to i32": lambda x: x.astype(n.int32), "cast to bf16": lambda x: x.astype(n.bfloat16),
        "mod": n.mod, "fmod": n.fmod, "floor_div": n.floor_divide, "is_nan": n.isnan, "is_finite": n.isfinite,
        "where": n.where, "add of i32": n.add, "mul of i32": n.multiply,
        "sum": n.sum, "sum, axis 0": lambda x: n.sum(x, 0), "sum, axis 1": lambda x: n.sum(x, 1),
        "mean, axis 1": lambda x: n.mean(x, 1), "prod": n.prod, "prod, axis 0": lambda x: n.prod(x, 0),
        "prod, axis 1": lambda x: n.prod(x, 1), "max": n.max, "max, axis 0": lambda x: n.max(x, 0),
        "max, axis 1": lambda x: n.max(x, 1), "min, axis 1": lambda x: n.min(x, 1),
        "argmax, axis 0": lambda x: n.argmax(x, 0), "argmax, axis 1": lambda x: n.argmax(x, 1),
        "argmin, axis 1": lambda x: n.argmin(x, 1), "any, axis 1": lambda x: n.any(x, 1),
        "all, axis 0": lambda x: n.all(x, 0), "logsumexp, axis 1": lambda x: sp.logsumexp(x, 1),
        "variance, axis 0": lambda x: n.var(x, 0), "variance, axis 1": lambda x: n.var(x, 1),
        "standard_deviation": n.std, "l2_norm, axis 1": lambda x: n.linalg.norm(x, 2, 1),
        "vector_norm of order 1": lambda x: n.linalg.norm(x, 1, 1), "median, axis 1": lambda x: n.median(x, 1),
        "quantile, axis 1": lambda x: n.quantile(x, 0.3, 1),
        "histogram": lambda x: n.histogram(x, 50, (-2, 2))[0], "bincount": lambda x: n.bincount(x, length=100),
        "cumsum": n.cumsum, "cumsum, axis 0": lambda x: n.cumsum(x, 0), "cumsum, axis 1": lambda x: n.cumsum(x, 1),
        "cumsum, reversed": lambda x: lax.cumsum(x, 1, reverse=True), "cumprod": n.cumprod,
        "cumprod, axis 0": lambda x: n.cumprod(x, 0), "cumprod, axis 1": lambda x: n.cumprod(x, 1),
        "cummax, axis 0": lambda x: lax.cummax(x, 0), "cummax, axis 1": lambda x: lax.cummax(x, 1),
        "cummin, axis 1": lambda x: lax.cummin(x, 1), "diff": lambda x: n.diff(x, axis=1),
        "transpose": n.transpose, "transpose to channels last": lambda x: n.transpose(x, (0, 2, 3, 1)),
        "concat, axis 0": lambda x, y: n.concatenate((x, y), 0),
        "concat, axis 1": lambda x, y: n.concatenate((x, y), 1), "stack": lambda x, y: n.stack((x, y), 1),
        "tile": lambda x: n.tile(x, (2, 2)), "repeat": lambda x: n.repeat(x, 2, 1), "slice": lambda x: x[:, 1:-1],
        "slice of every other": lambda x: x[:, ::2], "reverse": lambda x: x[:, ::-1],
        "roll": lambda x: n.roll(x, 3, 1), "rot90": n.rot90, "pad": lambda x: n.pad(x, 2),
        "pad_reflect": pad("reflect"), "pad_replicate": pad("edge"), "pad_wrap": pad("wrap"), "tril": n.tril,
        "triu": n.triu, "diagonal": n.diagonal, "space_to_depth": space_to_depth,
        "im2col": lambda x: lax.conv_general_dilated_patches(x, (3, 3), (1, 1), ((1, 1), (1, 1))),
        "resize_nearest": lambda x: resized(x, "nearest"), "resize_bilinear": lambda x: resized(x, "bilinear"),
        "outer sum": n.add, "sort": n.sort, "argsort": n.argsort, "sort, axis 0": lambda x: n.sort(x, 0),
        "sort, axis 1": lambda x: n.sort(x, 1), "sort, descending": lambda x: n.sort(x, 1, descending=True),
        "argsort, axis 1": lambda x: n.argsort(x, 1), "top_k of a vector": lambda x: lax.top_k(x, 10)[0],
        "top_k, axis 1": lambda x: lax.top_k(x, 10)[0], "top_k, indices": lambda x: lax.top_k(x, 10)[1],
        "sort of i32": n.sort, "searchsorted": lambda e, x: n.searchsorted(n.cumsum(e) * 0.02, x),
        "unique": lambda x: n.unique(n.round(x * 10), size=50, fill_value=0),
        "gather, axis 0": lambda x, i: x[i], "gather, axis 1": lambda x, i: x[:, i],
        "gather of a vector": lambda x, i: x[i],
        "gather_elements, axis 0": lambda x, i: n.take_along_axis(x, i, 0),
        "gather_elements, axis 1": lambda x, i: n.take_along_axis(x, i, 1),
        "scatter": lambda x, i: n.zeros_like(x).at[i].add(x),
        "scatter of a vector": lambda x, i: n.zeros_like(x).at[i].add(x),
        "scatter_elements, axis 0": lambda x, y, i: x.at[i, n.arange(x.shape[1])[None]].add(y),
        "scatter_elements, axis 1": lambda x, y, i: x.at[n.arange(x.shape[0])[:, None], i].add(y),
        "segment_max": lambda x, i: jax.ops.segment_max(x, i, x.shape[0]),
        "segment_mean": lambda x, i: jax.ops.segment_sum(x, i, x.shape[0])
        / n.maximum(jax.ops.segment_sum(n.ones_like(i, n.float32), i, x.shape[0]), 1)[:, None],
        "put_rows": lambda x, y, i: x.at[i].set(y), "gather_nd": lambda x, i: x[i[:, 0], i[:, 1]],
        "one_hot": lambda i: nn.one_hot(i, one_hot_depth[0]),
        "softmax, axis 1": lambda x: nn.softmax(x, 1), "softmax, axis 0": lambda x: nn.softmax(x, 0),
        "log_softmax, axis 1": lambda x: nn.log_softmax(x, 1), "cross_entropy": cross_entropy,
        "layer_norm": lambda x, g, b: norm(x, 1, None) * g + b,
        "rms_norm": lambda x, g: x * lax.rsqrt((x * x).mean(1, keepdims=True) + 1e-5) * g,
        "batch_norm": lambda x, g, b: norm(x, (0, 2, 3), None) * channels(g) + channels(b),
        "batch_norm, inference": lambda x, g, b, m, v:
        (x - channels(m)) * lax.rsqrt(channels(v) + 1e-5) * channels(g) + channels(b),
        "group_norm": groups, "instance_norm": lambda x: norm(x, (2, 3), None),
        "local_response_norm": response_norm,
        "l2_normalize": lambda x: x * lax.rsqrt(n.maximum((x * x).sum(1, keepdims=True), 1e-12)),
        "max_pool 2": largest(2, 2), "max_pool 3, stride 2": largest(3, 2, 1), "average_pool 2": means(2, 2),
        "average_pool 3, stride 1": means(3, 1, 1),
        "lp_pool": lambda x: n.sqrt(pooled(x * x, 2, 2, 0, 0., lax.add)),
        "global_average_pool": lambda x: x.mean((2, 3)), "adaptive_average_pool": parts_of(n.mean),
        "adaptive_max_pool": parts_of(n.max), "max_pool1d": largest(2, 2), "average_pool1d": means(2, 2),
        "max_pool3d": largest(2, 2), "average_pool3d": means(2, 2),
    }
    draw = jax.random

    def sparse_product(x, j, y):
        rows = n.arange(len(x), dtype=j.dtype) // 10
        entries = jax.experimental.sparse.BCOO((x, n.stack((rows, j), 1)), shape=(len(x) // 10,) * 2,
                                               indices_sorted=True)
        return entries @ y

    def drawn(f):
        return lambda key, *x: f(draw.wrap_key_data(key), *x)

    calls |= {
        "cholesky": lambda x: lax.linalg.cholesky(regular(x), symmetrize_input=False),
        "inv": lambda x: n.linalg.inv(regular(x)), "det": lambda x: n.linalg.det(regular(x)),
        "qr": lambda x: n.multiply(*n.linalg.qr(regular(x))),
        "eigh": lambda x: scaled_columns(*lax.linalg.eigh(regular(x), symmetrize_input=False)),
        "eigvalsh": lambda x: n.linalg.eigvalsh(regular(x), symmetrize_input=False),
        "svd": lambda x: scaled_columns(*n.linalg.svd(regular(x), full_matrices=False)),
        "svd, values": lambda x: n.linalg.svd(regular(x), compute_uv=False),
        "solve": lambda x, y: n.linalg.solve(regular(x), y),
        "solve_triangular": lambda x, y: jax.scipy.linalg.solve_triangular(regular(x), y, lower=True),
        "irfft of rfft, axis 0": lambda x: n.fft.irfft(n.fft.rfft(x, axis=0), x.shape[0], 0),
        "csr matrix times 1 column": sparse_product, "csr matrix times 64 columns": sparse_product,
        "random_uniform": drawn(lambda k, x: draw.uniform(k, x.shape)),
        "random_normal": drawn(lambda k, x: draw.normal(k, x.shape)),
        "random_truncated_normal": drawn(lambda k, x: draw.truncated_normal(k, -2, 2, x.shape)),
        "random_exponential": drawn(lambda k, x: draw.exponential(k, x.shape)),
        "random_bernoulli": drawn(draw.bernoulli), "random_categorical": drawn(draw.categorical),
        "random_gamma": drawn(draw.gamma), "random_beta": drawn(draw.beta), "random_poisson": drawn(draw.poisson),
        "random_permutation": drawn(lambda k, x: draw.permutation(k, x.shape[0])),
    }
    for name in ("irfft of rfft, 4096", "irfft of rfft, 3000"):
        calls[name] = lambda x: n.fft.irfft(n.fft.rfft(x), x.shape[1])
    calls["broadcast_to"] = lambda x: n.broadcast_to(x, (broadcast_rows[0], x.shape[0]))
    return calls, jax


# ---- measuring

def least_time(call, seconds):
    """The least microseconds of a call; short ones are timed in bunches."""
    best, bunch, turns = math.inf, 1, 0
    end = time.perf_counter() + seconds
    while turns < 3 or time.perf_counter() < end:
        before = time.perf_counter()
        for _ in range(bunch):
            call()
        took = (time.perf_counter() - before) * 1e6
        best = min(best, took / bunch)
        turns += 1
        if took < 50:
            bunch *= 2
    return best


def run_peer(peer, seconds):
    """Reads calls from standard input and prints their times: a process of its own."""
    import numpy as np
    if peer == "torch":
        own, library = torch_calls()
        library.set_num_threads(1)
        library.set_grad_enabled(False)

        def find(name):
            plain = name.removesuffix(" of i32")
            return own.get(name) or getattr(library, plain, None) or getattr(library.special, plain)
    else:
        os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
        own, library = jax_calls()
        library.config.update("jax_cpu_enable_async_dispatch", False)

        def find(name):
            return own.get(name) or getattr(library.numpy, name)
    for line in sys.stdin:
        row = json.loads(line)
        inputs = [numbers(np, operand, k) for k, operand in enumerate(row["operands"])]
        one_hot_depth[0] = int(row["operands"][0][3])
        broadcast_rows[0] = 1000 if row["elements"] > 1000 else 25
        try:
            f = find(row["operation"])
        except AttributeError:
            continue  # it has none
        if peer == "torch":
            x = [library.from_numpy(i) for i in inputs]
            result = f(*x)
            us = least_time(lambda: f(*x), seconds)
            y = result.double().numpy()
        else:
            x = [library.numpy.asarray(i) for i in inputs]
            if row["family"] == "random numbers":
                x.insert(0, library.random.key_data(library.random.key(0)))
            compiled = library.jit(f)
            result = compiled(*x).block_until_ready()
            us = least_time(lambda: compiled(*x).block_until_ready(), seconds)
            y = np.asarray(result).astype(np.float64)
        y = np.where(np.isfinite(y), y, 0)
        print(json.dumps({"framework": peer, "version": library.__version__, "operation": row["operation"],
                          "family": row["family"], "elements": row["elements"], "us": round(us, 4),
                          "mean": float(y.sum() / max(1, y.size))}), flush=True)


def measured(options):
    """{(operation, elements): {framework: line}} with the least times of all rounds."""
    all_lines = collections.defaultdict(dict)

    def keep(output):
        lines = [json.loads(line) for line in output.splitlines()]
        for line in lines:
            of_call = all_lines[line["operation"], line["elements"]]
            old = of_call.get(line["framework"])
            if old is None or line["us"] < old["us"]:
                of_call[line["framework"]] = line
        return lines

    core = f"{max(os.sched_getaffinity(0))}"
    for _ in range(options.rounds):
        command = ["taskset", "-c", core, options.cella, "--seconds", str(options.seconds), *options.names]
        rows = keep(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        asked = "\n".join(json.dumps(row) for row in rows)
        for peer in PEERS:
            command = ["taskset", "-c", core, sys.executable, __file__, "--peer", peer, "--seconds",
                       str(options.seconds)]
            keep(subprocess.run(command, check=True, input=asked, stdout=subprocess.PIPE, text=True).stdout)
    return all_lines


def read_lines(files):
    all_lines = collections.defaultdict(dict)
    for file in files:
        with open(file) as lines:
            for line in map(json.loads, lines):
                all_lines[line["operation"], line["elements"]][line["framework"]] = line
    return all_lines


# ---- the report

def differs(a, b):
    return abs(a - b) > 1e-3 * max(abs(a), abs(b), 1e-2)


def faster_peer(lines):
    others = [line["us"] for framework, line in lines.items() if framework != "cella"]
    return min(others) if others else None


def geometric_mean(ratios):
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def written(us):
    return f"{us:.2f}" if us < 100 else f"{us:.0f}"


def rows_of(all_lines, elements):
    """(family, row of the table, how many times as fast as the faster peer) for each operation."""
    for (operation, n), lines in all_lines.items():
        if n != elements or "cella" not in lines:
            continue
        best = faster_peer(lines)
        times = [written(lines[f]["us"]) if f in lines else "" for f in ("cella", *PEERS)]
        ratio = best / lines["cella"]["us"] if best else None
        mark = "" if ratio is None else f"{ratio:.2f}" if ratio >= 1 else f"**{ratio:.2f}**"
        yield lines["cella"]["family"], [f"`{operation}`", *times, mark], ratio


def summary(all_lines):
    header = ["elements", "family", "operations", "slower than the faster peer", "geometric mean"]
    lines = []
    for elements in (1000000, 1000):
        families = collections.defaultdict(list)
        for family, _, ratio in rows_of(all_lines, elements):
            if ratio is not None:
                families[family].append(ratio)
                if family not in WITHOUT_AIM:
                    families["all"].append(ratio)
        for family in [f for f in families if f != "all"] + ["all"] * ("all" in families):
            ratios = families[family]
            lines.append([elements, family, len(ratios), sum(r < 1 for r in ratios),
                          f"{geometric_mean(ratios):.2f}"])
    return report.table(header, lines)


def write_report(path, all_lines, kind):
    versions = {line["framework"]: line["version"] for lines in all_lines.values() for line in lines.values()
                if "version" in line}
    text = report.machine(("g++",))
    text += ["- frameworks: cella, " + ", ".join(f"{f} {v}" for f, v in sorted(versions.items())) + "; one thread", ""]
    text += summary(all_lines)
    for elements in (1000000, 1000):
        text += ["", f"### About {elements:,} elements"]
        families = collections.defaultdict(list)
        for family, row, _ in rows_of(all_lines, elements):
            families[family].append(row)
        for family, rows in families.items():
            text += ["", f"**{family}**, microseconds", ""]
            text += report.table(["operation", "Cella", "PyTorch", "JAX", "times as fast as the faster peer"], rows)
    report.replace_section(path, f"operations {kind}".strip(), text)


def main():
    options = arguments()
    if options.peer:
        return run_peer(options.peer, options.seconds)
    all_lines = read_lines(options.old) if options.old else measured(options)
    for (operation, elements), lines in all_lines.items():
        for peer in PEERS:
            if peer in lines and differs(lines[peer]["mean"], lines["cella"]["mean"]):
                lines[peer]["differs"] = True
                print(f"{operation}, {elements}: the mean is {lines['cella']['mean']}, of {peer} "
                      f"{lines[peer]['mean']}", file=sys.stderr)
    if options.lines:
        with open(options.lines, "w") as file:
            for lines in all_lines.values():
                file.writelines(json.dumps(line) + "\n" for line in lines.values())
    if options.report:
        write_report(options.report, all_lines, options.kind)
    print("\n".join(summary(all_lines)))


if __name__ == "__main__":
    main()
