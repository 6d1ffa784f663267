#!/usr/bin/env python3
"""Times one step of a workload in another framework on the CPU, and prints one line of JSON as `workload` does.

usage: peer_workloads.py {torch,torch_compile,torch_autocast,jax,onnxruntime,openvino} WORKLOAD THREADS

Three steps warm up, then steps run for eight seconds, 3,000 at most and five at least; the median and the least are
printed. It takes the workloads of which `SPEC` has an entry, with the same network, batch and update as in `workload/`.
ONNX Runtime and OpenVINO infer only, on the network as PyTorch exports it; `torch_autocast` computes in bf16 what
PyTorch holds to gain by it; `gpt_8` and `resnet50_8` are PyTorch's only. benchmarks/peers.py runs it as

  --peer 'torch=PYTHON benchmarks/peer_workloads.py torch {workload} {threads}'
"""
import contextlib
import json
import os
import resource
import statistics
import sys
import tempfile
import time

START = time.perf_counter()

SPEC = {  # network, shape of the input, whether it is trained
    "mobilenet2_1_infer": ("mobilenet", (1, 3, 224, 224), False),
    "bert_base_1_infer": ("bert", (1, 128), False),
    "gpt_decode": ("decoder", (1, 1), False),
    "resnet50_32_infer": ("resnet50", (32, 3, 224, 224), False),
    "gru128": ("gru", (128, 28, 28), True),
    "embedding_bag": ("bag", (512, 32), True),
    "unet_4": ("unet", (4, 3, 128, 128), True),
    "vit_8": ("vit", (8, 3, 224, 224), True),
    "gpt_8": ("gpt", (8, 128), True),
    "resnet50_8": ("resnet50", (8, 3, 224, 224), True),
}
IMAGES = ("mobilenet", "resnet50", "unet", "vit")
BERT = dict(words=30522, width=768, heads=12, layers=12, places=512)
GPT2 = dict(words=50257, width=768, heads=12, layers=12, places=512)
ROWS, BAG_WIDTH = 10**6, 64
GPT = dict(words=1024, width=256, heads=4, layers=4, places=128)
VIT = dict(width=192, heads=3, layers=12, patch=16)
# Of MobileNetV2: expansion, channels, blocks, stride of the first.
INVERTED = [(1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2),
            (6, 320, 1, 1)]


def measure(step, sync=lambda result: None, budget=8.0):
    for _ in range(3):
        sync(step())
    first = time.perf_counter() - START
    times, end = [], time.perf_counter() + budget
    while (time.perf_counter() < end or len(times) < 5) and len(times) < 3000:
        before = time.perf_counter()
        sync(step())
        times.append((time.perf_counter() - before) * 1e3)
    return times, first


# ---- PyTorch, and what it exports


def torch_networks():
    import torch
    import torch.nn as nn
    import torch.nn.functional as F

    def unit(i, o, kernel, stride=1, groups=1):
        return nn.Sequential(nn.Conv2d(i, o, kernel, stride, kernel // 2, groups=groups, bias=False),
                             nn.BatchNorm2d(o), nn.ReLU6())

    class Inverted(nn.Module):
        def __init__(self, i, o, stride, expand):
            super().__init__()
            wide = i * expand
            parts = [unit(i, wide, 1)] if expand > 1 else []
            self.f = nn.Sequential(*parts, unit(wide, wide, 3, stride, wide),
                                   nn.Conv2d(wide, o, 1, bias=False), nn.BatchNorm2d(o))
            self.adds = i == o and stride == 1

        def forward(self, x):
            return x + self.f(x) if self.adds else self.f(x)

    def mobilenet():
        parts, i = [unit(3, 32, 3, 2)], 32
        for expand, o, count, stride in INVERTED:
            for k in range(count):
                parts.append(Inverted(i, o, stride if k == 0 else 1, expand))
                i = o
        return nn.Sequential(*parts, unit(320, 1280, 1), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                             nn.Dropout(0.2), nn.Linear(1280, 1000))

    class Bottle(nn.Module):
        def __init__(self, i, m, stride, down):
            super().__init__()
            self.f = nn.Sequential(nn.Conv2d(i, m, 1, bias=False), nn.BatchNorm2d(m), nn.ReLU(),
                                   nn.Conv2d(m, m, 3, stride, 1, bias=False), nn.BatchNorm2d(m), nn.ReLU(),
                                   nn.Conv2d(m, 4 * m, 1, bias=False), nn.BatchNorm2d(4 * m))
            self.d = (nn.Sequential(nn.Conv2d(i, 4 * m, 1, stride, bias=False), nn.BatchNorm2d(4 * m))
                      if down else nn.Identity())

        def forward(self, x):
            return F.relu(self.f(x) + self.d(x))

    def resnet50():
        parts, i = [], 64
        for m, count, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
            for k in range(count):
                parts.append(Bottle(i, m, stride if k == 0 else 1, k == 0))
                i = 4 * m
        return nn.Sequential(nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(),
                             nn.MaxPool2d(3, 2, 1), *parts, nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                             nn.Linear(2048, 1000))

    class Layer(nn.Module):
        """A layer of a transformer: norms behind the sums (BERT) or before (GPT, ViT)."""

        def __init__(self, d, heads, first, gelu="none", epsilon=1e-5, causal=False):
            super().__init__()
            self.heads, self.first, self.gelu, self.causal = heads, first, gelu, causal
            self.n1, self.n2 = nn.LayerNorm(d, epsilon), nn.LayerNorm(d, epsilon)
            self.qkv, self.o = nn.Linear(d, 3 * d), nn.Linear(d, d)
            self.a, self.b = nn.Linear(d, 4 * d), nn.Linear(4 * d, d)

        def parts(self, x):
            n, t, _ = x.shape
            return self.qkv(x).view(n, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4)

        def attend(self, x):
            n, t, _ = x.shape
            q, k, v = self.parts(x)
            read = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
            return self.o(read.transpose(1, 2).reshape(n, t, -1))

        def dense(self, x):
            return self.b(F.gelu(self.a(x), approximate=self.gelu))

        def forward(self, x):
            if self.first:
                x = x + self.attend(self.n1(x))
                return x + self.dense(self.n2(x))
            x = self.n1(x + self.attend(x))
            return self.n2(x + self.dense(x))

    class Bert(nn.Module):
        def __init__(self, words, width, heads, layers, places):
            super().__init__()
            self.word, self.kind = nn.Embedding(words, width), nn.Embedding(2, width)
            self.place = nn.Parameter(torch.randn(places, width) * 0.02)
            self.norm, self.pooler = nn.LayerNorm(width, 1e-12), nn.Linear(width, width)
            self.layers = nn.ModuleList(Layer(width, heads, False, epsilon=1e-12) for _ in range(layers))

        def forward(self, x):
            x = self.norm(self.word(x) + self.kind.weight[0] + self.place[:x.shape[1]])
            for layer in self.layers:
                x = layer(x)
            return x, torch.tanh(self.pooler(x[:, 0]))

    class Decoder(nn.Module):
        """One word at the last place of a full cache. `in_place`: the cache is written to; else it is an argument
        without the last place, and the new rows are results, which is the least that a graph can move."""

        def __init__(self, words, width, heads, layers, places, in_place):
            super().__init__()
            self.word, self.norm = nn.Embedding(words, width), nn.LayerNorm(width)
            self.place = nn.Parameter(torch.randn(places, width) * 0.02)
            self.head = nn.Linear(width, words, bias=False)
            self.layers = nn.ModuleList(Layer(width, heads, True, "tanh") for _ in range(layers))
            self.heads, self.last, self.in_place = heads, places - 1, in_place
            if in_place:
                self.register_buffer("cache", torch.randn(layers, 2, 1, heads, places, width // heads))

        def forward(self, x, *past):
            x = self.word(x) + self.place[self.last]
            rows = []
            for i, layer in enumerate(self.layers):
                q, k, v = layer.parts(layer.n1(x))
                if self.in_place:
                    keys, values = self.cache[i, 0], self.cache[i, 1]
                    keys[:, :, self.last:], values[:, :, self.last:] = k, v
                    y = F.scaled_dot_product_attention(q, keys, values)
                else:
                    keys, values = past[2 * i], past[2 * i + 1]
                    old, new = q @ keys.transpose(-1, -2), (q * k).sum(-1, keepdim=True)
                    p = F.softmax(torch.cat([old, new], -1) / 8, -1)
                    y = p[..., :-1] @ values + p[..., -1:] * v
                    rows += [k, v]
                x = x + layer.o(y.transpose(1, 2).reshape(1, 1, -1))
                x = x + layer.dense(layer.n2(x))
            return (self.head(self.norm(x)), *rows)

    class Gru(nn.Module):
        def __init__(self):
            super().__init__()
            self.l, self.f = nn.GRU(28, 128, batch_first=True), nn.Linear(128, 10)

        def forward(self, x):
            return self.f(self.l(x)[0][:, -1])

    class Bag(nn.Module):
        def __init__(self):
            super().__init__()
            self.words, self.f = nn.EmbeddingBag(ROWS, BAG_WIDTH, mode="mean", sparse=True), nn.Linear(BAG_WIDTH, 10)

        def forward(self, x):
            return self.f(self.words(x))

    def double(i, o):
        return nn.Sequential(nn.Conv2d(i, o, 3, 1, 1, bias=False), nn.BatchNorm2d(o), nn.ReLU(),
                             nn.Conv2d(o, o, 3, 1, 1, bias=False), nn.BatchNorm2d(o), nn.ReLU())

    class UNet(nn.Module):
        def __init__(self, width=32):
            super().__init__()
            w = [width * 2**k for k in range(5)]
            self.down = nn.ModuleList(double(i, o) for i, o in zip([3] + w, w))
            self.up = nn.ModuleList(nn.ConvTranspose2d(2 * o, o, 2, 2) for o in reversed(w[:-1]))
            self.conv = nn.ModuleList(double(2 * o, o) for o in reversed(w[:-1]))
            self.out = nn.Conv2d(width, 1, 1)

        def forward(self, x):
            seen = []
            for k, down in enumerate(self.down):
                x = down(x if k == 0 else F.max_pool2d(x, 2))
                seen.append(x)
            for up, conv, fine in zip(self.up, self.conv, reversed(seen[:-1])):
                x = conv(torch.cat([fine, up(x)], 1))
            return self.out(x)

    class ViT(nn.Module):
        def __init__(self, width, heads, layers, patch):
            super().__init__()
            places = (224 // patch)**2 + 1
            self.patches = nn.Conv2d(3, width, patch, patch)
            self.first = nn.Parameter(torch.randn(1, 1, width) * 0.02)
            self.place = nn.Parameter(torch.randn(places, width) * 0.02)
            self.layers = nn.ModuleList(Layer(width, heads, True, epsilon=1e-6) for _ in range(layers))
            self.norm, self.head = nn.LayerNorm(width, 1e-6), nn.Linear(width, 1000)

        def forward(self, x):
            x = self.patches(x).flatten(2).transpose(1, 2)
            x = torch.cat([self.first.expand(x.shape[0], -1, -1), x], 1) + self.place
            for layer in self.layers:
                x = layer(x)
            return self.head(self.norm(x[:, 0]))

    class Gpt(nn.Module):
        def __init__(self, words, width, heads, layers, places):
            super().__init__()
            self.word = nn.Embedding(words, width)
            self.place = nn.Parameter(torch.randn(places, width) * 0.02)
            self.layers = nn.ModuleList(Layer(width, heads, True, "tanh", causal=True) for _ in range(layers))
            self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, words, bias=False)

        def forward(self, x):
            x = self.word(x) + self.place
            for layer in self.layers:
                x = layer(x)
            return self.head(self.norm(x)).flatten(0, 1)

    return dict(mobilenet=mobilenet, gpt=lambda: Gpt(**GPT), bert=lambda: Bert(**BERT), resnet50=resnet50, gru=Gru, bag=Bag, unet=UNet,
                decoder=lambda: Decoder(**GPT2, in_place=True), vit=lambda: ViT(**VIT),
                exported_decoder=lambda: Decoder(**GPT2, in_place=False))


def run_torch(net, shape, trained, threads, compiled, narrow):
    import torch
    import torch.nn.functional as F
    torch.set_num_threads(threads)
    model = torch_networks()[net]()
    limit = dict(bert=BERT["words"], decoder=GPT2["words"], bag=ROWS, gpt=GPT["words"])
    x = torch.randint(0, limit[net], shape) if net in limit else torch.randn(shape)
    if net in ("mobilenet", "resnet50", "unet"):
        model, x = model.to(memory_format=torch.channels_last), x.to(memory_format=torch.channels_last)
    forward = torch.compile(model) if compiled else model
    if not trained:
        model.eval()

        def step():
            with torch.inference_mode():
                return forward(x)

        return torch.__version__, measure(step)
    model.train()
    if net in ("vit", "gpt"):
        optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    else:
        optimizer = torch.optim.SGD(model.parameters(), 0.01, 0 if net == "bag" else 0.9)
    classes = dict(vit=1000, resnet50=1000, gpt=GPT["words"]).get(net, 10)
    y = torch.randn(shape[0], 1, *shape[2:]) if net == "unet" else torch.randint(
        0, classes, (shape[0] * (shape[1] if net == "gpt" else 1),))
    loss_of = F.binary_cross_entropy_with_logits if net == "unet" else F.cross_entropy

    def step():
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cpu", torch.bfloat16, enabled=narrow):
            loss = loss_of(forward(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return torch.__version__, measure(step)


def run_exported(net, shape, trained, threads, engine):
    global START
    import torch
    if trained:
        sys.exit(f"{engine}: inference only")
    model = torch_networks()["exported_decoder" if net == "decoder" else net]().eval()
    limit = dict(bert=BERT["words"], decoder=GPT2["words"])
    inputs = [torch.randint(0, limit[net], shape) if net in limit else torch.randn(shape)]
    if net == "decoder":
        heads, places = GPT2["heads"], GPT2["places"]
        inputs += [torch.randn(1, heads, places - 1, GPT2["width"] // heads) for _ in range(2 * GPT2["layers"])]
    names = [f"x{k}" for k in range(len(inputs))]
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(sys.stderr):
        path = folder + "/net.onnx"
        torch.onnx.export(model, tuple(inputs), path, input_names=names, dynamo=True)
        arrays = {name: x.numpy() for name, x in zip(names, inputs)}
        del model
        START = time.perf_counter()
        if engine == "onnxruntime":
            import onnxruntime
            o = onnxruntime.SessionOptions()
            o.intra_op_num_threads, o.inter_op_num_threads = threads, 1
            session = onnxruntime.InferenceSession(path, o, providers=["CPUExecutionProvider"])
            # Bound once, so that nothing is copied into the session.
            binding = session.io_binding()
            for name, x in arrays.items():
                binding.bind_cpu_input(name, x)
            for result in session.get_outputs():
                binding.bind_output(result.name)
            return onnxruntime.__version__, measure(lambda: session.run_with_iobinding(binding))
        import openvino
        compiled = openvino.Core().compile_model(path, "CPU", {
            "INFERENCE_NUM_THREADS": threads, "PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "f32"})
        request = compiled.create_infer_request()
        return openvino.__version__, measure(
            lambda: request.infer(list(arrays.values()), share_inputs=True, share_outputs=True))


# ---- JAX


def jax_network(net, P):
    """Parameters and a function of them and the input."""
    import jax
    import jax.numpy as jnp
    from jax import lax

    def conv(x, w, stride=1, pad="SAME", groups=1):
        return lax.conv_general_dilated(x, w, (stride, stride), pad, dimension_numbers=("NHWC", "HWIO", "NHWC"),
                                        feature_group_count=groups)

    def scale(n):
        return P(n) + 1, P(n)

    def running(n):  # norms of inference: scale, shift, mean, variance
        return *scale(n), P(n), abs(P(n)) + 1

    def norm(x, p):
        return (x - p[2]) * (lax.rsqrt(p[3] + 1e-5) * p[0]) + p[1]

    def batch_norm(x, p):
        m, v = x.mean((0, 1, 2)), x.var((0, 1, 2))
        return (x - m) * lax.rsqrt(v + 1e-5) * p[0] + p[1]

    def layer_norm(x, p, epsilon=1e-5):
        m = x.mean(-1, keepdims=True)
        return (x - m) * lax.rsqrt(x.var(-1, keepdims=True) + epsilon) * p[0] + p[1]

    def dense(x, p):
        return x @ p[0] + p[1]

    def linear(i, o):
        return P(i, o), P(o)

    def layer(d):
        return dict(n1=scale(d), n2=scale(d), qkv=linear(d, 3 * d), o=linear(d, d), a=linear(d, 4 * d),
                    b=linear(4 * d, d))

    def attend(x, m, heads):
        n, t, d = x.shape
        q, k, v = jnp.moveaxis(dense(x, m["qkv"]).reshape(n, t, 3, heads, -1), 2, 0)
        a = jax.nn.softmax(jnp.einsum("bthd,bshd->bhts", q, k) / (d // heads)**0.5)
        return dense(jnp.einsum("bhts,bshd->bthd", a, v).reshape(n, t, -1), m["o"])

    def double(i, o):
        return P(3, 3, i, o), scale(o), P(3, 3, o, o), scale(o)

    def run_double(x, p):
        for w, n in ((p[0], p[1]), (p[2], p[3])):
            x = jax.nn.relu(batch_norm(conv(x, w), n))
        return x

    if net == "mobilenet":
        blocks, i = [], 32
        for expand, o, count, stride in INVERTED:
            for k in range(count):
                wide = i * expand
                blocks.append(((P(1, 1, i, wide), running(wide)) if expand > 1 else None,
                               (P(3, 3, 1, wide), running(wide)), (P(1, 1, wide, o), running(o))))
                i = o
        strides = [s if k == 0 else 1 for _, _, c, s in INVERTED for k in range(c)]

        def f(p, x):
            x = jax.nn.relu6(norm(conv(x, p["c"], 2), p["n"]))
            for (expand, depth, project), stride in zip(p["l"], strides):
                h = x if expand is None else jax.nn.relu6(norm(conv(x, expand[0]), expand[1]))
                h = jax.nn.relu6(norm(conv(h, depth[0], stride, groups=h.shape[-1]), depth[1]))
                h = norm(conv(h, project[0]), project[1])
                x = x + h if x.shape == h.shape else h
            return dense(jax.nn.relu6(norm(conv(x, p["w"]), p["wn"])).mean((1, 2)), p["f"])

        return dict(c=P(3, 3, 3, 32), n=running(32), l=blocks, w=P(1, 1, 320, 1280), wn=running(1280),
                    f=linear(1280, 1000)), f
    if net == "resnet50":
        layers, strides, i = [], [], 64
        for m, count, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
            for k in range(count):
                down = (P(1, 1, i, 4 * m), running(4 * m)) if k == 0 else None
                layers.append(((P(1, 1, i, m), running(m)), (P(3, 3, m, m), running(m)),
                               (P(1, 1, m, 4 * m), running(4 * m)), down))
                strides.append(stride if k == 0 else 1)
                i = 4 * m

        def f(p, x):
            x = jax.nn.relu(norm(conv(x, p["c"], 2), p["n"]))
            x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 3, 3, 1), (1, 2, 2, 1), "SAME")
            for (a, b, c, down), s in zip(p["l"], strides):
                h = jax.nn.relu(norm(conv(x, a[0]), a[1]))
                h = norm(conv(jax.nn.relu(norm(conv(h, b[0], s), b[1])), c[0]), c[1])
                x = jax.nn.relu(h + (x if down is None else norm(conv(x, down[0], s), down[1])))
            return dense(x.mean((1, 2)), p["f"])

        return dict(c=P(7, 7, 3, 64), n=running(64), l=layers, f=linear(2048, 1000)), f
    if net == "bert":
        d = BERT["width"]

        def f(p, x):
            x = layer_norm(p["w"][x] + p["k"][0] + p["p"][:x.shape[1]], p["n"], 1e-12)
            for m in p["l"]:
                x = layer_norm(x + attend(x, m, BERT["heads"]), m["n1"], 1e-12)
                y = dense(jax.nn.gelu(dense(x, m["a"]), approximate=False), m["b"])
                x = layer_norm(x + y, m["n2"], 1e-12)
            return x, jnp.tanh(dense(x[:, 0], p["f"]))

        return dict(w=P(BERT["words"], d), k=P(2, d), p=P(BERT["places"], d), n=scale(d),
                    l=[layer(d) for _ in range(BERT["layers"])], f=linear(d, d)), f
    if net == "vit":
        d, heads, patch = VIT["width"], VIT["heads"], VIT["patch"]

        def f(p, x):
            n = x.shape[0]
            x = (conv(x, p["c"][0], patch, "VALID") + p["c"][1]).reshape(n, -1, d)
            x = jnp.concatenate([jnp.broadcast_to(p["t"], (n, 1, d)), x], 1) + p["p"]
            for m in p["l"]:
                x = x + attend(layer_norm(x, m["n1"], 1e-6), m, heads)
                h = jax.nn.gelu(dense(layer_norm(x, m["n2"], 1e-6), m["a"]), approximate=False)
                x = x + dense(h, m["b"])
            return dense(layer_norm(x[:, 0], p["n"], 1e-6), p["f"])

        return dict(c=(P(patch, patch, 3, d), P(d)), t=P(1, 1, d), p=P((224 // patch)**2 + 1, d), n=scale(d),
                    l=[layer(d) for _ in range(VIT["layers"])], f=linear(d, 1000)), f
    if net == "gru":
        def f(p, x):
            inputs = x @ p["w"] + p["b"]

            def cell(h, i):
                r = h @ p["u"] + p["c"]
                (ir, iz, n), (rr, rz, rn) = jnp.split(i, 3, -1), jnp.split(r, 3, -1)
                new = jnp.tanh(n + jax.nn.sigmoid(ir + rr) * rn)
                h = new + jax.nn.sigmoid(iz + rz) * (h - new)
                return h, None

            h, _ = lax.scan(cell, jnp.zeros((x.shape[0], 128)), jnp.swapaxes(inputs, 0, 1))
            return dense(h, p["f"])

        return dict(w=P(28, 384), b=P(384), u=P(128, 384), c=P(384), f=linear(128, 10)), f
    if net == "unet":
        w = [32 * 2**k for k in range(5)]

        def up(x, p):
            return lax.conv_transpose(x, p[0], (2, 2), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC")) + p[1]

        def pool(x):
            return lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")

        def f(p, x):
            seen = []
            for k, q in enumerate(p["d"]):
                x = run_double(x if k == 0 else pool(x), q)
                seen.append(x)
            for u, q, fine in zip(p["u"], p["c"], reversed(seen[:-1])):
                x = run_double(jnp.concatenate([fine, up(x, u)], -1), q)
            return conv(x, p["o"][0]) + p["o"][1]

        return dict(d=[double(i, o) for i, o in zip([3] + w, w)],
                    u=[(P(2, 2, 2 * o, o), P(o)) for o in reversed(w[:-1])],
                    c=[double(2 * o, o) for o in reversed(w[:-1])], o=(P(1, 1, 32, 1), P(1))), f
    if net == "decoder":
        d, heads = GPT2["width"], GPT2["heads"]

        def f(p, x, past):
            x = p["w"][x] + p["p"][-1]
            rows = []
            for m, (keys, values) in zip(p["l"], past):
                qkv = dense(layer_norm(x, m["n1"]), m["qkv"]).reshape(1, 1, 3, heads, -1)
                q, k, v = qkv[:, :, 0], qkv[:, :, 1], qkv[:, :, 2]
                old = jnp.einsum("bthd,bhsd->bhts", q, keys)
                new = jnp.einsum("bthd,bshd->bhts", q, k)
                a = jax.nn.softmax(jnp.concatenate([old, new], -1) / 8)
                y = jnp.einsum("bhts,bhsd->bthd", a[..., :-1], values) + jnp.einsum(
                    "bhts,bshd->bthd", a[..., -1:], v)
                x = x + dense(y.reshape(1, 1, d), m["o"])
                x = x + dense(jax.nn.gelu(dense(layer_norm(x, m["n2"]), m["a"])), m["b"])
                rows.append((k, v))
            return layer_norm(x, p["n"]) @ p["h"], rows

        return dict(w=P(GPT2["words"], d), p=P(GPT2["places"], d), n=scale(d), h=P(d, GPT2["words"]),
                    l=[layer(d) for _ in range(GPT2["layers"])]), f
    return dict(w=P(ROWS, BAG_WIDTH), f=linear(BAG_WIDTH, 10)), None


def run_jax(net, shape, trained, threads):
    os.environ["XLA_FLAGS"] = (f"--xla_cpu_multi_thread_eigen={'true' if threads > 1 else 'false'} "
                               f"intra_op_parallelism_threads={threads}")
    os.sched_setaffinity(0, set(range(threads)))
    import jax
    import jax.numpy as jnp
    import numpy as np
    rng = np.random.default_rng(0)

    def P(*s):
        return jnp.asarray(rng.normal(size=s, scale=0.05), jnp.float32)

    params, f = jax_network(net, P)
    limit = dict(bert=BERT["words"], decoder=GPT2["words"], bag=ROWS)
    if net in limit:
        x = jnp.asarray(rng.integers(0, limit[net], shape))
    else:
        x = P(*((shape[0], *shape[2:], shape[1]) if net in IMAGES else shape))
    if not trained:
        if net == "decoder":
            heads = GPT2["heads"]
            part = (1, heads, GPT2["places"] - 1, GPT2["width"] // heads)
            past = [(P(*part), P(*part)) for _ in range(GPT2["layers"])]
            g = jax.jit(f)
            return jax.__version__, measure(lambda: g(params, x, past), jax.block_until_ready)
        g = jax.jit(f)
        return jax.__version__, measure(lambda: g(params, x), jax.block_until_ready)
    if net == "unet":
        y = P(shape[0], *shape[2:], 1)
    else:
        y = jnp.asarray(rng.integers(0, 1000 if net == "vit" else 10, shape[0]))

    def cross_entropy(z, y):
        return -jnp.take_along_axis(jax.nn.log_softmax(z), y[:, None], 1).mean()

    def binary(z, y):
        return (jnp.maximum(z, 0) - z * y + jnp.log1p(jnp.exp(-abs(z)))).mean()

    loss = binary if net == "unet" else cross_entropy

    def update(state, x, y):
        p, m, v, t = state
        if net == "bag":  # by hand, since a gradient of the table would be as large as the table
            rows, classes = p["w"][x], p["f"]
            gr, gc = jax.grad(lambda r, c: loss(r.mean(1) @ c[0] + c[1], y), (0, 1))(rows, classes)
            return dict(w=p["w"].at[x].add(-0.01 * gr),
                        f=jax.tree.map(lambda a, b: a - 0.01 * b, classes, gc)), m, v, t
        g = jax.grad(lambda p: loss(f(p, x), y))(p)
        if net == "vit":
            t = t + 1
            m = jax.tree.map(lambda a, b: 0.9 * a + 0.1 * b, m, g)
            v = jax.tree.map(lambda a, b: 0.999 * a + 0.001 * b * b, v, g)
            p = jax.tree.map(lambda a, mm, vv: a - 1e-3 * (mm / (1 - 0.9**t)) /
                             (jnp.sqrt(vv / (1 - 0.999**t)) + 1e-8), p, m, v)
        else:
            m = jax.tree.map(lambda a, b: 0.9 * a + b, m, g)
            p = jax.tree.map(lambda a, b: a - 0.01 * b, p, m)
        return p, m, v, t

    def zeros(needed):
        return jax.tree.map(jnp.zeros_like, params) if needed else jnp.float32(0)

    run = jax.jit(update, donate_argnums=0)
    state = [(params, zeros(net != "bag"), zeros(net == "vit"), jnp.float32(0))]

    def step():
        state[0] = run(state[0], x, y)
        return state[0]

    return jax.__version__, measure(step, jax.block_until_ready)


def main():
    if len(sys.argv) != 4 or sys.argv[2] not in SPEC:
        sys.exit(__doc__)
    framework, workload, threads = sys.argv[1], sys.argv[2], int(sys.argv[3])
    os.environ.update(OMP_NUM_THREADS=str(threads), MKL_NUM_THREADS=str(threads))
    net, shape, trained = SPEC[workload]
    if framework in ("onnxruntime", "openvino"):
        version, (times, first) = run_exported(net, shape, trained, threads, framework)
    elif framework == "jax" and workload not in ("gpt_8", "resnet50_8"):
        version, (times, first) = run_jax(net, shape, trained, threads)
    elif framework in ("torch", "torch_compile", "torch_autocast"):
        version, (times, first) = run_torch(net, shape, trained, threads, framework == "torch_compile",
                                            framework == "torch_autocast")
    else:
        sys.exit(__doc__)
    print(json.dumps(dict(
        framework=framework, version=version, workload=workload, threads=threads,
        median_ms=round(statistics.median(times), 4), min_ms=round(min(times), 4), steps=len(times),
        to_third_step_s=round(first, 2),
        peak_rss_mb=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)))


if __name__ == "__main__":
    main()
