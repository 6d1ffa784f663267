"""Writes scipy and sparse, .json and .safetensors, beside this file: values by SciPy and mpmath of distributions and of sparse
matrices, in the form of ops.json. Values of distributions are computed with 40 digits, held against SciPy (divergences against their
integrals), and differentiated numerically with as many. Inputs are exact in single precision.

    python3 -m venv V && V/bin/pip install numpy scipy mpmath safetensors && V/bin/python tests/golden/scipy_values.py
"""

import json
import pathlib

import numpy as np
import scipy.sparse
import scipy.stats
from mpmath import mp
from safetensors.numpy import save_file

HERE = pathlib.Path(__file__).resolve().parent
mp.dps = 40
cases, tensors = [], {}
random = np.random.default_rng(2028)


def reals(*shape, low=-1.5, high=1.5):
    return np.float32(random.uniform(low, high, shape)).astype(np.float64)


def positive(*shape):
    return reals(*shape, low=0.3, high=3)


def keep(op, name, inputs, output, cotangent, gradients, **attributes):
    label = f"{op}.{name}"
    entry = {"op": op, "case": name, "attrs": attributes}
    for key, kind, values in (("inputs", "in", inputs), ("outputs", "out", [output]), ("cotangents", "ct", [cotangent]),
                              ("input_gradients", "grad", gradients)):
        entry[key] = [None if v is None else f"{label}.{kind}{i}" for i, v in enumerate(values)]
        tensors.update({f"{label}.{kind}{i}": np.array(v, order="C") for i, v in enumerate(values) if v is not None})
    cases.append(entry)


def rows_of(x, rank, lead):
    """x as one mpmath array for each element of the leading shape."""
    whole = np.broadcast_to(x, lead + x.shape[x.ndim - rank:])
    whole = np.vectorize(mp.mpf, otypes=[object])(whole).reshape((-1,) + x.shape[x.ndim - rank:])
    return [np.array(row, dtype=object) for row in whole]


def case(op, name, inputs, ranks, f, check=None, **attributes):
    """f of one sample's inputs, whose ranks are given, applied to all of them."""
    leads = [x.shape[:x.ndim - r] for x, r in zip(inputs, ranks)]
    lead = np.broadcast_shapes(*leads)
    samples = list(zip(*(rows_of(x, r, lead) for x, r in zip(inputs, ranks))))
    value = np.array([float(f(*s)) for s in samples]).reshape(lead)
    if check is not None:
        np.testing.assert_allclose(value, check(*inputs), rtol=1e-12)
    cotangent = reals(*lead)
    gradients, h = [], mp.mpf(10) ** -12
    for k, (x, r) in enumerate(zip(inputs, ranks)):
        whole = np.zeros(lead + x.shape[x.ndim - r:]).reshape((len(samples),) + x.shape[x.ndim - r:])
        for i, s in enumerate(samples):
            for e in np.ndindex(s[k].shape):
                def moved(by):
                    t = [np.array(v, dtype=object) for v in s]
                    t[k][e] += by
                    return f(*t)
                whole[(i,) + e] = float((moved(h) - moved(-h)) / (2 * h)) * cotangent.reshape(-1)[i]
        whole = whole.reshape(lead + x.shape[x.ndim - r:])
        while whole.ndim > x.ndim:
            whole = whole.sum(0)
        for d in range(x.ndim):
            if x.shape[d] == 1 and whole.shape[d] > 1:
                whole = whole.sum(d, keepdims=True)
        gradients.append(whole)
    keep(op, name, inputs, value, cotangent, gradients, **attributes)


def number(x):
    return x.item() if isinstance(x, np.ndarray) else x


def scalar(f):
    return lambda *x: f(*(number(v) for v in x))


lg, psi, log = mp.loggamma, mp.digamma, mp.log


def lbeta(a, b):
    return lg(a) + lg(b) - lg(a + b)


def scalars(op, inputs, log_prob, entropy, divergence, density, ends, scipy_of):
    """log_prob of (x, p...), entropy of p, divergence of p and q."""
    x, p, q = inputs
    n = len(p)
    case(op, "log_prob", [x] + p, [0] * (n + 1), scalar(log_prob), lambda v, *w: scipy_of(*w).logpdf(v))
    case(op, "entropy", p, [0] * n, scalar(entropy), lambda *w: scipy_of(*w).entropy())

    def checked(*pq):
        a, b = pq[:n], pq[n:]
        v = divergence(a, b)
        integral = mp.quad(lambda t: density(t, *a) * (log_prob(t, *a) - log_prob(t, *b)), ends)
        assert abs(v - integral) < mp.mpf(10) ** -6, (v, integral)
        return v
    for s in zip(*(rows_of(v, 0, (4, 3)) for v in p + q)):
        scalar(checked)(*s)
    case("kl_divergence", op, p + q, [0] * (2 * n), scalar(lambda *pq: divergence(pq[:n], pq[n:])))


def gamma_log(x, a, r):
    return a * log(r) + (a - 1) * log(x) - r * x - lg(a)


scalars("gamma", (positive(4, 3), [positive(4, 3), positive(3)], [positive(4, 3), positive(4, 3)]), gamma_log,
        lambda a, r: a - log(r) + lg(a) + (1 - a) * psi(a),
        lambda p, q: (p[0] - q[0]) * psi(p[0]) - lg(p[0]) + lg(q[0]) + q[0] * log(p[1] / q[1]) + p[0] * (q[1] / p[1] - 1),
        lambda x, a, r: mp.exp(gamma_log(x, a, r)), [0, 1, 4, mp.inf],
        lambda a, r: scipy.stats.gamma(a, scale=1 / r))


def beta_log(x, a, b):
    return (a - 1) * log(x) + (b - 1) * mp.log1p(-x) - lbeta(a, b)


scalars("beta", (reals(4, 3, low=0.05, high=0.95), [positive(4, 3), positive(3)], [positive(4, 3), positive(4, 3)]), beta_log,
        lambda a, b: lbeta(a, b) - (a - 1) * psi(a) - (b - 1) * psi(b) + (a + b - 2) * psi(a + b),
        lambda p, q: lbeta(*q) - lbeta(*p) + (p[0] - q[0]) * psi(p[0]) + (p[1] - q[1]) * psi(p[1]) +
        (q[0] - p[0] + q[1] - p[1]) * psi(p[0] + p[1]),
        lambda x, a, b: mp.exp(beta_log(x, a, b)), [0, 0.5, 1], scipy.stats.beta)


# The numbers of a Dirichlet distribution add up to 1, which single precision rounds: as shares of eighths they are exact.
shares = np.array([[1, 2, 5], [3, 3, 2], [6, 1, 1], [2, 4, 2]]) / 8.0


def dirichlet_constant(a):
    return sum(lg(v) for v in a) - lg(sum(a))


def dirichlet_divergence(a, b):
    return dirichlet_constant(b) - dirichlet_constant(a) + sum((u - v) * (psi(u) - psi(sum(a))) for u, v in zip(a, b))


def each(f):
    return lambda *rows: np.array([f(*(r[i] for r in rows)) for i in range(4)])


case("dirichlet", "log_prob", [shares, positive(4, 3)], [1, 1],
     lambda x, a: sum((u - 1) * log(v) for u, v in zip(a, x)) - dirichlet_constant(a),
     each(lambda x, a: scipy.stats.dirichlet(a).logpdf(x)))
case("dirichlet", "entropy", [positive(4, 3)], [1],
     lambda a: dirichlet_constant(a) + (sum(a) - 3) * psi(sum(a)) - sum((u - 1) * psi(u) for u in a),
     each(lambda a: scipy.stats.dirichlet(a).entropy()))
case("kl_divergence", "dirichlet", [positive(4, 3), positive(4, 3)], [1, 1], dirichlet_divergence)


def factors(*lead):
    """Lower triangles with a positive diagonal."""
    a = np.tril(reals(*lead, 3, 3), -1)
    a[..., range(3), range(3)] = positive(*lead, 3)
    return a


def lower(l):
    return mp.matrix([[l[i, j] if j <= i else mp.mpf(0) for j in range(3)] for i in range(3)])


def column(v):
    return mp.matrix([[t] for t in v])


def log_determinant(l):
    return sum(log(l[i, i]) for i in range(3))


def quadratic(l, v):
    y = mp.lu_solve(lower(l), column(v))
    return sum(y[i] ** 2 for i in range(3))


def normal_divergence(m, l, n, k):
    y = lower(k) ** -1 * lower(l)
    trace = sum(y[i, j] ** 2 for i in range(3) for j in range(3))
    return log_determinant(k) - log_determinant(l) + (trace + quadratic(k, n - m) - 3) / 2


def scipy_normal(m, l):
    return scipy.stats.multivariate_normal(m, l @ l.T)


case("multivariate_normal", "log_prob", [reals(4, 3), reals(4, 3), factors(4)], [1, 1, 2],
     lambda x, m, l: -quadratic(l, x - m) / 2 - log_determinant(l) - 1.5 * log(2 * mp.pi),
     each(lambda x, m, l: scipy_normal(m, l).logpdf(x)))
case("multivariate_normal", "one_factor", [reals(4, 3), reals(3), factors()], [1, 1, 2],
     lambda x, m, l: -quadratic(l, x - m) / 2 - log_determinant(l) - 1.5 * log(2 * mp.pi),
     lambda x, m, l: scipy_normal(m, l).logpdf(x))
case("multivariate_normal", "entropy", [reals(4, 3), factors(4)], [1, 2],
     lambda m, l: log_determinant(l) + 1.5 * (1 + log(2 * mp.pi)), each(lambda m, l: scipy_normal(m, l).entropy()))
case("kl_divergence", "multivariate_normal", [reals(4, 3), factors(4), reals(4, 3), factors(4)], [1, 2, 1, 2],
     normal_divergence)
case("poisson", "log_prob", [random.integers(1, 7, (4, 3)).astype(np.float64), positive(4, 3)], [0, 0],
     scalar(lambda k, r: k * log(r) - r - lg(k + 1)), scipy.stats.poisson.logpmf)
case("kl_divergence", "poisson", [positive(4, 3), positive(4, 3)], [0, 0],
     scalar(lambda p, q: p * log(p / q) - p + q))

def write(name):
    save_file(tensors, HERE / f"{name}.safetensors")
    (HERE / f"{name}.json").write_text(json.dumps(cases, indent=1) + "\n")
    cases.clear()
    tensors.clear()


write("scipy")

# ---- sparse matrices: the second has an empty row and entries at one place, the third entries that are none

def sparse(name, values, rows, columns, extents):
    """Products, sums and all elements, with gradients by the values and by the dense factor."""
    inside = (rows >= 0) & (columns >= 0)
    a = scipy.sparse.coo_matrix((values[inside], (rows[inside], columns[inside])), extents)
    places = [rows, columns]

    def entry(what, inputs, output, gradients):
        """`gradients` of a cotangent: of the matrix, then of other inputs."""
        cotangent = reals(*output.shape)
        of_matrix, *others = gradients(cotangent)
        by_value = np.where(inside, of_matrix[rows, columns], 0)
        keep("sparse", f"{name}_{what}", [values] + places + inputs, output, cotangent, [by_value, None, None] + others,
             what=what, extents=list(extents))

    x, v = reals(extents[1], 4), reals(extents[1])
    entry("to_dense", [], a.toarray(), lambda c: [c])
    entry("product", [x], a @ x, lambda c: [c @ x.T, a.T @ c])
    entry("product_of_vector", [v], a @ v, lambda c: [np.outer(c, v), a.T @ c])
    entry("sum_of_columns", [], np.asarray(a.sum(0)).reshape(-1), lambda c: [np.broadcast_to(c, extents)])
    entry("sum_of_rows", [], np.asarray(a.sum(1)).reshape(-1), lambda c: [np.broadcast_to(c[:, None], extents)])
    entry("twice_and_transposed", [], (a.T + 2 * a.T).toarray(), lambda c: [3 * c.T])


sparse("few", reals(4), np.array([2, 0, 2, 1]), np.array([1, 3, 0, 2]), (3, 5))
sparse("doubled", reals(7), np.array([4, 0, 4, 0, 2, 2, 0]), np.array([1, 0, 1, 2, 2, 0, 2]), (5, 3))
sparse("padded", reals(6), np.array([1, -1, 3, 0, -1, 1]), np.array([0, -1, 5, 2, -1, 4]), (4, 6))

write("sparse")
