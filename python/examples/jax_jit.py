"""``xla_gym.jit`` beside ``jax.jit`` on three small models of plain ``jax.numpy``.

    python examples/jax_jit.py --budget 300 --models mlp resnet gpt2

For each training step: whether the results agree, how long jaxlib compiles the plain and the optimised
program, and how long each of them runs, measured in turn. A ratio above 1 means that the optimised one is
faster; the control is the ratio of two plain programs, and shows what the machine itself does to a ratio.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import warnings
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

import xla_gym
import xla_gym.jax

Model = tuple[Callable[..., Any], tuple[Any, ...]]


def weights(key: jax.Array, shapes: dict[str, tuple[int, ...]]) -> dict[str, jax.Array]:
    """Random weights whose products keep their size."""
    keys = jax.random.split(key, len(shapes))
    return {
        name: jax.random.normal(k, shape) / max(1, jnp.prod(jnp.asarray(shape[:-1]))) ** 0.5
        for k, (name, shape) in zip(keys, shapes.items(), strict=True)
    }


def trained(loss: Callable[..., jax.Array]) -> Callable[..., Any]:
    """A step of gradient descent."""

    def step(params: Any, x: jax.Array, y: jax.Array) -> tuple[Any, jax.Array]:
        value, gradient = jax.value_and_grad(loss)(params, x, y)
        return jax.tree.map(lambda p, g: p - 0.01 * g, params, gradient), value

    step.__name__ = loss.__name__
    return step


def mlp() -> Model:
    """Three layers on 128 rows."""
    shapes = {"w0": (256, 512), "w1": (512, 512), "w2": (512, 10)}
    params = weights(jax.random.key(0), shapes)

    def mlp(params: Any, x: jax.Array, y: jax.Array) -> jax.Array:
        x = jax.nn.gelu(x @ params["w0"])
        x = jax.nn.gelu(x @ params["w1"])
        return -jnp.mean(jax.nn.log_softmax(x @ params["w2"])[jnp.arange(len(y)), y])

    x = jax.random.normal(jax.random.key(1), (128, 256))
    return trained(mlp), (params, x, jnp.arange(128) % 10)


def resnet() -> Model:
    """Two residual blocks with normalisation over the batch, on 8 images of 16 by 16."""
    shapes: dict[str, tuple[int, ...]] = {"stem": (3, 3, 3, 16), "out": (16, 10)}
    shapes |= {f"conv{i}": (3, 3, 16, 16) for i in range(4)}
    params = weights(jax.random.key(0), shapes)

    def conv(x: jax.Array, w: jax.Array) -> jax.Array:
        return jax.lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))

    def normal(x: jax.Array) -> jax.Array:
        return (x - x.mean((0, 1, 2))) / jnp.sqrt(x.var((0, 1, 2)) + 1e-5)

    def resnet(params: Any, x: jax.Array, y: jax.Array) -> jax.Array:
        x = jax.nn.relu(normal(conv(x, params["stem"])))
        for i in (0, 2):
            inner = jax.nn.relu(normal(conv(x, params[f"conv{i}"])))
            x = jax.nn.relu(x + normal(conv(inner, params[f"conv{i + 1}"])))
        logits = x.mean((1, 2)) @ params["out"]
        return -jnp.mean(jax.nn.log_softmax(logits)[jnp.arange(len(y)), y])

    x = jax.random.normal(jax.random.key(1), (8, 16, 16, 3))
    return trained(resnet), (params, x, jnp.arange(8))


def gpt2() -> Model:
    """A block of a transformer with 4 heads, on 2 texts of 64 tokens."""
    width, heads, tokens = 128, 4, 64
    shapes: dict[str, tuple[int, ...]] = {"embed": (256, width), "position": (tokens, width)}
    shapes |= {"qkv": (width, 3 * width), "qkv_bias": (3 * width,), "proj": (width, width)}
    shapes |= {"up": (width, 4 * width), "up_bias": (4 * width,), "down": (4 * width, width)}
    params = weights(jax.random.key(0), shapes)

    def normal(x: jax.Array) -> jax.Array:
        return (x - x.mean(-1, keepdims=True)) / jnp.sqrt(x.var(-1, keepdims=True) + 1e-5)

    def attention(params: Any, x: jax.Array) -> jax.Array:
        batch, length, _ = x.shape
        split = (x @ params["qkv"] + params["qkv_bias"]).reshape(batch, length, 3, heads, width // heads)
        q, k, v = jnp.moveaxis(split, 2, 0)
        scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / (width // heads) ** 0.5
        scores = jnp.where(jnp.tril(jnp.ones((length, length), bool)), scores, -1e9)
        mixed = jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores), v)
        return mixed.reshape(batch, length, width) @ params["proj"]

    def gpt2(params: Any, x: jax.Array, y: jax.Array) -> jax.Array:
        hidden = params["embed"][x] + params["position"]
        hidden = hidden + attention(params, normal(hidden))
        inner = jax.nn.gelu(normal(hidden) @ params["up"] + params["up_bias"])
        hidden = hidden + inner @ params["down"]
        logits = jax.nn.log_softmax(normal(hidden) @ params["embed"].T)
        return -jnp.mean(jnp.take_along_axis(logits, y[..., None], axis=-1))

    x = jax.random.randint(jax.random.key(1), (2, tokens), 0, 256)
    return trained(gpt2), (params, x, jnp.roll(x, -1, axis=1))


MODELS: dict[str, Callable[[], Model]] = {"mlp": mlp, "resnet": resnet, "gpt2": gpt2}


def measure(name: str, arguments: argparse.Namespace) -> dict[str, Any]:
    """The row of a model."""
    step, args = MODELS[name]()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", xla_gym.XlaGymWarning)
        compiled = xla_gym.jax.compile(
            step, *args, donate_argnums=0, budget=arguments.budget, seed=arguments.seed
        )
    row: dict[str, Any] = {"model": name, "warnings": [str(each.message) for each in caught]}
    row |= {"chosen": compiled.stats.chosen, "reason": compiled.stats.reason}
    row |= {"difference": compiled.stats.difference, "optimise_seconds": compiled.stats.optimise}
    if compiled.optimised is not None:
        compiling = compiled.benchmark_compile(rounds=arguments.compile_rounds)
        running = compiled.benchmark(*args, rounds=arguments.rounds)
        row |= {"compile": dataclasses.asdict(compiling), "run": dataclasses.asdict(running)}
    return row


def ratio(found: dict[str, Any]) -> str:
    """A ratio with its interval, and the same of the control."""
    (low, high), (least, most) = found["interval"], found["control_interval"]
    text = f"{found['speedup']:.3f} ({low:.3f}–{high:.3f}), control {least:.3f}–{most:.3f}"
    return text + (", within noise" if found["within_noise"] else "")


def line(row: dict[str, Any]) -> str:
    """The row as text."""
    if "run" not in row:
        return f"{row['model']:8} plain: {row['reason']}"
    compiling, running = row["compile"], row["run"]
    equal = "yes" if row["chosen"] == "optimised" else "no"
    times = f"{1e3 * compiling['plain']['median']:.0f}/{1e3 * compiling['optimised']['median']:.0f} ms"
    steps = f"{1e3 * running['plain']['median']:.2f}/{1e3 * running['optimised']['median']:.2f} ms"
    return (
        f"{row['model']:8} {equal:6} {row['optimise_seconds']:7.1f} s  {times:14} {ratio(compiling):62} "
        f"{steps:14} {ratio(running)}"
    )


def main() -> None:
    """Prints a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    parser.add_argument("--budget", type=int, default=300, help="passes that each search may try")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=40, help="measurements of a step")
    parser.add_argument("--compile-rounds", type=int, default=7, help="measurements of compilation")
    parser.add_argument("--json", action="store_true", help="print rows of JSON instead of the table")
    arguments = parser.parse_args()

    if not arguments.json:
        print(
            f"{'model':8} {'equal':6} {'search':>9}  {'compile':14} {'plain over optimised':62} "
            f"{'step':14} plain over optimised"
        )
    for name in arguments.models:
        row = measure(name, arguments)
        print(json.dumps(row) if arguments.json else line(row), flush=True)


if __name__ == "__main__":
    main()
