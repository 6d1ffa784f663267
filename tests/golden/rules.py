"""Writes rules.json and rules.safetensors beside this file, in the form of optimizers.json: ten steps of rules on fixed
gradients by optax or PyTorch in double, or, where neither has one, by the formula of its paper in NumPy; and L-BFGS by
PyTorch on a function.

    python3 -m venv V && V/bin/pip install torch numpy safetensors optax && V/bin/python tests/golden/rules.py
"""

import json
import pathlib

import jax
import numpy as np
import optax
import torch
from safetensors.numpy import save_file

jax.config.update("jax_enable_x64", True)
HERE = pathlib.Path(__file__).resolve().parent
random = np.random.default_rng(29)
SHAPES, STEPS = [(3, 4), (5, 2), (2, 2, 3, 1)], 10


def reals(shape):
    return np.float32(random.uniform(-1, 1, shape)).astype(np.float64)


initial = [reals(s) for s in SHAPES]
gradients = [[reals(s) for s in SHAPES] for _ in range(STEPS)]
# Rows that a step does not touch.
for step in range(0, STEPS, 2):
    gradients[step][0][step % 3] = 0
    gradients[step][1][1:4] = 0
tensors = {f"initial.{i}": v for i, v in enumerate(initial)}
for step, all_of_step in enumerate(gradients):
    tensors |= {f"gradient.{step}.{i}": v for i, v in enumerate(all_of_step)}
cases = []


def keep(name, rate, steps, **options):
    cases.append({"optimizer": name, "rate": rate, "options": options})
    for step, weights in enumerate(steps):
        tensors.update({f"{name}.{step}.{i}": np.array(w, np.float64, order="C") for i, w in enumerate(weights)})


def by_optax(name, rate, rule, **options):
    w, state = list(initial), rule.init(list(initial))
    steps = []
    for g in gradients:
        change, state = rule.update(list(g), state, w)
        w = optax.apply_updates(w, change)
        steps.append(list(w))
    keep(name, rate, steps, **options)


def by_torch(name, rate, make, sparse=False, **options):
    w = [torch.tensor(v, requires_grad=True) for v in initial]
    rule = make(w)
    steps = []
    for g in gradients:
        for p, v in zip(w, g):
            v = torch.tensor(v)
            if sparse:  # the rows that are not zero
                rows = torch.nonzero(v.reshape(len(v), -1).abs().sum(1))[:, 0]
                v = torch.sparse_coo_tensor(rows[None], v[rows], v.shape)
            p.grad = v
        rule.step()
        steps.append([p.detach().numpy().copy() for p in w])
    keep(name, rate, steps, **options)


def by_hand(name, rate, rule, **options):
    """rule(weight, gradient, memory, step) -> weight; the memory is a dictionary for each weight."""
    w, memory, steps = list(initial), [{} for _ in initial], []
    for t, g in enumerate(gradients):
        w = [rule(v, d, m, t + 1) for v, d, m in zip(w, g, memory)]
        steps.append(list(w))
    keep(name, rate, steps, **options)


by_optax("lion", 0.02, optax.lion(0.02, 0.9, 0.99, weight_decay=0))
by_optax("lion_decay", 0.02, optax.lion(0.02, 0.8, 0.95, weight_decay=0.1), beta1=0.8, beta2=0.95, weight_decay=0.1)
by_optax("lamb", 0.05, optax.lamb(0.05, weight_decay=0.01))
by_optax("lamb_no_decay", 0.05, optax.lamb(0.05, weight_decay=0), weight_decay=0)
by_optax("lars", 0.5, optax.lars(0.5, trust_coefficient=0.01), trust=0.01)


def lars(w, g, m, t):
    size, slope = np.linalg.norm(w), np.linalg.norm(g)
    rate = 0.5 * 0.01 * size / (slope + 0.1 * size)
    m["v"] = 0.9 * m.get("v", 0) + rate * (g + 0.1 * w)
    return w - m["v"]


by_hand("lars_decay", 0.5, lars, trust=0.01, weight_decay=0.1)


def shrink(x, rate, l1, l2):
    return np.sign(x) * np.maximum(np.abs(x) - rate * l1, 0) / (1 + rate * l2)


def proximal_adagrad(w, g, m, t):
    m["s"] = m.get("s", 0.1) + g * g
    rate = 0.1 / np.sqrt(m["s"])
    return shrink(w - rate * g, rate, 0.5, 0.2)


by_hand("proximal_adagrad", 0.1, proximal_adagrad, l1=0.5, l2=0.2)
by_hand("proximal_sgd", 0.1, lambda w, g, m, t: shrink(w - 0.1 * g, 0.1, 0.5, 0.2), l1=0.5, l2=0.2)


def ftrl(power, l1, l2):
    def rule(w, g, m, t):
        before = m.get("n", 0.1)
        after = before + g * g
        sigma = (after ** -power - before ** -power) / 0.2
        m["z"] = m.get("z", 0) + g - sigma * w
        m["n"] = after
        z = m["z"]
        return np.where(np.abs(z) > l1, -(z - np.sign(z) * l1) / (after ** -power / 0.2 + 2 * l2), 0)
    return rule


by_hand("ftrl", 0.2, ftrl(-0.5, 0, 0))
by_hand("ftrl_penalties", 0.2, ftrl(-0.7, 0.3, 0.1), power=-0.7, l1=0.3, l2=0.1)


def muon(nesterov, decay):
    def rule(w, g, m, t):
        m["b"] = 0.95 * m.get("b", 0) + 0.05 * g
        d = 0.05 * g + 0.95 * m["b"] if nesterov else m["b"]
        x = d.reshape(len(d), -1)
        scale = max(1, x.shape[0] / x.shape[1]) ** 0.5
        flat = x.T if x.shape[0] > x.shape[1] else x
        flat = flat / (np.linalg.norm(flat) + 1e-7)
        for _ in range(5):
            a = flat @ flat.T
            flat = 3.4445 * flat + (-4.7750 * a + 2.0315 * a @ a) @ flat
        x = flat.T if x.shape[0] > x.shape[1] else flat
        return w - 0.02 * (scale * x.reshape(w.shape) + decay * w)
    return rule


by_hand("muon", 0.02, muon(True, 0))
by_hand("muon_plain", 0.02, muon(False, 0.1), nesterov=False, weight_decay=0.1)
by_torch("lazy_adam", 0.05, lambda w: torch.optim.SparseAdam(w, lr=0.05), True)
by_torch("sparse_adagrad", 0.1, lambda w: torch.optim.Adagrad(w, lr=0.1, initial_accumulator_value=0.2), True,
         initial=0.2)


# Operators of ai.onnx.preview.training, by their definitions; T is the number of the step.
def onnx_adam(w, g, m, t):
    g = g + 0.01 * w
    m["v"] = 0.9 * m.get("v", 0) + 0.1 * g
    m["h"] = 0.999 * m.get("h", 0) + 0.001 * g * g
    rate = 0.05 * np.sqrt(1 - 0.999 ** t) / (1 - 0.9 ** t)
    return w - rate * m["v"] / (np.sqrt(m["h"]) + 1e-3)


def onnx_adagrad(w, g, m, t):
    g = g + 0.01 * w
    m["h"] = m.get("h", 0) + g * g
    return w - 0.1 / (1 + (t - 1) * 0.3) * g / (np.sqrt(m["h"]) + 1e-3)


def onnx_momentum(w, g, m, t):
    g = g + 0.01 * w
    m["v"] = 0.9 * m.get("v", 0) + (0.7 if t > 1 else 1) * g
    return w - 0.1 * (g + 0.9 * m["v"])


by_hand("onnx_adam", 0.05, onnx_adam)
by_hand("onnx_adagrad", 0.1, onnx_adagrad)
by_hand("onnx_momentum", 0.1, onnx_momentum)

# L-BFGS on (1 - a)^2 + 10 (b - a^2)^2 + sum of i c_i^2, all weights changed alike.
a, c = torch.tensor([-0.5, 0.75], dtype=torch.float64, requires_grad=True), torch.tensor(
    [1.0, -0.5, 0.25], dtype=torch.float64, requires_grad=True)
rule = torch.optim.LBFGS([a, c], lr=0.5, max_iter=1, history_size=3)
steps = []
for _ in range(25):
    def closure():
        rule.zero_grad()
        loss = (1 - a[0]) ** 2 + 10 * (a[1] - a[0] ** 2) ** 2 + (torch.arange(1.0, 4.0) * c ** 2).sum()
        loss.backward()
        return loss
    rule.step(closure)
    steps.append([a.detach().numpy().copy(), c.detach().numpy().copy()])
keep("lbfgs", 0.5, steps, history=3)
print("lbfgs ends at", steps[-1])

(HERE / "rules.json").write_text(json.dumps(cases, indent=1) + "\n")
save_file(tensors, HERE / "rules.safetensors")
print(len(cases), "cases,", len(tensors), "tensors")
