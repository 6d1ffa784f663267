"""Writes vocabulary and distributions, .json and .safetensors, beside this file: values and gradients of layers, losses
and distributions by PyTorch in double, in the form of ops.json. Inputs are exact in single precision.

    python3 -m venv V && V/bin/pip install torch numpy safetensors && V/bin/python tests/golden/vocabulary.py
"""

import json
import pathlib

import numpy as np
import torch
import torch.nn.functional as F
from safetensors.numpy import save_file
from torch import nn

HERE = pathlib.Path(__file__).resolve().parent
cases, tensors = [], {}
random = np.random.default_rng(28)


def reals(*shape, low=-1.5, high=1.5):
    """Double precision tensors whose elements are exact in single precision."""
    return torch.tensor(np.float32(random.uniform(low, high, shape)).astype(np.float64))


def integers(high, *shape):
    return torch.tensor(random.integers(0, high, shape))


def case(op, name, inputs, f, fixed=(), **attributes):
    """f(*inputs) -> a tensor or a tuple; every floating-point input gets a gradient but the `fixed` ones."""
    label = f"{op}.{name}"
    x = [t.clone().requires_grad_(t.is_floating_point() and i not in fixed) for i, t in enumerate(inputs)]
    y = f(*x)
    y = list(y) if isinstance(y, (tuple, list)) else [y]
    entry = {"op": op, "case": name, "attrs": attributes, "inputs": [], "outputs": [], "cotangents": [],
             "input_gradients": []}

    def keep(kind, key, values):
        for i, v in enumerate(values):
            if v is None:
                entry[key].append(None)
                continue
            tensors[f"{label}.{kind}{i}"] = np.array(v.detach().numpy(), order="C")
            entry[key].append(f"{label}.{kind}{i}")

    keep("in", "inputs", inputs)
    keep("out", "outputs", y)
    if any(t.requires_grad for t in y):
        cotangents = [reals(*t.shape) for t in y]
        loss = sum((a * c).sum() for a, c in zip(y, cotangents) if a.requires_grad)
        loss.backward()
        keep("ct", "cotangents", cotangents)
        keep("grad", "input_gradients", [
            (t.grad if t.grad is not None else torch.zeros_like(t)) if t.requires_grad else None for t in x])
    cases.append(entry)


def layer(op, name, inputs, module, order, call=None, **attributes):
    """A module whose parameters, in the order of ours, follow the inputs. `order`: functions of the named ones."""
    torch.manual_seed(len(cases))
    module = module.double()
    values = {k: torch.tensor(np.float32(reals(*v.shape, low=-0.8, high=0.8)).astype(np.float64))
              for k, v in module.named_parameters()}
    given = [f(values) if callable(f) else values[f] for f in order]
    names = list(values)

    def run(*all_inputs):
        x, p = all_inputs[:len(inputs)], all_inputs[len(inputs):]
        whole = rebuild(names, values, order, p)
        return torch.func.functional_call(module, whole, x) if call is None else call(module, whole, *x)

    case(op, name, list(inputs) + given, run, arguments=len(inputs), **attributes)


def rebuild(names, values, order, given):
    """The module's parameters from ours: parts "name[a:b]" of one are put together again."""
    parts = {}
    for o, g in zip(order, given):
        key = o if isinstance(o, str) else o.whole
        parts.setdefault(key, []).append(g)
    return {n: torch.cat(parts[n]) if len(parts[n]) > 1 else parts[n][0] for n in names}


def rows(name, first, last):
    def f(values):
        return values[name][first:last]
    f.whole = name
    return f


# ---- activations

x = reals(3, 8, low=-3, high=3)
case("celu", "alpha", [x], lambda t: F.celu(t, 0.5), alpha=0.5)
case("hard_tanh", "bounds", [x], lambda t: F.hardtanh(t, -0.5, 2), low=-0.5, high=2)
case("hard_shrink", "bound", [x], lambda t: F.hardshrink(t, 0.8), bound=0.8)
case("soft_shrink", "bound", [x], lambda t: F.softshrink(t, 0.8), bound=0.8)
case("tanh_shrink", "plain", [x], F.tanhshrink)
case("threshold", "bound", [x], lambda t: F.threshold(t, 0.3, -2), bound=0.3, otherwise=-2)
case("glu", "last", [x], F.glu, axis=-1)
case("glu", "first", [reals(4, 3)], lambda t: F.glu(t, 0), axis=0)
case("prelu_cell", "channels", [reals(2, 3, 4), reals(3)], F.prelu, arguments=1)
case("swiglu_cell", "plain", [reals(2, 4), reals(6, 4), reals(6, 4), reals(4, 6)],
     lambda t, g, u, d: (F.silu(t @ g.T) * (t @ u.T)) @ d.T, arguments=1)
case("feed_forward_cell", "plain", [reals(2, 4), reals(6, 4), reals(6), reals(4, 6), reals(4)],
     lambda t, u, b, d, c: F.linear(F.gelu(F.linear(t, u, b)), d, c), arguments=1)

# ---- norms

case("weight_norm", "matrix", [reals(3, 4), reals(3)], lambda v, g: torch._weight_norm(v, g[:, None], 0))
case("weight_norm", "filters", [reals(3, 2, 3, 3), reals(3)],
     lambda v, g: torch._weight_norm(v, g[:, None, None, None], 0))


def spectral(w, u, v, steps):
    m = w.reshape(w.shape[0], -1)
    u, v = u.detach(), v.detach()
    with torch.no_grad():
        for _ in range(steps):
            v = F.normalize(m.T @ u, dim=0, eps=1e-12)
            u = F.normalize(m @ v, dim=0, eps=1e-12)
    return w / (u @ (m @ v))


case("spectral_norm", "two_steps", [reals(3, 4), reals(3), reals(4)], lambda w, u, v: spectral(w, u, v, 2), steps=2)
case("spectral_norm", "no_step", [reals(3, 2, 2), F.normalize(reals(3), dim=0), F.normalize(reals(4), dim=0)],
     lambda w, u, v: spectral(w, u, v, 0), steps=0)
case("spectral_norm_cell", "inference",
     [reals(2, 4), reals(3, 4), reals(3), F.normalize(reals(3), dim=0), F.normalize(reals(4), dim=0)],
     lambda t, w, b, u, v: F.linear(t, spectral(w, u, v, 0), b), arguments=1)
case("weight_norm_cell", "plain", [reals(2, 4), reals(3), reals(3, 4), reals(3)],
     lambda t, g, v, b: F.linear(t, torch._weight_norm(v, g[:, None], 0), b), arguments=1)
case("rms_norm_cell", "plain", [reals(2, 3, 6), reals(6)], lambda t, w: F.rms_norm(t, (6,), w, 1e-6), arguments=1)
case("group_norm_cell", "plain", [reals(2, 6, 4), reals(6), reals(6)],
     lambda t, w, b: F.group_norm(t, 3, w, b, 1e-5), arguments=1)
case("instance_norm_cell", "plain", [reals(2, 3, 4, 2), reals(3), reals(3)],
     lambda t, w, b: F.instance_norm(t, weight=w, bias=b, eps=1e-5), arguments=1)
case("local_response_norm_cell", "plain", [reals(2, 6, 3)],
     lambda t: F.local_response_norm(t, 3, 0.5, 0.75, 2), arguments=1)

# ---- positions


def angles(places, width, base):
    return places[:, None] * base ** (-torch.arange(0, width, 2, dtype=torch.float64) / width)


def encoding(places, width, base):
    a = angles(places, width, base)
    return torch.stack([a.sin(), a.cos()], 2).reshape(len(places), width)


def rotated(t, places, base, neighbours):
    a = angles(places, t.shape[-1], base)
    if neighbours:
        z = torch.view_as_complex(t.reshape(*t.shape[:-1], -1, 2).contiguous()) * torch.polar(torch.ones_like(a), a)
        return torch.view_as_real(z).reshape(t.shape)
    half = t.shape[-1] // 2
    c, s = torch.cat([a, a], 1).cos(), torch.cat([a, a], 1).sin()
    return t * c + torch.cat([-t[..., half:], t[..., :half]], -1) * s


case("sinusoidal_encoding", "plain", [torch.arange(7, dtype=torch.float64)], lambda p: encoding(p, 6, 1e4), (), width=6,
     base=1e4)
case("sinusoidal_position_cell", "plain", [reals(2, 5, 4)],
     lambda t: t + encoding(torch.arange(5, dtype=torch.float64), 4, 1e4), arguments=1)
places = torch.tensor([0., 3, 4, 11, 100], dtype=torch.float64)
case("rotary", "halves", [reals(2, 5, 6), places], lambda t, p: rotated(t, p, 1e4, False), base=1e4, neighbours=False)
case("rotary", "neighbours", [reals(2, 3, 5, 6), places], lambda t, p: rotated(t, p, 100.0, True), base=100,
     neighbours=True)

# ---- attention

kinds = {"grouped": (4, 2), "one_head_of_keys": (4, 1), "plain": (2, 2)}
for name, (heads, groups) in kinds.items():
    q, k, v = reals(2, 3, heads * 4), reals(2, 5, groups * 4), reals(2, 5, groups * 3)
    seen = torch.tensor(random.uniform(size=(2, heads, 3, 5)) < 0.6)
    seen[..., 0] = True

    def attend(a, b, c, m, n=heads, g=groups):
        a, b, c = (t.reshape(2, t.shape[1], -1, t.shape[2] // h).transpose(1, 2)
                   for t, h in ((a, n), (b, g), (c, g)))
        y = F.scaled_dot_product_attention(a, b, c, m, enable_gqa=True)
        return y.transpose(1, 2).reshape(2, 3, -1)

    case("grouped_query_attention", name, [q, k, v, seen], attend, heads=heads, key_value_heads=groups)


def attention_order(prefix, width):
    w, b = prefix + "in_proj_weight", prefix + "in_proj_bias"
    order = []
    for i in range(3):
        order += [rows(w, i * width, (i + 1) * width), rows(b, i * width, (i + 1) * width)]
    return order + [prefix + "out_proj.weight", prefix + "out_proj.bias"]


def call_mha(**options):
    def call(module, p, *x):
        m = x[2] if len(x) > 2 else None
        memory = x[1] if len(x) > 1 else x[0]
        m = None if m is None else ~m
        return torch.func.functional_call(module, p, (x[0], memory, memory),
                                          {"attn_mask": m, "need_weights": False, **options})[0]
    return call


near = torch.ones(5, 5).tril().bool() & torch.ones(5, 5).triu(-1).bool()
mask = torch.tensor(random.uniform(size=(3, 5)) < 0.6)
mask[:, 2] = True
layer("attention_cell", "self", [reals(2, 5, 8)], nn.MultiheadAttention(8, 2, batch_first=True),
      attention_order("", 8), call_mha())
layer("attention_cell", "masked", [reals(2, 3, 8), reals(2, 5, 8), mask], nn.MultiheadAttention(8, 2, batch_first=True),
      attention_order("", 8), call_mha())
layer("attention_cell", "window", [reals(2, 5, 8)], nn.MultiheadAttention(8, 2, batch_first=True),
      attention_order("", 8),
      lambda m, p, t: torch.func.functional_call(m, p, (t, t, t), {"attn_mask": ~near, "need_weights": False})[0],
      window=2)
layer("attention_cell", "causal", [reals(2, 5, 8)], nn.MultiheadAttention(8, 2, batch_first=True),
      attention_order("", 8),
      lambda m, p, t: torch.func.functional_call(
          m, p, (t, t, t), {"attn_mask": ~torch.ones(5, 5).tril().bool(), "need_weights": False})[0], causal=True)

for first in (False, True):
    name = "norm_first" if first else "norm_last"
    order = (["norm1.weight", "norm1.bias"] + attention_order("self_attn.", 8) + ["norm2.weight", "norm2.bias"] +
             ["linear1.weight", "linear1.bias", "linear2.weight", "linear2.bias"])
    layer("encoder_block_cell", name, [reals(2, 5, 8)],
          nn.TransformerEncoderLayer(8, 2, 12, 0.0, batch_first=True, norm_first=first), order, norm_first=first)
    order = (["norm1.weight", "norm1.bias"] + attention_order("self_attn.", 8) + ["norm2.weight", "norm2.bias"] +
             attention_order("multihead_attn.", 8) + ["norm3.weight", "norm3.bias"] +
             ["linear1.weight", "linear1.bias", "linear2.weight", "linear2.bias"])
    causal = nn.Transformer.generate_square_subsequent_mask(4, dtype=torch.float64)
    layer("decoder_block_cell", name, [reals(2, 4, 8), reals(2, 5, 8)],
          nn.TransformerDecoderLayer(8, 2, 12, 0.0, batch_first=True, norm_first=first), order,
          lambda m, p, t, u: torch.func.functional_call(m, p, (t, u), {"tgt_mask": causal}), norm_first=first)

# ---- pooling, convolutions, embeddings

image = reals(2, 3, 7, 8)
for h, w in ((3, 2), (1, 1), (7, 4), (9, 3)):
    case("adaptive_average_pool", f"{h}x{w}", [image], lambda t: F.adaptive_avg_pool2d(t, (h, w)), size=[h, w])
    case("adaptive_max_pool", f"{h}x{w}", [image], lambda t: F.adaptive_max_pool2d(t, (h, w)), size=[h, w])
case("adaptive_average_pool", "windows", [reals(1, 2, 6, 9)], lambda t: F.adaptive_avg_pool2d(t, (2, 3)), size=[2, 3])
case("global_max_pool", "plain", [image], lambda t: t.amax((2, 3)))
case("conv1d_cell", "padded", [reals(2, 3, 9), reals(4, 3, 3), reals(4)],
     lambda t, w, b: F.conv1d(t, w, b, 2, 1), arguments=1, stride=2, padding=1)
case("conv1d_cell", "causal", [reals(2, 3, 9), reals(4, 3, 3), reals(4)],
     lambda t, w, b: F.conv1d(F.pad(t, (4, 0)), w, b, dilation=2), arguments=1, dilation=2, causal=True)
case("conv2d_transpose_cell", "plain", [reals(2, 3, 4, 4), reals(3, 4, 3, 3), reals(4)],
     lambda t, w, b: F.conv_transpose2d(t, w, b, 2, 1, 1), arguments=1)
case("separable_conv2d_cell", "plain", [reals(2, 3, 6, 6), reals(3, 1, 3, 3), reals(4, 3, 1, 1), reals(4)],
     lambda t, d, w, b: F.conv2d(F.conv2d(t, d, groups=3), w, b), arguments=1)
words, table = integers(6, 4, 5), reals(6, 3)
words[1, 2], words[2, :], words[0, 0] = 2, 2, 1
for mode in ("sum", "mean", "max"):
    case("embedding_bag", mode, [words, table], lambda i, t: F.embedding_bag(i, t, mode=mode), mode=mode)
    case("embedding_bag", mode + "_padding", [words, table],
         lambda i, t: F.embedding_bag(i, t, mode=mode, padding_idx=2), mode=mode, padding=2)
case("embedding_bag", "weighted", [words, table, reals(4, 5)],
     lambda i, t, w: F.embedding_bag(i, t, mode="sum", per_sample_weights=w), mode="sum")

# ---- recurrent nets


def call_recurrent(lengths=False, initial=False):
    def call(module, p, *x):
        def run(t, state):
            y, last = torch.func.functional_call(module, p, (t, state) if state is not None else (t,))
            return y, last
        state = None
        if initial:
            state = (x[2], x[3]) if isinstance(module, nn.LSTM) else x[2]
        if lengths:
            packed = nn.utils.rnn.pack_padded_sequence(x[0], x[1], batch_first=True, enforce_sorted=False)
            y, last = run(packed, state)
            y, _ = nn.utils.rnn.pad_packed_sequence(y, batch_first=True, total_length=x[0].shape[1])
        else:
            y, last = run(x[0], state)
        return (y, *last) if isinstance(last, tuple) else (y, last)
    return call


def recurrent(op, name, module, lengths=False, initial=(), **attributes):
    x = [reals(3, 6, 4)]
    if lengths or initial:
        x.append(torch.tensor([4, 6, 2]) if lengths else torch.tensor([6, 6, 6]))
    layer(op, name, x + list(initial), module, [k for k, _ in module.named_parameters()],
          call_recurrent(lengths, bool(initial)), **attributes)


recurrent("lstm_net_cell", "one_layer", nn.LSTM(4, 5, batch_first=True), form="plain")
recurrent("lstm_net_cell", "deep", nn.LSTM(4, 5, 2, batch_first=True, bidirectional=True), form="deep")
recurrent("lstm_net_cell", "lengths", nn.LSTM(4, 5, 2, batch_first=True, bidirectional=True), True, form="deep")
recurrent("lstm_net_cell", "projected", nn.LSTM(4, 5, 2, batch_first=True, proj_size=3), form="projected")
recurrent("lstm_net_cell", "initial", nn.LSTM(4, 5, 2, batch_first=True, bidirectional=True), True,
          [reals(4, 3, 5), reals(4, 3, 5)], form="deep")
recurrent("gru_net_cell", "one_layer", nn.GRU(4, 5, batch_first=True), form="plain")
recurrent("gru_net_cell", "lengths", nn.GRU(4, 5, 2, batch_first=True, bidirectional=True), True, form="deep")
recurrent("rnn_net_cell", "deep", nn.RNN(4, 5, 2, batch_first=True, bidirectional=True), form="deep")
recurrent("rnn_net_cell", "lengths", nn.RNN(4, 5, 2, batch_first=True, bidirectional=True), True, form="deep")


def peephole(t, wi, wh, bi, bh, p):
    h = c = torch.zeros(t.shape[0], 5, dtype=torch.float64)
    out = []
    for s in range(t.shape[1]):
        i, f, g, o = (t[:, s] @ wi.T + bi + h @ wh.T + bh).chunk(4, 1)
        i, f = torch.sigmoid(i + p[0] * c), torch.sigmoid(f + p[1] * c)
        c = f * c + i * torch.tanh(g)
        h = torch.sigmoid(o + p[2] * c) * torch.tanh(c)
        out.append(h)
    return torch.stack(out, 1), h[None], c[None]


case("lstm_net_cell", "peepholes", [reals(3, 6, 4), reals(20, 4), reals(20, 5), reals(20), reals(20), reals(3, 5)],
     peephole, arguments=1, form="peepholes")

# ---- losses

p, t = reals(4, 3), reals(4, 3)
signs = torch.where(reals(4) > 0, 1.0, -1.0).double()
signs[0], signs[1] = 1, -1
reductions = ("mean", "sum", "none")
case("log_cosh_loss", "mean", [p, t], lambda a, b: torch.log(torch.cosh(a - b)).mean())
case("quantile_loss", "mean", [p, t], lambda a, b: torch.maximum(0.3 * (b - a), -0.7 * (b - a)).mean(), q=0.3)
counts = integers(5, 4, 3).double()
case("poisson_nll_loss", "log_rate", [p, counts], F.poisson_nll_loss, (1,), log_rate=True, full=False)
case("poisson_nll_loss", "full", [p, counts], lambda a, b: F.poisson_nll_loss(a, b, full=True), (1,), log_rate=True,
     full=True)
case("poisson_nll_loss", "rate", [p.abs() + 0.1, counts], lambda a, b: F.poisson_nll_loss(a, b, log_input=False),
     log_rate=False, full=False)
for full in (False, True):
    case("gaussian_nll_loss", f"full_{full}", [p, t, reals(4, 3, low=0.2, high=2)],
         lambda a, b, v: F.gaussian_nll_loss(a, b, v, full=full), full=full)
labels, weights = integers(5, 6), reals(5, low=0.2, high=2)
logits = reals(6, 5, low=-3, high=3)
case("weighted_cross_entropy", "plain", [logits, labels, weights],
     lambda z, y, w: F.cross_entropy(z, y, w), (2,))
case("weighted_cross_entropy", "smoothed", [logits, labels, weights],
     lambda z, y, w: F.cross_entropy(z, y, w, label_smoothing=0.2), (2,), label_smoothing=0.2)
holes = labels.clone()
holes[2] = holes[4] = -100
case("weighted_cross_entropy", "ignoring", [logits, holes, weights],
     lambda z, y, w: F.cross_entropy(z, y, w, label_smoothing=0.2), (2,), label_smoothing=0.2,
     ignore_index=-100)
many = (reals(6, 5) > 0).double()
case("weighted_sigmoid_cross_entropy", "plain", [logits, many, weights],
     lambda z, y, w: F.binary_cross_entropy_with_logits(z, y, pos_weight=w), (2,))


def focal(z, y, alpha, gamma):
    q = torch.sigmoid(z)
    loss = F.binary_cross_entropy_with_logits(z, y, reduction="none") * (1 - (q * y + (1 - q) * (1 - y))) ** gamma
    return (loss * (alpha * y + (1 - alpha) * (1 - y)) if alpha >= 0 else loss).mean()


case("focal_loss", "plain", [logits, many], lambda z, y: focal(z, y, 0.25, 2), alpha=0.25, gamma=2)
case("focal_loss", "no_alpha", [logits, many], lambda z, y: focal(z, y, -1, 1.5), alpha=-1, gamma=1.5)
many_signs = 2 * many - 1
case("hinge_loss", "mean", [logits, many_signs], lambda s, y: F.relu(1 - s * y).mean())
case("squared_hinge_loss", "mean", [logits, many_signs], lambda s, y: (F.relu(1 - s * y) ** 2).mean())
case("soft_margin_loss", "mean", [logits, many_signs],
     F.soft_margin_loss, (1,))
case("multi_margin_loss", "one", [logits, labels], lambda z, y: F.multi_margin_loss(z, y), power=1)
case("multi_margin_loss", "two", [logits, labels], lambda z, y: F.multi_margin_loss(z, y, p=2), power=2)


def multilabel(z, y):
    lists = torch.full(y.shape, -1, dtype=torch.int64)
    for n in range(len(y)):
        on = torch.nonzero(y[n] > 0)[:, 0]
        lists[n, :len(on)] = on
    return F.multilabel_margin_loss(z, lists)


case("multilabel_margin_loss", "plain", [logits, many], multilabel, (1,))
q = reals(3, 4, 2, low=0.05, high=0.95)
case("dice_loss", "plain", [q, (reals(3, 4, 2) > 0).double()],
     lambda a, b: (1 - (2 * (a * b).sum((1, 2)) + 1) / (a.sum((1, 2)) + b.sum((1, 2)) + 1)).mean(), smooth=1)
a, b, c = reals(4, 5), reals(4, 5), reals(4, 5)
case("pairwise_distance", "plain", [a, b], F.pairwise_distance)
for r in reductions:
    case("triplet_margin_loss", r, [a, b, c],
         lambda u, v, w: F.relu(F.pairwise_distance(u, v) - F.pairwise_distance(u, w) + 1.2) if r == "none" else
         F.triplet_margin_loss(u, v, w, 1.2, reduction=r), margin=1.2, reduction=r)
pair_targets = (signs > 0).double()
case("contrastive_loss", "plain", [a, b, pair_targets],
     lambda u, v, y: 0.5 * (y * F.pairwise_distance(u, v) ** 2 +
                            (1 - y) * F.relu(2.5 - F.pairwise_distance(u, v)) ** 2).mean(), margin=2.5)
case("cosine_embedding_loss", "plain", [a, b, signs.long()],
     lambda u, v, y: F.cosine_embedding_loss(u, v, y, 0.1), margin=0.1)
case("hinge_embedding_loss", "plain", [a[:, 0], signs.long()], lambda u, y: F.hinge_embedding_loss(u, y, 0.9),
     margin=0.9)
case("margin_ranking_loss", "plain", [a[:, 0], b[:, 0], signs],
     lambda u, v, y: F.relu(0.3 - y * (u - v)).mean(), margin=0.3)
case("info_nce_loss", "plain", [a, b],
     lambda u, v: F.cross_entropy(F.normalize(u) @ F.normalize(v).T / 0.2, torch.arange(4)), temperature=0.2)
logits = reals(8, 3, 5)
targets = torch.tensor([[1, 2, 2], [3, 1, 4], [2, 1, 1]])
lengths, sizes = torch.tensor([8, 6, 7]), torch.tensor([3, 2, 0])
for r in reductions:
    case("ctc_loss", r, [logits, targets, lengths, sizes],
         lambda z, y, n, m: F.ctc_loss(F.log_softmax(z, 2), y, n, m, 0, r), reduction=r, blank=0)
case("ctc_loss", "last_blank", [logits, torch.tensor([[1, 2, 2], [3, 1, 0], [2, 0, 0]]), lengths, sizes],
     lambda z, y, n, m: F.ctc_loss(F.log_softmax(z, 2), y, n, m, 4, "mean"), reduction="mean", blank=4)
case("ctc_loss", "impossible", [logits, targets, torch.tensor([3, 6, 7]), sizes],
     lambda z, y, n, m: F.ctc_loss(F.log_softmax(z, 2), y, n, m, 0, "mean", True), reduction="mean", blank=0,
     zero_infinity=True)



def write(name):
    (HERE / f"{name}.json").write_text(json.dumps(cases, indent=1) + "\n")
    save_file(tensors, HERE / f"{name}.safetensors")
    print(len(cases), "cases,", len(tensors), "tensors")
    cases.clear()
    tensors.clear()


write("vocabulary")

# ---- distributions: log-probabilities, entropies, divergences

D = torch.distributions


def positive(*shape):
    return reals(*shape, low=0.3, high=2)


def both(name, make, value, *parameters):
    """log_prob and entropy of make(parameters)."""
    case(name, "log_prob", [value, *parameters], lambda x, *p: make(*p).log_prob(x))
    case(name, "entropy", list(parameters), lambda *p: make(*p).entropy())


x = reals(4, 3)
for name, make in (("normal", D.Normal), ("laplace", D.Laplace), ("gumbel", D.Gumbel), ("cauchy", D.Cauchy)):
    both(name, make, x, reals(4, 3), positive(3))
both("uniform", D.Uniform, reals(4, 3, low=0, high=0.5), reals(4, 3, low=-1, high=-0.5), positive(4, 3))
both("exponential", D.Exponential, positive(4, 3), positive(3))
both("bernoulli", lambda z: D.Bernoulli(logits=z), (reals(4, 3) > 0).double(), reals(4, 3))
both("categorical", lambda z: D.Categorical(logits=z), integers(5, 4, 3), reals(4, 3, 5))
both("independent_normal", lambda m, s: D.Independent(D.Normal(m, s), 1), x, reals(4, 3), positive(4, 3))
case("logistic", "log_prob", [x, reals(4, 3), positive(3)],
     lambda v, m, s: torch.log(torch.sigmoid((v - m) / s) * (1 - torch.sigmoid((v - m) / s)) / s))
case("mixture", "log_prob", [reals(4), reals(4, 3), reals(4, 3), positive(4, 3)],
     lambda v, z, m, s: D.MixtureSameFamily(D.Categorical(logits=z), D.Normal(m, s)).log_prob(v))
for name, t, value in (("exp", D.ExpTransform(), positive(4, 3)), ("sigmoid", D.SigmoidTransform(), reals(
        4, 3, low=0.1, high=0.9)), ("tanh", D.TanhTransform(), reals(4, 3, low=-0.8, high=0.8)),
        ("softplus", D.SoftplusTransform(), positive(4, 3))):
    case("transformed", name, [value, reals(4, 3), positive(4, 3)],
         lambda v, m, s: D.TransformedDistribution(D.Normal(m, s), t).log_prob(v), bijector=name)
case("transformed", "affine", [x, reals(4, 3), positive(4, 3), reals(3), -positive(3)],
     lambda v, m, s, a, b: D.TransformedDistribution(D.Normal(m, s), D.AffineTransform(a, b)).log_prob(v),
     bijector="affine")
kl = D.kl_divergence
case("kl_divergence", "normal", [reals(4, 3), positive(4, 3), reals(4, 3), positive(4, 3)],
     lambda a, b, c, d: kl(D.Normal(a, b), D.Normal(c, d)))
case("kl_divergence", "laplace", [reals(4, 3), positive(4, 3), reals(4, 3), positive(4, 3)],
     lambda a, b, c, d: kl(D.Laplace(a, b), D.Laplace(c, d)))
case("kl_divergence", "exponential", [positive(4, 3), positive(4, 3)],
     lambda a, b: kl(D.Exponential(a), D.Exponential(b)))
case("kl_divergence", "uniform", [reals(4, low=0, high=0.2), reals(4, low=0.3, high=0.5), -positive(4), positive(4) + 1],
     lambda a, b, c, d: kl(D.Uniform(a, b), D.Uniform(c, d)))
case("kl_divergence", "bernoulli", [reals(4, 3), reals(4, 3)],
     lambda a, b: kl(D.Bernoulli(logits=a), D.Bernoulli(logits=b)))
case("kl_divergence", "categorical", [reals(4, 3), reals(4, 3)],
     lambda a, b: kl(D.Categorical(logits=a), D.Categorical(logits=b)))
case("kl_divergence", "independent", [reals(4, 3), positive(4, 3), reals(4, 3), positive(4, 3)],
     lambda a, b, c, d: kl(D.Independent(D.Normal(a, b), 1), D.Independent(D.Normal(c, d), 1)))
write("distributions")
