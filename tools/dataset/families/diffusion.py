"""Diffusion models: a small U-Net that predicts noise, its training, and its sampling loops."""

import jax
import jax.numpy as jnp
from jax import lax

from families.layers import conv, conv_params, dense, dense_params, of, program
from lowering import KEY, abstract, lower
from variants import Task

BATCH, SIZE, CHANNELS, TIME = 2, 16, 8, 16
STEPS = 50


def group_norm(p, x, groups=4):
    split = x.reshape(*x.shape[:-1], groups, -1)
    mean = jnp.mean(split, axis=(1, 2, 4), keepdims=True)
    variance = jnp.var(split, axis=(1, 2, 4), keepdims=True)
    normal = ((split - mean) * lax.rsqrt(variance + 1e-5)).reshape(x.shape)
    return normal * p["scale"] + p["bias"]


def group_params(width):
    return {"scale": abstract(width), "bias": abstract(width)}


def block_params(inputs, outputs):
    return {
        "norm1": group_params(inputs),
        "conv1": conv_params(3, inputs, outputs),
        "time": dense_params(TIME, outputs),
        "norm2": group_params(outputs),
        "conv2": conv_params(3, outputs, outputs),
        **({"skip": conv_params(1, inputs, outputs)} if inputs != outputs else {}),
    }


def block(p, x, time):
    y = conv(p["conv1"], jax.nn.silu(group_norm(p["norm1"], x)))
    y = y + dense(p["time"], jax.nn.silu(time))[:, None, None]
    y = conv(p["conv2"], jax.nn.silu(group_norm(p["norm2"], y)))
    return y + (conv(p["skip"], x) if "skip" in p else x)


def attention_params(width):
    return {
        "norm": group_params(width),
        "qkv": dense_params(width, 3 * width),
        "out": dense_params(width, width),
    }


def attention(p, x):
    rows = group_norm(p["norm"], x).reshape(x.shape[0], -1, x.shape[-1])
    q, k, v = jnp.split(dense(p["qkv"], rows), 3, axis=-1)
    weights = jax.nn.softmax(jnp.einsum("bqd,bkd->bqk", q, k) / jnp.sqrt(q.shape[-1] * 1.0))
    return x + dense(p["out"], weights @ v).reshape(x.shape)


def unet_params(levels):
    widths = [CHANNELS * 2**level for level in range(levels)]
    down, up, inputs = [], [], CHANNELS
    for width in widths:
        down.append({"block": block_params(inputs, width), "shrink": conv_params(3, width, width)})
        inputs = width
    for width in reversed(widths):
        up.append(
            {"block": block_params(inputs + width, width), "grow": conv_params(3, inputs, inputs)}
        )
        inputs = width
    return {
        "time": [dense_params(TIME, TIME), dense_params(TIME, TIME)],
        "enter": conv_params(3, 3, CHANNELS),
        "down": down,
        "middle": [block_params(widths[-1], widths[-1]), attention_params(widths[-1])],
        "up": up,
        "leave": conv_params(3, CHANNELS, 3),
    }


def time_embedding(p, time):
    rates = jnp.exp(-jnp.log(10_000.0) * jnp.arange(TIME // 2) / (TIME // 2))
    angles = time[:, None] * rates[None]
    waves = jnp.concatenate([jnp.sin(angles), jnp.cos(angles)], axis=-1)
    return dense(p[1], jax.nn.silu(dense(p[0], waves)))


def unet(params, x, time, remat=False):
    """Down with skips, attention at the bottom, up again by resizing."""
    apply = jax.checkpoint(block) if remat else block
    time = time_embedding(params["time"], time)
    x = conv(params["enter"], x)
    skips = []
    for p in params["down"]:
        x = apply(p["block"], x, time)
        skips.append(x)
        x = conv(p["shrink"], x, stride=2)
    x = attention(params["middle"][1], apply(params["middle"][0], x, time))
    for p, skip in zip(params["up"], reversed(skips), strict=True):
        x = jax.image.resize(x, (*skip.shape[:3], x.shape[-1]), "nearest")
        x = jnp.concatenate([conv(p["grow"], x), skip], axis=-1)
        x = apply(p["block"], x, time)
    return conv(params["leave"], x)


def signal_left(time):
    """The share of the image that is left at a time in [0, 1] (cosine schedule)."""
    return jnp.cos((time + 0.008) / 1.008 * jnp.pi / 2) ** 2


def task(levels=2, remat=False, dropout=False, velocity=False, dtype="f32"):
    """Noise prediction; `velocity` predicts the mix of noise and image instead."""
    params = unet_params(levels)
    images = abstract(BATCH, SIZE, SIZE, 3)
    batch = {"images": images, "time": abstract(BATCH)}

    def apply(params, x, time):
        if dtype == "bf16":
            params, x, time = jax.tree.map(lambda a: a.astype(jnp.bfloat16), (params, x, time))
        return unet(params, x, time, remat).astype(jnp.float32)

    def forward(params, batch, key=None):
        return apply(params, batch["images"], batch["time"])

    def loss(params, batch, key):
        noise_key, time_key = jax.random.split(key)
        noise = jax.random.normal(noise_key, batch["images"].shape)
        time = jax.random.uniform(time_key, batch["time"].shape)
        left = signal_left(time)[:, None, None, None]
        noisy = jnp.sqrt(left) * batch["images"] + jnp.sqrt(1 - left) * noise
        found = apply(params, noisy, 1000 * time)
        if velocity:
            noise = jnp.sqrt(left) * noise - jnp.sqrt(1 - left) * batch["images"]
        return jnp.mean((found - noise) ** 2)

    return Task(params, batch, forward, loss)


def lower_sampler(ancestral, guided):
    """Sampling from noise: a loop over times, each with the whole U-Net."""
    params = unet_params(2)

    def sample(params, start, key):
        def step(x, inputs):
            time, later, key = inputs
            times = jnp.full(BATCH, 1000 * time)
            noise = unet(params, x, times)
            if guided:
                noise = 3.0 * noise - 2.0 * unet(params, x, jnp.zeros(BATCH))
            now, then = signal_left(time), signal_left(later)
            clean = jnp.clip((x - jnp.sqrt(1 - now) * noise) / jnp.sqrt(now), -1, 1)
            spread = jnp.sqrt((1 - then) / (1 - now) * (1 - now / then)) if ancestral else 0.0
            x = jnp.sqrt(then) * clean + jnp.sqrt(jnp.maximum(1 - then - spread**2, 0)) * noise
            if ancestral:
                x = x + spread * jax.random.normal(key, x.shape)
            return x, None

        times = jnp.linspace(0.99, 0.0, STEPS + 1)
        keys = jax.random.split(key, STEPS)
        return lax.scan(step, start, (times[:-1], times[1:], keys))[0]

    return lower(sample, params, abstract(BATCH, SIZE, SIZE, 3), KEY)


def specs():
    def model(kind, **options):
        return of("diffusion", "unet", "diffusion U-Net", task, kind, **options)

    yield from (model("forward", levels=levels) for levels in (2, 3))
    yield model("forward", levels=2, dtype="bf16")
    yield model("gradient", levels=2, noise=True)
    yield model("train", levels=2, optimizer="adamw", noise=True, average=True)
    yield model("train", levels=3, optimizer="adam", velocity=True, noise=True, clip="norm")
    yield model("train", levels=2, optimizer="lion", remat=True, noise=True, dtype="bf16")
    for name, ancestral, guided in (
        ("ddpm", True, False), ("ddim", False, False), ("guided", False, True),
    ):  # fmt: skip
        yield program(
            "diffusion",
            f"sample-{name}",
            f"Sampling with a diffusion U-Net, {STEPS} steps in a scan: {name}.",
            lambda ancestral=ancestral, guided=guided: lower_sampler(ancestral, guided),
            "generate",
            sampler=name,
        )
