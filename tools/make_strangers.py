#!/usr/bin/env python3
"""Writes the emitted programs of testdata/strangers/: kinds of program that no data set here has.

    python3.11 -m venv .strangers-env
    .strangers-env/bin/pip install jax==0.6.2 jaxlib==0.6.2 ml_dtypes==0.6.0 numpy==2.4.6 \
        opt_einsum==3.4.0 scipy==1.17.1 zstandard==0.25.0
    .strangers-env/bin/python tools/make_strangers.py

That JAX is older than the one behind data/hlo-v1 and testdata/graphs, so the programs
are strange in two ways: in what they compute, and in who emitted them. Widths are tiny. The
same versions give the same bytes. The other programs of the folder are written by hand.
"""

import argparse
import functools
import gzip
import math
import pathlib
from collections.abc import Callable

import jax
import jax.numpy as jnp
import zstandard
from jax import lax
from jaxlib import _jax

jax.config.update("jax_platforms", "cpu")
# Locations hold local file paths; none may reach a file that we publish.
jax.config.update("jax_traceback_in_locations_limit", 0)

VERSION = "0.6.2"
PROGRAMS: dict[str, Callable] = {}


def program(file):
    """Registers a function that returns the lowered program of `file`; the name says the format."""

    def register(build):
        PROGRAMS[file] = build
        return build

    return register


def lower(function, *arguments):
    return jax.jit(function).trace(*arguments).lower(lowering_platforms=("cpu",))


def abstract(*shape, dtype=jnp.float32):
    """An argument of which only the shape is known."""
    return jax.ShapeDtypeStruct(shape, dtype)


# --------------------------------------------------------------------- programs


@program("wavenet-train.hlo.zst")
def wavenet_train():
    """Dilated causal convolutions with gates and skips, mu-law classes, one RMSprop step."""
    width, classes, dilations = 8, 16, (1, 2, 4, 8, 1, 2)
    layer = {
        "filter": abstract(2, width, width),
        "gate": abstract(2, width, width),
        "out": abstract(1, width, width),
        "skip": abstract(1, width, width),
    }
    params = {
        "embed": abstract(classes, width),
        "layers": [layer for _ in dilations],
        "head": [abstract(1, width, width), abstract(1, width, classes)],
    }

    def conv(x, kernel, dilation=1):
        past = (kernel.shape[0] - 1) * dilation
        return lax.conv_general_dilated(
            x, kernel, (1,), [(past, 0)], rhs_dilation=(dilation,),
            dimension_numbers=("NWC", "WIO", "NWC"),
        )  # fmt: skip

    def loss(params, wave):
        compressed = jnp.sign(wave) * jnp.log1p(255 * jnp.abs(wave)) / math.log(256)
        codes = jnp.clip((compressed + 1) / 2 * classes, 0, classes - 1).astype(jnp.int32)
        x = params["embed"][codes]
        skips = 0
        for p, dilation in zip(params["layers"], dilations, strict=True):
            hidden = jnp.tanh(conv(x, p["filter"], dilation))
            hidden = hidden * jax.nn.sigmoid(conv(x, p["gate"], dilation))
            x = x + conv(hidden, p["out"])
            skips = skips + conv(hidden, p["skip"])
        logits = conv(jax.nn.relu(conv(jax.nn.relu(skips), params["head"][0])), params["head"][1])
        chosen = jax.nn.log_softmax(logits[:, :-1]) * jax.nn.one_hot(codes[:, 1:], classes)
        return -jnp.mean(jnp.sum(chosen, axis=-1))

    def train(params, squares, wave):
        value, gradients = jax.value_and_grad(loss)(params, wave)
        squares = jax.tree.map(lambda s, g: 0.9 * s + 0.1 * g * g, squares, gradients)
        params = jax.tree.map(
            lambda p, s, g: p - 1e-3 * g / jnp.sqrt(s + 1e-8), params, squares, gradients
        )
        return params, squares, value

    return lower(train, params, params, abstract(2, 32))


@program("sinkhorn.hlo")
def sinkhorn():
    """Optimal transport between two clouds of points: Sinkhorn's iteration until it settles."""

    def transport(x, y, weights_x, weights_y):
        cost = jnp.sum((x[:, None] - y[None, :]) ** 2, axis=-1)
        log_x, log_y, reach = jnp.log(weights_x**2 + 1e-3), jnp.log(weights_y**2 + 1e-3), 0.5
        log_x, log_y = jax.nn.log_softmax(log_x), jax.nn.log_softmax(log_y)

        def soft(potential, marginal, axis):
            inner = (jnp.expand_dims(potential, 1 - axis) - cost) / reach
            return reach * (marginal - jax.scipy.special.logsumexp(inner, axis=axis))

        def step(state):
            f, g, _, count = state
            new_f = soft(g, log_x, axis=1)
            new_g = soft(new_f, log_y, axis=0)
            return new_f, new_g, jnp.max(jnp.abs(new_f - f)), count + 1

        def unsettled(state):
            return (state[2] > 1e-3) & (state[3] < 50)

        start = jnp.zeros(x.shape[0]), jnp.zeros(y.shape[0]), jnp.float32(1), jnp.int32(0)
        f, g, _, count = lax.while_loop(unsettled, step, start)
        plan = jnp.exp((f[:, None] + g[None, :] - cost) / reach)
        return jnp.sum(plan * cost), plan, count

    return lower(transport, abstract(12, 3), abstract(9, 3), abstract(12), abstract(9))


@program("capsule-routing.hlo.zst")
def capsule_routing():
    """Capsules: routing by agreement between layers, margin loss, and its gradient."""

    def squash(vector):
        square = jnp.sum(vector**2, axis=-1, keepdims=True)
        return vector * square / (1 + square) / jnp.sqrt(square + 1e-7)

    def loss(params, image, label):
        kernel, transform = params
        x = lax.conv_general_dilated(
            image, kernel, (2, 2), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC")
        )
        lower_capsules = squash(x.reshape(image.shape[0], -1, 4))
        votes = jnp.einsum("bid,ijdk->bijk", lower_capsules, transform)
        logits = jnp.zeros(votes.shape[:3])
        for _ in range(3):
            couplings = jax.nn.softmax(logits, axis=2)
            upper = squash(jnp.einsum("bij,bijk->bjk", couplings, votes))
            logits = logits + jnp.einsum("bijk,bjk->bij", lax.stop_gradient(votes), upper)
        length = jnp.sqrt(jnp.sum(upper**2, axis=-1) + 1e-7)
        right = jax.nn.one_hot(label, length.shape[1])
        wrong = (1 - right) * jnp.maximum(length - 0.1, 0) ** 2
        return jnp.mean(right * jnp.maximum(0.9 - length, 0) ** 2 + 0.5 * wrong)

    params = abstract(3, 3, 1, 8), abstract(3 * 3 * 2, 5, 4, 6)
    label = abstract(2, dtype=jnp.int32)
    return lower(jax.value_and_grad(loss), params, abstract(2, 8, 8, 1), label)


@program("neural-automaton.hlo")
def neural_automaton():
    """A neural cellular automaton: fixed filters, cells that live and die, a scan over steps."""
    sobel = jnp.array([[-1.0, 0.0, 1.0], [-2.0, 0.0, 2.0], [-1.0, 0.0, 1.0]]) / 8
    point = jnp.zeros((3, 3)).at[1, 1].set(1.0)
    channels = 6

    def filtered(grid):
        bank = jnp.stack([point, sobel, sobel.T], axis=-1)
        kernel = jnp.tile(bank[:, :, None, :], (1, 1, 1, channels))
        return lax.conv_general_dilated(
            grid, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"),
            feature_group_count=channels,
        )  # fmt: skip

    def alive(grid):
        window = (1, 3, 3, 1)
        highest = lax.reduce_window(grid[..., 3:4], -jnp.inf, lax.max, window, (1,) * 4, "SAME")
        return highest > 0.1

    def grow(params, grid, key):
        def step(grid, key):
            before = alive(grid)
            hidden = jax.nn.relu(filtered(grid) @ params["in"] + params["bias"])
            fires = jax.random.uniform(key, grid[..., :1].shape) < 0.5
            grid = grid + (hidden @ params["out"]) * fires
            grid = grid * (before & alive(grid))
            return grid, jnp.mean(grid[..., 3])

        return lax.scan(step, grid, jax.random.split(key, 4))

    params = {
        "in": abstract(3 * channels, 12),
        "bias": abstract(12),
        "out": abstract(12, channels),
    }
    return lower(grow, params, abstract(1, 8, 8, channels), abstract(2, dtype=jnp.uint32))


@program("k-means.hlo")
def k_means():
    """Lloyd's algorithm, started farthest first; empty clusters keep their centres."""

    def cluster(points):
        def distances(centres):
            inner = points @ centres.T
            return jnp.sum(points**2, 1)[:, None] - 2 * inner + jnp.sum(centres**2, 1)[None]

        def pick(i, centres):
            chosen = jnp.arange(centres.shape[0]) < i
            nearest = jnp.min(jnp.where(chosen, distances(centres), jnp.inf), axis=1)
            return centres.at[i].set(points[jnp.argmax(nearest)])

        def refine(_, state):
            centres, _ = state
            label = jnp.argmin(distances(centres), axis=1)
            total = jax.ops.segment_sum(points, label, centres.shape[0])
            size = jax.ops.segment_sum(jnp.ones(points.shape[0]), label, centres.shape[0])
            mean = total / jnp.maximum(size, 1)[:, None]
            return jnp.where(size[:, None] > 0, mean, centres), label

        centres = jnp.zeros((5, points.shape[1])).at[0].set(points[0])
        centres = lax.fori_loop(1, 5, pick, centres)
        state = centres, jnp.zeros(points.shape[0], jnp.int32)
        centres, label = lax.fori_loop(0, 10, refine, state)
        return centres, label, jnp.sum(jnp.min(distances(centres), axis=1))

    return lower(cluster, abstract(40, 3))


@program("mixture-density.hlo")
def mixture_density():
    """A mixture density network: log-likelihood of Gaussians with full factors, and gradient."""
    parts, size = 4, 3

    def loss(params, x, y):
        for weight, bias in params["hidden"]:
            x = jax.nn.swish(x @ weight + bias)
        mix = jax.nn.log_softmax(x @ params["mix"])
        mean = (x @ params["mean"]).reshape(-1, parts, size)
        raw = (x @ params["factor"]).reshape(-1, parts, size, size)
        scale = jax.nn.softplus(jnp.diagonal(raw, axis1=2, axis2=3)) + 1e-2
        factor = jnp.tril(raw, -1) + scale[..., None] * jnp.eye(size)
        white = jnp.einsum("npij,npj->npi", factor, y[:, None] - mean)
        log_density = jnp.sum(jnp.log(scale), -1) - 0.5 * jnp.sum(white**2, -1)
        return -jnp.mean(jax.scipy.special.logsumexp(mix + log_density, axis=1))

    params = {
        "hidden": [(abstract(5, 16), abstract(16)), (abstract(16, 16), abstract(16))],
        "mix": abstract(16, parts),
        "mean": abstract(16, parts * size),
        "factor": abstract(16, parts * size * size),
    }
    return lower(jax.value_and_grad(loss), params, abstract(8, 5), abstract(8, size))


@program("selective-scan.stablehlo.mlir")
def selective_scan():
    """A Mamba-like block: steps that depend on the input, the recurrence by associative scan."""
    width, states = 8, 4

    def block(params, x):
        signal, gate = jnp.split(x @ params["in"], 2, axis=-1)
        padded = jnp.pad(signal, ((0, 0), (2, 0), (0, 0)))
        taps = [padded[:, i : i + x.shape[1]] * params["taps"][i] for i in range(3)]
        signal = jax.nn.silu(functools.reduce(jnp.add, taps))
        step = jax.nn.softplus(signal @ params["step"] + params["step_bias"])
        write, read = signal @ params["write"], signal @ params["read"]
        decay = jnp.exp(-step[..., None] * jnp.exp(params["log_decay"]))
        drive = (step * signal)[..., None] * write[:, :, None, :]

        def join(left, right):
            return left[0] * right[0], left[1] * right[0] + right[1]

        _, state = lax.associative_scan(join, (decay, drive), axis=1)
        mixed = jnp.einsum("blds,bls->bld", state, read) + params["direct"] * signal
        return (mixed * jax.nn.silu(gate)) @ params["out"]

    params = {
        "in": abstract(width, 2 * width),
        "taps": abstract(3, width),
        "step": abstract(width, width),
        "step_bias": abstract(width),
        "write": abstract(width, states),
        "read": abstract(width, states),
        "log_decay": abstract(width, states),
        "direct": abstract(width),
        "out": abstract(width, width),
    }
    return lower(block, params, abstract(2, 16, width))


@program("latent-cache-bf16.hlo")
def latent_cache():
    """One decoding step in bf16: a cache of latents that each head expands, rotated keys beside."""
    width, latent, rotated, heads, size, length = 16, 8, 4, 4, 6, 12

    def rotate(x, position):
        half = x.shape[-1] // 2
        angle = position * 10000.0 ** (-jnp.arange(half) / half)
        left, right = jnp.split(x.astype(jnp.float32), 2, axis=-1)
        turned = left * jnp.cos(angle) - right * jnp.sin(angle)
        other = left * jnp.sin(angle) + right * jnp.cos(angle)
        return jnp.concatenate([turned, other], axis=-1).astype(x.dtype)

    def decode(params, cache, rotated_cache, x, position):
        query = jnp.einsum("bw,whd->bhd", x, params["query"])
        plain, turned = query[..., :size], rotate(query[..., size:], position)
        cache = lax.dynamic_update_slice(cache, (x @ params["down"])[:, None], (0, position, 0))
        key = rotate(x @ params["key"], position)
        rotated_cache = lax.dynamic_update_slice(rotated_cache, key[:, None], (0, position, 0))
        # The expansion of the keys is absorbed into the query.
        absorbed = jnp.einsum("bhd,lhd->bhl", plain, params["up_key"])
        scores = jnp.einsum("bhl,bpl->bhp", absorbed, cache)
        scores = scores + jnp.einsum("bhr,bpr->bhp", turned, rotated_cache)
        scores = scores.astype(jnp.float32) / math.sqrt(size + rotated)
        scores = jnp.where(jnp.arange(length) <= position, scores, -jnp.inf)
        weights = jax.nn.softmax(scores).astype(x.dtype)
        mixed = jnp.einsum("bhp,bpl,lhd->bhd", weights, cache, params["up_value"])
        return jnp.einsum("bhd,hdw->bw", mixed, params["out"]), cache, rotated_cache

    bf16 = functools.partial(abstract, dtype=jnp.bfloat16)
    params = {
        "query": bf16(width, heads, size + rotated),
        "down": bf16(width, latent),
        "key": bf16(width, rotated),
        "up_key": bf16(latent, heads, size),
        "up_value": bf16(latent, heads, size),
        "out": bf16(heads, size, width),
    }
    caches = bf16(2, length, latent), bf16(2, length, rotated)
    return lower(decode, params, *caches, bf16(2, width), abstract(dtype=jnp.int32))


@program("int8-linear.pb")
def int8_linear():
    """Two linear layers in int8 with scales by row and by channel, and int4 weights unpacked."""

    def quantised(x):
        scale = jnp.max(jnp.abs(x), axis=-1, keepdims=True) / 127 + 1e-6
        return jnp.clip(jnp.round(x / scale), -127, 127).astype(jnp.int8), scale

    def linear(x, weight, scale):
        rows, row_scale = quantised(x)
        summed = lax.dot_general(
            rows, weight, (((1,), (0,)), ((), ())), preferred_element_type=jnp.int32
        )
        return summed.astype(jnp.float32) * row_scale * scale

    def forward(x, weight, scale, packed, packed_scale):
        hidden = jax.nn.relu(linear(x, weight, scale))
        low = (packed << 4).astype(jnp.int8) >> 4
        unpacked = jnp.stack([low, packed >> 4], axis=1).reshape(-1, packed.shape[1])
        return linear(hidden, unpacked, packed_scale)

    weights = abstract(16, 24, dtype=jnp.int8), abstract(24)
    packed = abstract(12, 8, dtype=jnp.int8), abstract(8)
    return lower(forward, abstract(4, 16), *weights, *packed)


@program("beam-search.hlo.gz")
def beam_search():
    """One step of beam search: top-k over beams and tokens, n-grams barred, finished kept apart."""
    beams, vocabulary, length = 3, 11, 8

    def step(tokens, scores, finished, finished_scores, logits, position):
        before = jnp.arange(length - 1) < position - 1
        last = jnp.take_along_axis(tokens, jnp.full((2, beams, 1), position - 1), axis=2)
        repeats = (tokens[:, :, :-1] == last) & before
        barred = jnp.any(repeats[..., None] & (tokens[:, :, 1:, None] == jnp.arange(vocabulary)), 2)
        total = scores[..., None] + jax.nn.log_softmax(jnp.where(barred, -1e4, logits))
        best, index = lax.top_k(total.reshape(2, -1), 2 * beams)
        beam, token = index // vocabulary, index % vocabulary
        grown = jnp.take_along_axis(tokens, beam[..., None], axis=1)
        grown = lax.dynamic_update_slice(grown, token[..., None], (0, 0, position))
        ended = token == 0
        scores, kept = lax.top_k(jnp.where(ended, -1e9, best), beams)
        tokens = jnp.take_along_axis(grown, kept[..., None], axis=1)
        penalty = ((5.0 + position) / 6.0) ** 0.6
        both = jnp.concatenate([finished_scores, jnp.where(ended, best / penalty, -1e9)], axis=1)
        finished_scores, kept = lax.top_k(both, beams)
        finished = jnp.concatenate([finished, grown], axis=1)
        finished = jnp.take_along_axis(finished, kept[..., None], axis=1)
        return tokens, scores, finished, finished_scores

    tokens = abstract(2, beams, length, dtype=jnp.int32)
    scores = abstract(2, beams)
    logits = abstract(2, beams, vocabulary)
    return lower(step, tokens, scores, tokens, scores, logits, abstract(dtype=jnp.int32))


@program("holographic-net.stablehlo.bc")
def holographic_net():
    """A complex-valued network: unitary layers by Cayley's map, phases, and its gradient."""

    def loss(params, x, target):
        signal = lax.complex(jnp.cos(x), jnp.sin(x))
        for real, imaginary, bias in params:
            skew = lax.complex(real - real.T, imaginary + imaginary.T) / 8
            # (1 + S)^-1 (1 - S) by its series: there is no complex solver on every backend.
            inverse = jnp.eye(x.shape[1]) - skew + skew @ skew - skew @ skew @ skew
            signal = signal @ (inverse @ (jnp.eye(x.shape[1]) - skew))
            size = jnp.abs(signal) + 1e-6
            signal = signal / size * jax.nn.relu(size + bias)
        bound = jnp.fft.ifft(jnp.fft.fft(signal) * jnp.conj(jnp.fft.fft(target)))
        return jnp.mean(jnp.abs(bound - 1) ** 2)

    params = [(abstract(6, 6), abstract(6, 6), abstract(6)) for _ in range(2)]
    target = abstract(4, 6, dtype=jnp.complex64)
    return lower(jax.value_and_grad(loss), params, abstract(4, 6), target)


# ----------------------------------------------------------------------- output


def hlo_text(lowered):
    """Complete, reparsable HLO text: every constant printed, no metadata."""
    options = _jax.HloPrintOptions()
    options.print_large_constants = True
    options.print_metadata = False
    options.print_percent = False
    options.print_operand_shape = False
    options.print_program_shape = False
    return lowered.compiler_ir("hlo").as_hlo_module().to_string(options)


def in_format(file, lowered):
    """The bytes of `file`, whose ending says which format."""
    if file.endswith(".mlir"):
        return lowered.as_text().encode()
    if file.endswith(".bc"):
        return _jax.mlir.serialize_portable_artifact(lowered.as_text(), "1.10.0")
    text = hlo_text(lowered)
    if file.endswith(".pb"):
        # Made from the text, the proto carries no metadata either.
        return _jax.hlo_module_from_text(text).as_serialized_hlo_module_proto()
    if file.endswith(".gz"):
        return gzip.compress(text.encode(), mtime=0)
    if file.endswith(".zst"):
        return zstandard.ZstdCompressor(level=19).compress(text.encode())
    return text.encode()


def main():
    root = pathlib.Path(__file__).resolve().parent.parent / "testdata" / "strangers"
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--out", type=pathlib.Path, default=root, help="folder (default: testdata/strangers/)"
    )
    options = parser.parse_args()
    if jax.__version__ != VERSION:
        parser.error(f"this is JAX {jax.__version__}, the programs are those of {VERSION}")
    options.out.mkdir(parents=True, exist_ok=True)
    for file, build in PROGRAMS.items():
        data = in_format(file, build())
        for forbidden in (b"metadata=", b"source_file", b".py", b"{...}"):
            if forbidden in data:
                raise ValueError(f"{file} holds {forbidden!r}")
        (options.out / file).write_bytes(data)
        print(f"{file:32} {len(data):7,} bytes  {build.__doc__}")


if __name__ == "__main__":
    main()
