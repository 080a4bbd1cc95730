#!/usr/bin/env python3
"""Writes the HLO graphs of testdata/: small models, lowered by JAX, never compiled.

    pip install -r tools/test-graphs-requirements.txt
    python tools/make_test_graphs.py

Widths are tiny, so that a graph runs in milliseconds; the structure is that of
real programs (shifted labels, real optimizers, residuals, causal masks), since
structure is all that compiler passes see. The same versions give the same bytes.
"""

import argparse
import functools
import gzip
import math
import pathlib
import re
from collections.abc import Callable

import jax
import jax.numpy as jnp
import zstandard
from jax import lax
from jax.sharding import Mesh, PartitionSpec
from jaxlib import _hlo

jax.config.update("jax_platforms", "cpu")
jax.config.update("jax_num_cpu_devices", 4)  # `collectives` needs a mesh of four.
# Locations hold local file paths; none may reach a file that we publish.
jax.config.update("jax_traceback_in_locations_limit", 0)
# Shardy writes MLIR into HLO attributes; GSPMD's plain `sharding=` is read by every XLA.
jax.config.update("jax_use_shardy_partitioner", False)

BATCH, LENGTH, WIDTH, HEADS, VOCAB = 2, 16, 32, 4, 64

GRAPHS: dict[str, Callable] = {}


def graph(name):
    """Registers a function that returns the lowered graph `name`."""

    def register(build):
        GRAPHS[name] = build
        return build

    return register


def lower(function, *arguments, platform="cpu", donate=()):
    """Lowers `function` for abstract arguments; `donate` lists arguments it may overwrite."""
    traced = jax.jit(function, donate_argnums=donate).trace(*arguments)
    return traced.lower(lowering_platforms=(platform,))


def f32(*shape):
    return jax.ShapeDtypeStruct(shape, jnp.float32)


def s32(*shape):
    return jax.ShapeDtypeStruct(shape, jnp.int32)


def u32(*shape):
    return jax.ShapeDtypeStruct(shape, jnp.uint32)


KEY_DATA = u32(2)  # What jax.random.wrap_key_data takes for the default generator.

# ---------------------------------------------------------------- shared layers


def dense_params(inputs, outputs):
    return {"kernel": f32(inputs, outputs), "bias": f32(outputs)}


def norm_params(width):
    return {"scale": f32(width), "bias": f32(width)}


def dense(p, x):
    return x @ p["kernel"].astype(x.dtype) + p["bias"].astype(x.dtype)


def layer_norm(p, x):
    """Normalises in f32 whatever the type of `x`, as mixed-precision models do."""
    wide = x.astype(jnp.float32)
    mean = jnp.mean(wide, axis=-1, keepdims=True)
    variance = jnp.mean(jnp.square(wide - mean), axis=-1, keepdims=True)
    normal = (wide - mean) * lax.rsqrt(variance + 1e-5)
    return (normal * p["scale"] + p["bias"]).astype(x.dtype)


def dropout(key, x, rate=0.1):
    """Drops values at `rate`; without a key it is the identity."""
    if key is None:
        return x
    keep = jax.random.bernoulli(key, 1 - rate, x.shape)
    return jnp.where(keep, x / (1 - rate), 0)


def split_keys(key, count):
    return [None] * count if key is None else list(jax.random.split(key, count))


def attention_params(width, split_qkv=False):
    inputs = (
        {name: dense_params(width, width) for name in "qkv"}
        if split_qkv
        else dense_params(width, 3 * width)
    )
    return {"inputs": inputs, "output": dense_params(width, width)}


def project_qkv(p, x):
    """Queries, keys and values as [batch, position, head, feature]."""
    if "kernel" in p:
        parts = jnp.split(dense(p, x), 3, axis=-1)
    else:
        parts = [dense(p[name], x) for name in "qkv"]
    return [part.reshape(*x.shape[:-1], HEADS, -1) for part in parts]


def attend(q, k, v, mask, key=None):
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / math.sqrt(q.shape[-1])
    scores = scores.astype(jnp.float32)
    if mask is not None:
        scores = jnp.where(mask, scores, -1e9)
    weights = dropout(key, jax.nn.softmax(scores, axis=-1)).astype(v.dtype)
    mixed = jnp.einsum("bhqk,bkhd->bqhd", weights, v)
    return mixed.reshape(*mixed.shape[:2], -1)


def attention(p, x, mask, key=None):
    return dense(p["output"], attend(*project_qkv(p["inputs"], x), mask, key))


def feed_forward_params(width):
    return {"up": dense_params(width, 4 * width), "down": dense_params(4 * width, width)}


def exact_gelu(x):
    """gelu by erf, as BERT writes it (jax.nn.gelu expands erfc into a polynomial)."""
    return 0.5 * x * (1.0 + lax.erf(x / math.sqrt(2.0)))


def feed_forward(p, x, activation=jax.nn.gelu):
    return dense(p["down"], activation(dense(p["up"], x)))


def causal_mask(length):
    return jnp.tril(jnp.ones((length, length), bool))[None, None]


def cross_entropy(logits, labels, weights):
    """Mean negative log-likelihood over the positions of weight one."""
    log_probabilities = jax.nn.log_softmax(logits.astype(jnp.float32))
    picked = jnp.take_along_axis(log_probabilities, labels[..., None], axis=-1)[..., 0]
    return -jnp.sum(picked * weights) / jnp.maximum(jnp.sum(weights), 1.0)


# ------------------------------------------------------------------- optimizers


def clip_by_global_norm(gradients, limit=1.0):
    norm = jnp.sqrt(sum(jnp.sum(jnp.square(g)) for g in jax.tree.leaves(gradients)))
    scale = jnp.minimum(1.0, limit / (norm + 1e-6))
    return jax.tree.map(lambda g: g * scale, gradients), norm


def warmup_cosine(step, peak=1e-3, warmup=100.0, total=10_000.0):
    rising = peak * step / warmup
    progress = jnp.clip((step - warmup) / (total - warmup), 0.0, 1.0)
    falling = 0.5 * peak * (1 + jnp.cos(jnp.pi * progress))
    return jnp.where(step < warmup, rising, falling)


def adamw_state(params):
    return {"mean": params, "square": params, "step": s32()}


def adamw(gradients, state, params, decay=0.1, b1=0.9, b2=0.95):
    """AdamW; like everywhere, weight decay spares biases and norms (rank below two)."""
    step = state["step"] + 1
    time = step.astype(jnp.float32)
    rate = warmup_cosine(time)
    mean = jax.tree.map(lambda m, g: b1 * m + (1 - b1) * g, state["mean"], gradients)
    square = jax.tree.map(lambda s, g: b2 * s + (1 - b2) * g * g, state["square"], gradients)

    def move(p, m, s):
        update = (m / (1 - b1**time)) / (jnp.sqrt(s / (1 - b2**time)) + 1e-8)
        return p - rate * (update + decay * p if p.ndim > 1 else update)

    params = jax.tree.map(move, params, mean, square)
    return params, {"mean": mean, "square": square, "step": step}


def adamw_step(loss):
    """A training step: gradient of `loss(params, *batch)`, clipping, AdamW."""

    def step(params, state, *batch):
        value, gradients = jax.value_and_grad(loss)(params, *batch)
        gradients, norm = clip_by_global_norm(gradients)
        params, state = adamw(gradients, state, params)
        return params, state, {"loss": value, "gradient_norm": norm}

    return step


def momentum(gradients, velocity, params, rate=0.1, friction=0.9):
    velocity = jax.tree.map(lambda v, g: friction * v + g, velocity, gradients)
    return jax.tree.map(lambda p, v: p - rate * v, params, velocity), velocity


# ------------------------------------------------------------------------ GPT-2


def gpt_block_params(split_qkv=False):
    return {
        "norm1": norm_params(WIDTH),
        "attention": attention_params(WIDTH, split_qkv),
        "norm2": norm_params(WIDTH),
        "feed_forward": feed_forward_params(WIDTH),
    }


def gpt_params(layers, split_qkv=False):
    return {
        "tokens": f32(VOCAB, WIDTH),
        "positions": f32(LENGTH, WIDTH),
        "blocks": [gpt_block_params(split_qkv) for _ in range(layers)],
        "norm": norm_params(WIDTH),
    }


def gpt_block(p, x, mask, key=None):
    attention_key, mixed_key, forward_key = split_keys(key, 3)
    x = x + dropout(
        mixed_key, attention(p["attention"], layer_norm(p["norm1"], x), mask, attention_key)
    )
    return x + dropout(forward_key, feed_forward(p["feed_forward"], layer_norm(p["norm2"], x)))


def gpt_embed(params, tokens, dtype=jnp.float32):
    positions = jnp.arange(tokens.shape[1])[None]
    embedded = jnp.take(params["tokens"], tokens, axis=0) + jnp.take(
        params["positions"], positions, axis=0
    )
    return embedded.astype(dtype)


def gpt_logits(params, x):
    """The head shares its matrix with the token embedding, as in GPT-2."""
    return layer_norm(params["norm"], x) @ params["tokens"].T.astype(x.dtype)


def gpt_forward(params, tokens, key=None, dtype=jnp.float32, block=gpt_block):
    embedding_key, *keys = split_keys(key, len(params["blocks"]) + 1)
    x = dropout(embedding_key, gpt_embed(params, tokens, dtype))
    mask = causal_mask(tokens.shape[1])
    for p, block_key in zip(params["blocks"], keys, strict=True):
        x = block(p, x, mask, block_key)
    return gpt_logits(params, x)


def next_token_loss(logits, tokens):
    """Each position predicts the following token; token 0 is padding."""
    labels = tokens[:, 1:]
    return cross_entropy(logits[:, :-1], labels, (labels != 0).astype(jnp.float32))


def gpt_loss(params, tokens):
    return next_token_loss(gpt_forward(params, tokens), tokens)


def lower_gpt_train(loss, params, *more):
    return lower(adamw_step(loss), params, adamw_state(params), s32(BATCH, LENGTH), *more)


@graph("gpt2-forward-2l")
def gpt2_forward_2l():
    """Inference of a 2-layer GPT-2: the smallest real transformer here."""
    return lower(gpt_forward, gpt_params(2), s32(BATCH, LENGTH))


@graph("gpt2-forward-bf16")
def gpt2_forward_bf16():
    """Mixed precision: f32 parameters cast to bf16, norms and softmax in f32."""
    return lower(
        functools.partial(gpt_forward, dtype=jnp.bfloat16), gpt_params(2), s32(BATCH, LENGTH)
    )


@graph("gpt2-train-1l")
def gpt2_train_1l():
    """Training step (clipping, AdamW) with embedding gathers and scatters, 1 layer."""
    return lower_gpt_train(gpt_loss, gpt_params(1))


@graph("gpt2-train-4l")
def gpt2_train_4l():
    """The same training step with 4 layers: the usual size for searches."""
    return lower_gpt_train(gpt_loss, gpt_params(4))


@graph("gpt2-train-12l")
def gpt2_train_12l():
    """12 layers, separate q, k and v, averaged weights: the large graph for time and memory."""
    params = gpt_params(12, split_qkv=True)

    def step(params, state, average, tokens):
        params, state, metrics = adamw_step(gpt_loss)(params, state, tokens)
        average = jax.tree.map(lambda a, p: 0.999 * a + 0.001 * p, average, params)
        return params, state, average, metrics

    return lower(step, params, adamw_state(params), params, s32(BATCH, LENGTH))


@graph("gpt2-train-dropout")
def gpt2_train_dropout():
    """Training with dropout: threefry random bits between the layers."""

    def loss(params, tokens, key_data):
        key = jax.random.wrap_key_data(key_data)
        return next_token_loss(gpt_forward(params, tokens, key), tokens)

    return lower_gpt_train(loss, gpt_params(2), KEY_DATA)


@graph("gpt2-remat-train")
def gpt2_remat_train():
    """jax.checkpoint around each block: the backward pass recomputes the forward one."""

    def loss(params, tokens):
        return next_token_loss(gpt_forward(params, tokens, block=jax.checkpoint(gpt_block)), tokens)

    return lower_gpt_train(loss, gpt_params(2))


@graph("gpt2-scan-layers-train")
def gpt2_scan_layers_train():
    """lax.scan over stacked layers: forward and backward become while loops."""
    layers = 4
    params = gpt_params(1)
    params["blocks"] = jax.tree.map(lambda leaf: f32(layers, *leaf.shape), params["blocks"][0])

    def loss(params, tokens):
        mask = causal_mask(tokens.shape[1])
        x, _ = lax.scan(
            lambda x, p: (gpt_block(p, x, mask), None), gpt_embed(params, tokens), params["blocks"]
        )
        return next_token_loss(gpt_logits(params, x), tokens)

    return lower_gpt_train(loss, params)


def gpt_decode_token(params, caches, token, position):
    """Logits after one more token, and the key/value caches extended by it."""
    x = jnp.take(params["tokens"], token, axis=0)[:, None] + params["positions"][position]
    mask = (jnp.arange(LENGTH) <= position)[None, None, None]
    extended = []
    for p, (keys, values) in zip(params["blocks"], caches, strict=True):
        q, k, v = project_qkv(p["attention"]["inputs"], layer_norm(p["norm1"], x))
        keys = lax.dynamic_update_slice(keys, k, (0, position, 0, 0))
        values = lax.dynamic_update_slice(values, v, (0, position, 0, 0))
        extended.append((keys, values))
        x = x + dense(p["attention"]["output"], attend(q, keys, values, mask))
        x = x + feed_forward(p["feed_forward"], layer_norm(p["norm2"], x))
    return gpt_logits(params, x)[:, 0], extended


def gpt_generate(params, prompt, choose):
    """Continues `prompt` up to LENGTH tokens, or until each sequence has met the end token 0."""
    prompt_length = prompt.shape[1]
    buffer = jnp.zeros((BATCH, LENGTH), jnp.int32).at[:, :prompt_length].set(prompt)
    empty = jnp.zeros((BATCH, LENGTH, HEADS, WIDTH // HEADS))
    caches = [(empty, empty) for _ in params["blocks"]]

    def unfinished(state):
        position, _, _, done = state
        return (position < LENGTH - 1) & ~jnp.all(done)

    def extend(state):
        position, buffer, caches, done = state
        token = lax.dynamic_index_in_dim(buffer, position, axis=1, keepdims=False)
        logits, caches = gpt_decode_token(params, caches, token, position)
        in_prompt = position + 1 < prompt_length
        given = lax.dynamic_index_in_dim(buffer, position + 1, axis=1, keepdims=False)
        chosen = jnp.where(done, 0, choose(logits, position))
        following = jnp.where(in_prompt, given, chosen)
        buffer = lax.dynamic_update_slice(buffer, following[:, None], (0, position + 1))
        return position + 1, buffer, caches, done | (~in_prompt & (following == 0))

    _, buffer, _, _ = lax.while_loop(
        unfinished, extend, (jnp.int32(0), buffer, caches, jnp.zeros(BATCH, bool))
    )
    return buffer


@graph("gpt2-generate-greedy")
def gpt2_generate_greedy():
    """Greedy decoding with a key/value cache: while, dynamic-update-slice, argmax."""

    def generate(params, prompt):
        return gpt_generate(
            params, prompt, lambda logits, _: jnp.argmax(logits, axis=-1).astype(jnp.int32)
        )

    return lower(generate, gpt_params(2), s32(BATCH, 4))


@graph("gpt2-generate-sample")
def gpt2_generate_sample():
    """Sampling by top-k, then nucleus (top-p), with a key folded in at each step."""

    def generate(params, prompt, key_data, temperature):
        key = jax.random.wrap_key_data(key_data)

        def choose(logits, position):
            values, candidates = lax.top_k(logits / temperature, 20)
            mass_before = jnp.cumsum(jax.nn.softmax(values), axis=-1) - jax.nn.softmax(values)
            nucleus = jnp.where(mass_before < 0.9, values, -jnp.inf)
            drawn = jax.random.categorical(jax.random.fold_in(key, position), nucleus)
            return jnp.take_along_axis(candidates, drawn[:, None], axis=-1)[:, 0]

        return gpt_generate(params, prompt, choose)

    return lower(generate, gpt_params(2), s32(BATCH, 4), KEY_DATA, f32())


# ------------------------------------------------------- other transformer kinds


def bert_params(layers):
    def block():
        return {
            "attention": attention_params(WIDTH, split_qkv=True),
            "norm1": norm_params(WIDTH),
            "feed_forward": feed_forward_params(WIDTH),
            "norm2": norm_params(WIDTH),
        }

    return {
        "tokens": f32(VOCAB, WIDTH),
        "positions": f32(LENGTH, WIDTH),
        "segments": f32(2, WIDTH),
        "norm": norm_params(WIDTH),
        "blocks": [block() for _ in range(layers)],
        "pooler": dense_params(WIDTH, WIDTH),
        "next_sentence": dense_params(WIDTH, 2),
        "transform": dense_params(WIDTH, WIDTH),
        "transform_norm": norm_params(WIDTH),
        "head_bias": f32(VOCAB),
    }


def bert_forward(params, tokens, segments):
    """Logits of the masked tokens and of "is this the next sentence"; token 0 is padding."""
    x = jnp.take(params["tokens"], tokens, axis=0) + params["positions"]
    x = layer_norm(params["norm"], x + jax.nn.one_hot(segments, 2) @ params["segments"])
    mask = (tokens != 0)[:, None, None, :]
    for p in params["blocks"]:
        x = layer_norm(p["norm1"], x + attention(p["attention"], x, mask))
        x = layer_norm(p["norm2"], x + feed_forward(p["feed_forward"], x, activation=exact_gelu))
    pooled = jnp.tanh(dense(params["pooler"], x[:, 0]))
    transformed = layer_norm(params["transform_norm"], exact_gelu(dense(params["transform"], x)))
    return transformed @ params["tokens"].T + params["head_bias"], dense(
        params["next_sentence"], pooled
    )


def bert_loss(params, tokens, segments, labels, is_next):
    """Masked-token loss where a label is given (others are -1), plus next-sentence loss."""
    token_logits, next_logits = bert_forward(params, tokens, segments)
    masked = cross_entropy(token_logits, jnp.maximum(labels, 0), (labels >= 0).astype(jnp.float32))
    return masked + cross_entropy(next_logits, is_next.astype(jnp.int32), jnp.ones(BATCH))


@graph("bert-forward")
def bert_forward_graph():
    """An encoder: post-norm blocks, padding mask, exact gelu (erf), two heads."""
    return lower(bert_forward, bert_params(2), s32(BATCH, LENGTH), s32(BATCH, LENGTH))


@graph("bert-train")
def bert_train():
    """Pre-training step of that encoder: masked tokens and next sentence, AdamW."""
    params = bert_params(2)
    tokens, is_next = s32(BATCH, LENGTH), jax.ShapeDtypeStruct((BATCH,), jnp.bool_)
    return lower(
        adamw_step(bert_loss), params, adamw_state(params), tokens, tokens, tokens, is_next
    )


@graph("vit-forward")
def vit_forward():
    """A vision transformer: patches by strided convolution, class token by concatenate."""
    image, patch, classes = 16, 4, 10
    patches = (image // patch) ** 2
    params = {
        "patch_kernel": f32(patch, patch, 3, WIDTH),
        "patch_bias": f32(WIDTH),
        "class_token": f32(1, 1, WIDTH),
        "positions": f32(1, patches + 1, WIDTH),
        "blocks": [gpt_block_params() for _ in range(3)],
        "norm": norm_params(WIDTH),
        "head": dense_params(WIDTH, classes),
    }

    def forward(params, images):
        x = (
            convolve(images, params["patch_kernel"], stride=patch, padding="VALID")
            + params["patch_bias"]
        )
        x = x.reshape(BATCH, patches, WIDTH)
        class_token = jnp.broadcast_to(params["class_token"], (BATCH, 1, WIDTH))
        x = jnp.concatenate([class_token, x], axis=1) + params["positions"]
        for p in params["blocks"]:
            x = gpt_block(p, x, mask=None)
        return dense(params["head"], layer_norm(params["norm"], x)[:, 0])

    return lower(forward, params, f32(BATCH, image, image, 3))


@graph("moe-forward")
def moe_forward():
    """Mixture of experts: top-2 routing, one-hot dispatch under a capacity limit."""
    experts, chosen, tokens, capacity = 4, 2, BATCH * LENGTH, 20
    params = {
        "router": f32(WIDTH, experts),
        "up": f32(experts, WIDTH, 2 * WIDTH),
        "down": f32(experts, 2 * WIDTH, WIDTH),
    }

    def forward(params, x):
        flat = x.reshape(tokens, WIDTH)
        probabilities = jax.nn.softmax(flat @ params["router"])
        gates, indices = lax.top_k(probabilities, chosen)
        gates = gates / jnp.sum(gates, axis=-1, keepdims=True)
        # A token's slot at its expert: how many requests for that expert came before.
        requests = jax.nn.one_hot(indices.T.reshape(-1), experts, dtype=jnp.int32)
        slots = (
            jnp.sum((jnp.cumsum(requests, axis=0) - 1) * requests, axis=-1)
            .reshape(chosen, tokens)
            .T
        )
        dispatch = (
            jax.nn.one_hot(indices, experts)[..., None]
            * jax.nn.one_hot(slots, capacity)[:, :, None, :]
        )
        expert_inputs = jnp.einsum("tkec,td->ecd", dispatch, flat)
        hidden = jax.nn.silu(jnp.einsum("ecd,edf->ecf", expert_inputs, params["up"]))
        expert_outputs = jnp.einsum("ecf,efd->ecd", hidden, params["down"])
        mixed = jnp.einsum("tkec,tk,ecd->td", dispatch, gates, expert_outputs)
        share = jnp.mean(jax.nn.one_hot(indices[:, 0], experts), axis=0)
        balance_loss = experts * jnp.sum(share * jnp.mean(probabilities, axis=0))
        return x + mixed.reshape(x.shape), balance_loss

    return lower(forward, params, f32(BATCH, LENGTH, WIDTH))


# ----------------------------------------------------------------------- images


def convolve(x, kernel, stride=1, padding="SAME"):
    return lax.conv_general_dilated(
        x, kernel, (stride, stride), padding, dimension_numbers=("NHWC", "HWIO", "NHWC")
    )


def max_pool(x):
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, 3, 3, 1), (1, 2, 2, 1), "SAME")


RESNET_STAGES = ((16, 1), (32, 2))  # Channels and stride of each stage.


def resnet_params():
    """Parameters, and the running statistics of each batch norm."""
    params, stats = {}, {}

    def add_convolution(name, size, inputs, outputs):
        params[name] = {"kernel": f32(size, size, inputs, outputs), **norm_params(outputs)}
        stats[name] = {"mean": f32(outputs), "variance": f32(outputs)}

    channels = RESNET_STAGES[0][0]
    add_convolution("stem", 7, 3, channels)
    for stage, (width, stride) in enumerate(RESNET_STAGES):
        for block in range(2):
            add_convolution(f"{stage}.{block}.first", 3, channels, width)
            add_convolution(f"{stage}.{block}.second", 3, width, width)
            if block == 0 and stride > 1:
                add_convolution(f"{stage}.{block}.shortcut", 1, channels, width)
            channels = width
    params["head"] = dense_params(channels, 10)
    return params, stats


def resnet_forward(params, stats, images, training):
    """Logits and the batch-norm statistics to carry into the next step."""
    updated = {}

    def convolve_and_norm(name, x, stride=1):
        p, old = params[name], stats[name]
        x = convolve(x, p["kernel"], stride)
        mean, variance = old["mean"], old["variance"]
        if training:
            mean = jnp.mean(x, axis=(0, 1, 2))
            variance = jnp.mean(jnp.square(x), axis=(0, 1, 2)) - jnp.square(mean)
            now = {"mean": mean, "variance": variance}
            updated[name] = jax.tree.map(
                lambda o, n: 0.9 * o + 0.1 * lax.stop_gradient(n), old, now
            )
        return (x - mean) * (lax.rsqrt(variance + 1e-5) * p["scale"]) + p["bias"]

    x = max_pool(jax.nn.relu(convolve_and_norm("stem", images, 2)))
    for stage, (_, stride) in enumerate(RESNET_STAGES):
        for block in range(2):
            name = f"{stage}.{block}"
            step = stride if block == 0 else 1
            y = jax.nn.relu(convolve_and_norm(f"{name}.first", x, step))
            y = convolve_and_norm(f"{name}.second", y)
            x = (
                convolve_and_norm(f"{name}.shortcut", x, step)
                if f"{name}.shortcut" in params
                else x
            )
            x = jax.nn.relu(x + y)
    return dense(params["head"], jnp.mean(x, axis=(1, 2))), updated


@graph("resnet-forward")
def resnet_forward_graph():
    """Inference of a residual CNN: convolutions, stored batch-norm statistics, max pool."""
    params, stats = resnet_params()

    def forward(params, stats, images):
        return resnet_forward(params, stats, images, training=False)[0]

    return lower(forward, params, stats, f32(BATCH, 32, 32, 3))


@graph("resnet-train")
def resnet_train():
    """Its training step: statistics carried in and out, select-and-scatter, momentum."""
    params, stats = resnet_params()

    def step(params, velocity, stats, images, labels):
        def loss(params):
            logits, updated = resnet_forward(params, stats, images, training=True)
            return cross_entropy(logits, labels, jnp.ones(BATCH)), updated

        (value, updated), gradients = jax.value_and_grad(loss, has_aux=True)(params)
        params, velocity = momentum(gradients, velocity, params)
        return params, velocity, updated, value

    return lower(step, params, params, stats, f32(BATCH, 32, 32, 3), s32(BATCH))


# ----------------------------------------------------- small and recurrent models


def mlp_logits(params, x):
    for p in params[:-1]:
        x = jax.nn.relu(dense(p, x))
    return dense(params[-1], x)


def mlp_forward(params, x):
    return jax.nn.softmax(mlp_logits(params, x))


MLP_PARAMS = [dense_params(16, 32), dense_params(32, 32), dense_params(32, 10)]
MLP_BATCH = 8


def mlp_loss(params, x, labels):
    return cross_entropy(mlp_logits(params, x), labels, jnp.ones(MLP_BATCH))


def mlp_step(params, velocity, x, labels):
    value, gradients = jax.value_and_grad(mlp_loss)(params, x, labels)
    return *momentum(gradients, velocity, params), value


@graph("mlp-train")
def mlp_train():
    """Momentum step of a three-layer perceptron: the smallest training graph."""
    return lower(mlp_step, MLP_PARAMS, MLP_PARAMS, f32(MLP_BATCH, 16), s32(MLP_BATCH))


@graph("donated-train")
def donated_train():
    """The same step with donated parameters: the module has input_output_alias."""
    return lower(
        mlp_step, MLP_PARAMS, MLP_PARAMS, f32(MLP_BATCH, 16), s32(MLP_BATCH), donate=(0, 1)
    )


@graph("lstm-scan-train")
def lstm_scan_train():
    """A recurrent language model: a while loop forward, and one backward."""
    params = {
        "tokens": f32(VOCAB, WIDTH),
        "cell": dense_params(2 * WIDTH, 4 * WIDTH),
        "head": dense_params(WIDTH, VOCAB),
    }

    def loss(params, tokens):
        def advance(carry, x):
            hidden, memory = carry
            joined = dense(params["cell"], jnp.concatenate([x, hidden], axis=-1))
            enter, forget, leave, candidate = jnp.split(joined, 4, axis=-1)
            memory = jax.nn.sigmoid(forget + 1) * memory + jax.nn.sigmoid(enter) * jnp.tanh(
                candidate
            )
            hidden = jax.nn.sigmoid(leave) * jnp.tanh(memory)
            return (hidden, memory), hidden

        embedded = jnp.take(params["tokens"], tokens.T, axis=0)
        start = jnp.zeros((BATCH, WIDTH))
        _, hidden = lax.scan(advance, (start, start), embedded)
        return next_token_loss(dense(params["head"], hidden.swapaxes(0, 1)), tokens)

    return lower(adamw_step(loss), params, adamw_state(params), s32(BATCH, LENGTH))


# ----------------------------------------------------------------- control flow


@graph("conditional")
def conditional():
    """lax.cond skips an update whose gradient is not finite; lax.switch picks a schedule."""

    def step(params, velocity, x, labels, schedule, time):
        gradients = jax.grad(mlp_loss)(params, x, labels)
        rate = lax.switch(
            schedule,
            [
                lambda t: 0.1 * jnp.exp(-t / 100),
                lambda t: 0.1 / jnp.sqrt(t + 1),
                lambda t: 0.1 * jnp.cos(t / 100),
            ],
            time,
        )
        finite = functools.reduce(
            jnp.logical_and, [jnp.all(jnp.isfinite(g)) for g in jax.tree.leaves(gradients)]
        )
        return lax.cond(
            finite,
            lambda: momentum(gradients, velocity, params, rate),
            lambda: (params, jax.tree.map(jnp.zeros_like, velocity)),
        )

    return lower(step, MLP_PARAMS, MLP_PARAMS, f32(MLP_BATCH, 16), s32(MLP_BATCH), s32(), f32())


@graph("nested-while")
def nested_while():
    """Power iteration with deflation: a while loop of unknown length inside a counted one."""
    size, wanted = 16, 4

    def eigenpairs(matrix, start):
        symmetric = matrix @ matrix.T

        def unconverged(state):
            count, vector, previous = state
            return (count < 50) & (jnp.max(jnp.abs(vector - previous)) > 1e-4)

        def find_one(index, carry):
            values, vectors, remaining = carry

            def improve(state):
                count, vector, _ = state
                moved = remaining @ vector
                return count + 1, moved / (jnp.linalg.norm(moved) + 1e-6), vector

            _, vector, _ = lax.while_loop(unconverged, improve, (0, start, jnp.zeros_like(start)))
            value = vector @ remaining @ vector
            remaining = remaining - value * jnp.outer(vector, vector)
            return values.at[index].set(value), vectors.at[index].set(vector), remaining

        values, vectors, _ = lax.fori_loop(
            0, wanted, find_one, (jnp.zeros(wanted), jnp.zeros((wanted, size)), symmetric)
        )
        return values, vectors

    return lower(eigenpairs, f32(size, size), f32(size))


# ----------------------------------------------------------------- rare opcodes


@graph("cholesky-solve")
def cholesky_solve():
    """Gaussian-process posterior; lowered for TPU, where cholesky stays an HLO opcode."""
    known, asked = 12, 5

    def kernel(a, b):
        distances = jnp.sum(jnp.square(a[:, None] - b[None]), axis=-1)
        return jnp.exp(-0.5 * distances)

    def posterior(x, y, queries):
        lower_factor = lax.linalg.cholesky(kernel(x, x) + 0.1 * jnp.eye(known))
        cross = kernel(x, queries)
        solve = functools.partial(
            lax.linalg.triangular_solve, lower_factor, left_side=True, lower=True
        )
        weights = solve(solve(y[:, None]), transpose_a=True)
        half = solve(cross)
        evidence = -0.5 * jnp.sum(y * weights[:, 0]) - jnp.sum(jnp.log(jnp.diagonal(lower_factor)))
        return (cross.T @ weights)[:, 0], kernel(queries, queries) - half.T @ half, evidence

    return lower(posterior, f32(known, 3), f32(known), f32(asked, 3), platform="tpu")


@graph("custom-call")
def custom_call():
    """QR and eigh on CPU are calls into LAPACK, which no pass may touch or run twice."""

    def decompose(matrix, right):
        q, r = jnp.linalg.qr(matrix)
        values, vectors = jnp.linalg.eigh(matrix.T @ matrix)
        return (
            q @ r - matrix,
            q.T @ right,
            vectors * values,
            jnp.sum(jnp.log(jnp.abs(values) + 1.0)),
        )

    return lower(decompose, f32(8, 8), f32(8, 3))


@graph("fft")
def fft():
    """A Fourier layer (rfft, weights on low modes, irfft) and a 2-D fft round trip."""
    modes, samples, channels = 6, 32, 8

    def layer(x, weights_real, weights_imaginary, grid):
        spectrum = jnp.fft.rfft(x, axis=1)[:, :modes]
        mixed = jnp.einsum("bmi,mio->bmo", spectrum, lax.complex(weights_real, weights_imaginary))
        padded = jnp.pad(mixed, ((0, 0), (0, samples // 2 + 1 - modes), (0, 0)))
        spectrum2 = jnp.fft.fft2(grid)
        lowpass = jnp.where(jnp.abs(spectrum2) > 1.0, spectrum2, 0)
        return x + jnp.fft.irfft(padded, n=samples, axis=1), jnp.real(jnp.fft.ifft2(lowpass))

    weights = f32(modes, channels, channels)
    return lower(layer, f32(BATCH, samples, channels), weights, weights, f32(8, 8))


@graph("sort-topk")
def sort_topk():
    """Sorts of one, two and three operands, top-k, ranks and a median."""

    def rank(scores, labels, times):
        best, places = lax.top_k(scores, 5)
        by_score, labels_by_score = lax.sort((scores, labels), dimension=1, num_keys=1)
        lexical = lax.sort((labels, scores, times), dimension=0, num_keys=2, is_stable=True)
        ranks = jnp.argsort(jnp.argsort(-scores, axis=-1), axis=-1)
        return (
            best,
            places,
            by_score,
            labels_by_score,
            lexical,
            ranks,
            jnp.median(times, axis=1),
            jnp.sort(times, axis=0),
        )

    return lower(rank, f32(4, 24), s32(4, 24), f32(4, 24))


@graph("gather-batched")
def gather_batched():
    """vmapped gathers: operand_batching_dims, which some passes cannot read."""

    def pick(table, rows, columns, starts):
        by_row = jax.vmap(lambda t, r: t[r])(table, rows)
        along = jnp.take_along_axis(table, columns, axis=2)
        windows = jax.vmap(lambda t, s: lax.dynamic_slice(t, (s, 0), (3, 8)))(table, starts)
        deep = jax.vmap(jax.vmap(lambda t, c: t[c]))(table, columns)
        clipped = jax.vmap(lambda t, r: t.at[r].get(mode="fill", fill_value=-1.0))(table, rows)
        return by_row + clipped, along * deep, jnp.sum(windows, axis=1)

    return lower(pick, f32(4, 10, 8), s32(4, 6), s32(4, 10, 5), s32(4))


@graph("scatter-batched")
def scatter_batched():
    """vmapped scatters (set, add, max, multiply, window): input_batching_dims."""

    def write(table, rows, updates, starts, block):
        added = jax.vmap(lambda t, r, u: t.at[r].add(u))(table, rows, updates)
        largest = jax.vmap(lambda t, r, u: t.at[r].max(u, mode="drop"))(added, rows, updates)
        scaled = jax.vmap(lambda t, r: t.at[r, 0].multiply(2.0))(largest, rows)
        window = jax.vmap(lambda t, s, b: lax.dynamic_update_slice(t, b, (s, 0)))(
            scaled, starts, block
        )
        return window, jax.vmap(lambda t, s: t.at[s].set(0.0))(window, starts)

    return lower(write, f32(4, 10, 8), s32(4, 6), f32(4, 6, 8), s32(4), f32(4, 3, 8))


@graph("dynamic-slice")
def dynamic_slice():
    """Slices and updates at positions known only at run time: a ring buffer and a crop."""

    def step(ring, entry, position, image, corner):
        ring = lax.dynamic_update_index_in_dim(ring, entry, position % ring.shape[0], axis=0)
        newest_first = jnp.roll(ring, -position, axis=0)[::-1]
        crop = lax.dynamic_slice(image, (corner[0], corner[1], 0), (8, 8, 3))
        patched = lax.dynamic_update_slice(image, 1.0 - crop, (corner[1], corner[0], 0))
        return ring, jnp.cumsum(newest_first, axis=0)[-1], patched, jnp.mean(crop, axis=(0, 1))

    return lower(step, f32(6, 8), f32(8), s32(), f32(16, 16, 3), s32(2))


@graph("rng-bits")
def rng_bits():
    """The `rbg` generator: rng-bit-generator for uniform, normal, integer and permuted draws."""

    def draw(seed):
        uniform_key, normal_key, integer_key, order_key = jax.random.split(
            jax.random.key(seed, impl="rbg"), 4
        )
        return (
            jax.random.uniform(uniform_key, (4, 8)),
            jax.random.normal(normal_key, (4, 8)),
            jax.random.randint(integer_key, (16,), 0, 10),
            jax.random.permutation(order_key, 16),
        )

    return lower(draw, s32())


@graph("int-ops")
def int_ops():
    """Integer arithmetic, bit operations, population counts, comparisons, narrow types."""

    def mix(a, b, bits):
        hashed = (bits ^ (bits >> 16)) * jnp.uint32(0x85EBCA6B)
        hashed = hashed ^ lax.shift_right_logical(hashed, jnp.uint32(13))
        rotated = (hashed << 5) | (hashed >> 27)
        counted = lax.population_count(rotated) + lax.clz(rotated)
        quotient, remainder = jnp.divmod(a, jnp.where(b == 0, 1, b))
        bounded = lax.clamp(-5, a - b, 5)
        order = (a < b).astype(jnp.int32) - (a > b).astype(jnp.int32)
        either = jnp.logical_xor(a >= 0, b <= 0) | ~(a != b)
        narrow = (a.astype(jnp.int8) + b.astype(jnp.int8)).astype(jnp.int32) & 0x0F
        reinterpreted = lax.bitcast_convert_type(a, jnp.float32)
        parity = functools.reduce(
            jnp.bitwise_xor, [a, b, lax.shift_right_arithmetic(a, 3), jnp.sign(a), jnp.abs(b)]
        )
        return (
            counted,
            quotient,
            remainder,
            bounded,
            order,
            either,
            narrow,
            jnp.isnan(reinterpreted),
            parity,
            a**3,
        )

    return lower(mix, s32(32), s32(32), u32(32))


@graph("complex-ops")
def complex_ops():
    """Complex arithmetic: real, imag, exponentials, a product, and its gradient."""

    def evolve(real, imaginary, time):
        state = lax.complex(real, imaginary)
        hamiltonian = state + jnp.conj(state).T
        turned = jnp.exp(1j * time * jnp.real(jnp.diagonal(hamiltonian)))[:, None] * state
        product = jnp.conj(turned).T @ turned
        phase = jnp.angle(product + (1.0 + 0.5j))
        energy = jax.grad(lambda r: jnp.sum(jnp.abs(lax.complex(r, imaginary) ** 2 + 1.0)))(real)
        return (
            jnp.real(product),
            jnp.imag(product),
            phase,
            jnp.sqrt(turned + 2.0),
            jnp.log(turned + 3.0),
            energy,
        )

    return lower(evolve, f32(6, 6), f32(6, 6), f32())


@graph("collectives")
def collectives():
    """shard_map over 4 devices: all-reduce, all-gather, reduce-scatter, permute, all-to-all."""
    mesh = Mesh(jax.devices()[:4], ("shards",))
    sharded, whole = PartitionSpec("shards"), PartitionSpec()

    def step(weights, x):
        full = lax.all_gather(weights, "shards", tiled=True)
        hidden = jnp.tanh(x @ full)
        gradient = lax.psum_scatter(x.T @ hidden, "shards", tiled=True)
        neighbour = lax.ppermute(gradient, "shards", [(i, (i + 1) % 4) for i in range(4)])
        swapped = lax.all_to_all(hidden, "shards", split_axis=1, concat_axis=0, tiled=True)
        loss = lax.pmean(jnp.sum(jnp.square(hidden)), "shards")
        largest = lax.pmax(jnp.max(jnp.abs(swapped)), "shards")
        rank = lax.axis_index("shards").astype(jnp.float32)
        return weights - 0.1 * gradient + 0.01 * rank * neighbour, loss + largest

    mapped = jax.shard_map(step, mesh=mesh, in_specs=(sharded, sharded), out_specs=(sharded, whole))
    return lower(mapped, f32(16, 8), f32(8, 16))


@graph("reduce-window-cumsum")
def reduce_window_cumsum():
    """Windowed reductions: cumulative sum, product and maximum, average and max pools."""

    def windows(series, image):
        sums = jnp.cumsum(series, axis=1)
        moving = lax.reduce_window(series, 0.0, lax.add, (1, 4), (1, 1), "VALID") / 4
        pooled = lax.reduce_window(image, 0.0, lax.add, (1, 2, 2, 1), (1, 2, 2, 1), "VALID") / 4
        dilated = lax.reduce_window(
            image,
            -jnp.inf,
            lax.max,
            (1, 3, 3, 1),
            (1, 1, 1, 1),
            "SAME",
            window_dilation=(1, 2, 2, 1),
        )
        return (
            sums,
            jnp.cumprod(series, axis=0),
            lax.cummax(series, axis=1, reverse=True),
            moving,
            pooled,
            dilated,
        )

    return lower(windows, f32(4, 16), f32(BATCH, 8, 8, 3))


@graph("pad-concat-reverse")
def pad_concat_reverse():
    """Data movement: pads (edge, negative, interior), concatenates, reverses, transposes."""

    def move(x, y):
        mirrored = jnp.concatenate([x[:, ::-1], x, y], axis=1)
        framed = jnp.pad(mirrored, ((1, 1), (2, 2)), mode="edge")
        spread = lax.pad(x, 0.0, ((-1, 0, 0), (1, 2, 1)))
        tiled = jnp.tile(y.T, (2, 1)).reshape(-1, 4)
        return (
            jnp.flip(framed, axis=(0, 1)),
            spread,
            jnp.stack([tiled, tiled[::-1]]),
            jnp.rot90(x[:, :4]),
        )

    return lower(move, f32(4, 8), f32(4, 6))


# ---------------------------------------------------------------------- formats


def varint(number):
    """Protocol buffers' encoding of a non-negative integer."""
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)


def formats():
    """One graph, the forward pass of an MLP, in each input format: file name to bytes."""
    arguments = MLP_PARAMS, f32(MLP_BATCH, 16)
    lowered = lower(mlp_forward, *arguments)
    text = hlo_text(lowered)
    # Made from the text, the proto carries no metadata either.
    module = _hlo.hlo_module_from_text(text).as_serialized_hlo_module_proto()
    exported = jax.export.export(jax.jit(mlp_forward))(*arguments)
    return {
        "mlp.hlo": text.encode(),
        "mlp.hlo.gz": gzip.compress(text.encode(), mtime=0),
        "mlp.pb": module,
        "mlp.pb.zst": compress(module),
        # Field 1 of HloProto is the module, a length-delimited message: tag 0x0A.
        "mlp.hlo_proto.pb": b"\x0a" + varint(len(module)) + module,
        "mlp.stablehlo.mlir": lowered.as_text().encode(),
        "mlp.stablehlo.bc": exported.mlir_module_serialized,
    }


# ----------------------------------------------------------------------- output


def hlo_text(lowered):
    """Complete, reparsable HLO text: every constant printed, no metadata."""
    options = _hlo.HloPrintOptions()
    options.print_large_constants = True
    options.print_metadata = False
    options.print_percent = False
    options.print_operand_shape = False
    options.print_program_shape = False
    text = lowered.compiler_ir("hlo").as_hlo_module().to_string(options)
    for forbidden in ("metadata=", "source_file", ".py", "{...}"):
        if forbidden in text:
            raise ValueError(f"HLO text holds {forbidden!r}")
    return text


def compress(data):
    return zstandard.ZstdCompressor(level=19).compress(data)


def instruction_count(text):
    return len(re.findall(r"^\s+(?:ROOT )?\S+ = ", text, re.MULTILINE))


README = """\
# Test data

Small HLO graphs for tests and examples. They are generated; do not edit them by hand.
`tools/make_test_graphs.py` writes this folder, this file included:

    python -m venv .graphs-env && .graphs-env/bin/pip install -r tools/test-graphs-requirements.txt
    .graphs-env/bin/python tools/make_test_graphs.py

The pinned versions give the same bytes each time. The graphs come from JAX, lowered and not
compiled, with every constant in full and without metadata (no local paths). Widths are tiny, so
a graph runs in milliseconds; passes react to structure, not to widths.

## graphs/NAME.hlo.zst: unoptimised HLO text, zstd

Instructions are those of all computations.

| name | instructions | what it is for |
|---|---:|---|
{rows}

All but two compile and run on one CPU (`cholesky-solve` too, though lowered for TPU):
`custom-call` needs the LAPACK handlers that jaxlib registers, and `collectives` needs four
partitions, a number that HLO text from JAX does not carry.

## formats/: the forward pass of an MLP in each input format

| file | content |
|---|---|
| `mlp.hlo`, `mlp.hlo.gz` | HLO text, plain and gzip |
| `mlp.pb`, `mlp.pb.zst` | serialized HloModuleProto, plain and zstd |
| `mlp.hlo_proto.pb` | HloProto around the same module |
| `mlp.stablehlo.mlir` | StableHLO text |
| `mlp.stablehlo.bc` | StableHLO portable bytecode, as jax.export writes it |

## toy/NAME.toy: programs of the toy compiler

`python3 tools/make_toy_programs.py` writes them, the same bytes each time. A program is the line `toy`
and then one instruction a line, whose operands are the numbers of earlier lines; the last line is the result.
On all but `minimal` some orders are better than the toy's own (`crates/toy-profile/tests/toy.rs`).

| name | lines | what it is for |
|---|---:|---|
| `minimal` | 10 | Nothing can be removed: where a default reduces nothing, a ratio means nothing. |
| `strides` | 23 | Offsets made of constants: only after `fold` is there an `x * 1` or `x + 0` to simplify. |
| `turns` | 35 | Signs turned again and again, with copies between: `simplify` and `copy-elim` in turns. |
| `polynomial` | 36 | Every term takes its power from the start: `dedup` finds one factor more in each round. |
| `trees` | 47 | The same tree of sums three times: as many rounds of `dedup` and `copy-elim` as it is deep. |
| `distances` | 119 | Squares of differences: lowered by hand before `dedup`, all negations share one `-1`. |
| `cancels` | 14 | Sums of `x + -x` of the same `x`: `cancel` is right here, if it comes before `lower`. |
| `tempting` | 20 | What looks like `x + -x` is `x + -y`: the shortest program that `cancel` leads to is wrong. |
| `leftovers` | 62 | Half of it is read by nobody, some of that only after other passes: `dead` first and last. |
| `matrices` | 80 | The trace of A * I * A for a matrix of 3 by 3, with every zero and one of I written out. |
| `filters` | 171 | Two passes of a filter over ten samples, its weights computed anew for each of them. |
| `anything` | 180 | 180 random lines: what nobody wrote with a pass in mind. |
"""


def main():
    root = pathlib.Path(__file__).resolve().parent.parent / "testdata"
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--out", type=pathlib.Path, default=root, help="folder to write (default: testdata/)"
    )
    parser.add_argument(
        "--only", nargs="+", choices=sorted(GRAPHS), help="write these graphs and nothing else"
    )
    options = parser.parse_args()
    (options.out / "graphs").mkdir(parents=True, exist_ok=True)
    (options.out / "formats").mkdir(exist_ok=True)

    rows = []
    for name in options.only or GRAPHS:
        text = hlo_text(GRAPHS[name]())
        (options.out / "graphs" / f"{name}.hlo.zst").write_bytes(compress(text.encode()))
        rows.append(f"| `{name}` | {instruction_count(text):,} | {GRAPHS[name].__doc__} |")
        print(rows[-1])
    if options.only:
        return
    for name, data in formats().items():
        (options.out / "formats" / name).write_bytes(data)
    (options.out / "README.md").write_text(README.format(rows="\n".join(rows)))


if __name__ == "__main__":
    main()
