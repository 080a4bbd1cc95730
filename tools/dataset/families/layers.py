"""Small layers for the hand-written families: plain JAX, parameters as dicts of shapes."""

import dataclasses

import jax
import jax.numpy as jnp
from jax import lax

from lowering import abstract
from spec import Spec
from variants import variant

LIBRARIES = ("jax",)
TRAIN_LIBRARIES = ("jax", "optax")


def dense_params(inputs, outputs):
    return {"kernel": abstract(inputs, outputs), "bias": abstract(outputs)}


def dense(p, x):
    return x @ p["kernel"] + p["bias"]


def norm_params(width):
    return {"scale": abstract(width), "bias": abstract(width)}


def layer_norm(p, x):
    mean = jnp.mean(x, axis=-1, keepdims=True)
    variance = jnp.var(x, axis=-1, keepdims=True)
    return (x - mean) * lax.rsqrt(variance + 1e-6) * p["scale"] + p["bias"]


def conv_params(size, inputs, outputs):
    return {"kernel": abstract(size, size, inputs, outputs), "bias": abstract(outputs)}


def conv(p, x, stride=1, padding="SAME"):
    found = lax.conv_general_dilated(
        x, p["kernel"], (stride, stride), padding, dimension_numbers=("NHWC", "HWIO", "NHWC")
    )
    return found + p["bias"]


def drop(key, x, rate=0.1):
    """Dropout; without a key it is the identity."""
    if key is None:
        return x
    keep = jax.random.bernoulli(key, 1 - rate, x.shape)
    return jnp.where(keep, x / (1 - rate), 0)


def of(family, model, title, make_task, kind, noise=False, **options):
    """A variant of the hand-written `model`, whose name comes first in the graph's name.

    `noise` passes a random key to a loss that draws from it for another purpose than dropout.
    """
    libraries = TRAIN_LIBRARIES if kind == "train" else LIBRARIES
    if noise:
        options["dropout"] = True
    spec = variant(family, title, make_task, kind, libraries, **options)
    name, what, shown = f"{model}-{spec.name}", spec.what, {"model": model, **spec.options}
    if noise:
        name, what = name.replace("-dropout", "-noise"), what.replace("dropout", "noise")
        shown["noise"] = shown.pop("dropout")
    return dataclasses.replace(spec, name=name, what=what, options=shown)


def program(family, name, what, build, kind="other", **options):
    """A graph that is not a model: an algorithm with a name and a sentence."""
    libraries = options.pop("libraries", LIBRARIES)
    return Spec(family, name, kind, what, build, options, libraries)


def programs(family, functions):
    """One spec for each function that returns a lowered graph; its docstring is the sentence.

    The graph is called as the function, e.g. `random_walk` gives `random-walk`.
    """
    for function in functions:
        yield program(family, function.__name__.replace("_", "-"), function.__doc__, function)
