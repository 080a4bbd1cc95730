"""A latent diffusion U-Net guided by text: one denoising step, and training at half the width.

Latents are 64 x 64 x 4, those of a 512 x 512 image; the text is 77 vectors of CLIP's width.
"""

import jax
import jax.numpy as jnp

from families.diffusion import group_norm, group_params
from families.full_size import adamw, full_size, lower_step
from families.layers import (
    TRAIN_LIBRARIES,
    conv,
    conv_params,
    dense,
    dense_params,
    layer_norm,
    norm_params,
)
from lowering import abstract, lower

SIZE, LATENT, TEXT_LENGTH, TEXT_WIDTH, HEAD = 64, 4, 77, 768, 64
MULTIPLIERS = (1, 2, 4)  # The width of each level, which halves the size of the one before.
ATTENTION_FROM = 1  # The first level that attends: 32 x 32.
BLOCKS = 2  # At each level on the way down; one more on the way up.


def block_params(inputs, outputs, time):
    return {
        "norm1": group_params(inputs),
        "conv1": conv_params(3, inputs, outputs),
        "time": dense_params(time, outputs),
        "norm2": group_params(outputs),
        "conv2": conv_params(3, outputs, outputs),
        **({"skip": conv_params(1, inputs, outputs)} if inputs != outputs else {}),
    }


def block(p, x, time):
    y = conv(p["conv1"], jax.nn.silu(group_norm(p["norm1"], x, groups=32)))
    y = y + dense(p["time"], jax.nn.silu(time))[:, None, None]
    y = conv(p["conv2"], jax.nn.silu(group_norm(p["norm2"], y, groups=32)))
    return y + (conv(p["skip"], x) if "skip" in p else x)


def attention_params(width, context):
    return {
        "query": abstract(width, width),
        "key": abstract(context, width),
        "value": abstract(context, width),
        "out": dense_params(width, width),
    }


def attention(p, x, context):
    def heads(x):
        return x.reshape(*x.shape[:2], -1, HEAD)

    query, key = heads(x @ p["query"]), heads(context @ p["key"])
    scores = jnp.einsum("bqhd,bkhd->bhqk", query, key) * HEAD**-0.5
    shares = jax.nn.softmax(scores.astype(jnp.float32), axis=-1).astype(x.dtype)
    mixed = jnp.einsum("bhqk,bkhd->bqhd", shares, heads(context @ p["value"]))
    return dense(p["out"], mixed.reshape(x.shape))


def transformer_params(width):
    return {
        "norm": group_params(width),
        "enter": dense_params(width, width),
        "norms": [norm_params(width) for _ in range(3)],
        "self": attention_params(width, width),
        "cross": attention_params(width, TEXT_WIDTH),
        "up": dense_params(width, 8 * width),
        "down": dense_params(4 * width, width),
        "leave": dense_params(width, width),
    }


def transformer(p, x, text):
    """Pixels attend to pixels, then to the text; then a gated feed-forward network."""
    y = group_norm(p["norm"], x, groups=32).reshape(x.shape[0], -1, x.shape[-1])
    y = dense(p["enter"], y)
    first, second, third = p["norms"]
    z = layer_norm(first, y)
    y = y + attention(p["self"], z, z)
    y = y + attention(p["cross"], layer_norm(second, y), text)
    value, gate = jnp.split(dense(p["up"], layer_norm(third, y)), 2, axis=-1)
    y = y + dense(p["down"], value * jax.nn.gelu(gate))
    return x + dense(p["leave"], y).reshape(x.shape)


def unet_params(base):
    widths = [base * multiplier for multiplier in MULTIPLIERS]
    time, inputs, skips = 4 * base, base, [base]

    def stage(inputs, width, level):
        parts = {"block": block_params(inputs, width, time)}
        return parts | ({"attend": transformer_params(width)} if level >= ATTENTION_FROM else {})

    down, up = [], []
    for level, width in enumerate(widths):
        stages = []
        for _ in range(BLOCKS):
            stages.append(stage(inputs, width, level))
            inputs = width
            skips.append(width)
        down.append({"stages": stages})
        if level + 1 < len(widths):
            down[-1]["shrink"] = conv_params(3, width, width)
            skips.append(width)
    middle = {
        "enter": block_params(inputs, inputs, time),
        "attend": transformer_params(inputs),
        "leave": block_params(inputs, inputs, time),
    }
    for level, width in reversed(list(enumerate(widths))):
        stages = []
        for _ in range(BLOCKS + 1):
            stages.append(stage(inputs + skips.pop(), width, level))
            inputs = width
        up.append({"stages": stages, **({"grow": conv_params(3, width, width)} if level else {})})
    return {
        "time": [dense_params(base, time), dense_params(time, time)],
        "enter": conv_params(3, LATENT, base),
        "down": down,
        "middle": middle,
        "up": up,
        "norm": group_params(base),
        "leave": conv_params(3, base, LATENT),
    }


def time_embedding(p, time):
    half = p[0]["kernel"].shape[0] // 2
    rates = jnp.exp(-jnp.log(10_000.0) * jnp.arange(half) / half)
    angles = time[:, None] * rates[None]
    waves = jnp.concatenate([jnp.cos(angles), jnp.sin(angles)], axis=-1)
    return dense(p[1], jax.nn.silu(dense(p[0], waves.astype(p[0]["kernel"].dtype))))


def unet(params, x, time, text):
    """The noise in the latents `x`, each level's stages joined to those of the way down."""
    time = time_embedding(params["time"], time)

    def through(p, x):
        x = block(p["block"], x, time)
        return transformer(p["attend"], x, text) if "attend" in p else x

    x = conv(params["enter"], x)
    skips = [x]
    for level in params["down"]:
        for p in level["stages"]:
            x = through(p, x)
            skips.append(x)
        if "shrink" in level:
            x = conv(level["shrink"], x, stride=2)
            skips.append(x)
    middle = params["middle"]
    x = transformer(middle["attend"], block(middle["enter"], x, time), text)
    x = block(middle["leave"], x, time)
    for level in params["up"]:
        for p in level["stages"]:
            x = through(p, jnp.concatenate([x, skips.pop()], axis=-1))
        if "grow" in level:
            batch, rows, columns, width = x.shape
            x = jax.image.resize(x, (batch, 2 * rows, 2 * columns, width), "nearest")
            x = conv(level["grow"], x)
    return conv(params["leave"], jax.nn.silu(group_norm(params["norm"], x, groups=32)))


def signal_left(time):
    """The share of the image left at a time in [0, 1000]: the product of Stable Diffusion's betas.

    The product is that of a continuous time, so that no table is needed.
    """
    low, high, end = 0.00085**0.5, 0.012**0.5, 1000.0
    slope = (high - low) / end
    return jnp.exp(-((low + slope * time) ** 3 - low**3) / (3 * slope))


def denoise():
    """DDIM with classifier-free guidance: the U-Net sees the latents with and without the text."""
    params = jax.tree.map(lambda leaf: abstract(*leaf.shape, dtype=jnp.bfloat16), unet_params(256))

    def denoise_step(params, latents, text, time, later):
        both = jnp.concatenate([latents, latents]).astype(jnp.bfloat16)
        times = jnp.full(both.shape[0], time)
        noise = unet(params, both, times, text).astype(jnp.float32)
        without, guided = jnp.split(noise, 2)
        noise = without + 7.5 * (guided - without)
        now, then = signal_left(time), signal_left(later)
        clean = (latents - jnp.sqrt(1 - now) * noise) / jnp.sqrt(now)
        return jnp.sqrt(then) * clean + jnp.sqrt(1 - then) * noise

    latents = abstract(1, SIZE, SIZE, LATENT)
    text = abstract(2, TEXT_LENGTH, TEXT_WIDTH, dtype=jnp.bfloat16)
    return params, lower(denoise_step, params, latents, text, abstract(), abstract())


def train():
    """Noise of a random strength, which the U-Net must find; an average of the weights is kept."""
    params = unet_params(128)
    batch = {
        "latents": abstract(4, SIZE, SIZE, LATENT),
        "text": abstract(4, TEXT_LENGTH, TEXT_WIDTH),
    }

    def loss(params, batch, key):
        noise_key, time_key = jax.random.split(key)
        noise = jax.random.normal(noise_key, batch["latents"].shape)
        time = 1000.0 * jax.random.uniform(time_key, (noise.shape[0],))
        left = signal_left(time)[:, None, None, None]
        noisy = jnp.sqrt(left) * batch["latents"] + jnp.sqrt(1 - left) * noise
        return jnp.mean((unet(params, noisy, time, batch["text"]) - noise) ** 2)

    return params, lower_step(loss, params, batch, adamw(1e-4, 0.01), dropout=True, average=True)


def specs():
    yield full_size(
        "diffusion", "denoise-step-bf16", "generate",
        "One denoising step of a text-guided latent diffusion U-Net, 64 x 64 x 4 latents, bf16.",
        denoise, 391_549_444, ("jax",), batch=1, size=SIZE, width=256, dtype="bf16",
    )  # fmt: skip
    yield full_size(
        "diffusion", "train", "train",
        "Training step of a text-guided latent diffusion U-Net with AdamW and a moving average "
        "of its parameters, 4 latents of 64 x 64 x 4, f32.",
        train, 101_304_580, TRAIN_LIBRARIES,
        batch=4, size=SIZE, width=128, dtype="f32", optimizer="adamw", average=True, noise=True,
    )  # fmt: skip
