"""What the families built on transformers' Flax models share: abstract models, losses, generation.

Models are made from a configuration, with the shapes of their parameters and no weights.
Widths are small (structure is what compiler passes see), so that a graph runs in milliseconds
and constants such as causal masks stay short.
"""

import jax
import jax.numpy as jnp
import optax
import transformers

from lowering import KEY, abstract, integers, lower
from spec import Spec

LIBRARIES = ("jax", "flax", "transformers")
TRAIN_LIBRARIES = (*LIBRARIES, "optax")

BATCH, LENGTH, WIDTH, HEADS, VOCAB, POSITIONS = 4, 16, 64, 4, 128, 32

DTYPES = {"f32": jnp.float32, "bf16": jnp.bfloat16, "f16": jnp.float16}


def make_model(name, config, dtype="f32", **keywords):
    """The Flax model `name` of transformers without weights, and its parameters' shapes.

    `dtype` "bf16" computes in bf16 with f32 parameters; "pure-bf16" stores those in bf16 too.
    """
    pure = dtype == "pure-bf16"
    model = getattr(transformers, f"Flax{name}")(
        config, dtype=DTYPES["bf16" if pure else dtype], _do_init=False, **keywords
    )
    params = model.params_shape_tree
    if pure:
        params = jax.tree.map(lambda leaf: abstract(*leaf.shape, dtype=jnp.bfloat16), params)
    return model, params


def text_batch(batch=BATCH, length=LENGTH, **more):
    """Token ids and the mask of padding, as tokenizers give them."""
    return {
        "input_ids": integers(batch, length),
        "attention_mask": integers(batch, length),
        **more,
    }


def dropout_arguments(key):
    """The arguments by which transformers' Flax models take dropout; no key means none."""
    return {"dropout_rng": key, "train": True} if key is not None else {"train": False}


def weighted_mean(values, weights):
    return jnp.sum(values * weights) / jnp.maximum(jnp.sum(weights), 1)


def cross_entropy(logits, labels, label_smoothing=0.0):
    """Of each position, in f32; with smoothing the labels are softened as in t5x."""
    logits = logits.astype(jnp.float32)
    if not label_smoothing:
        return optax.softmax_cross_entropy_with_integer_labels(logits, labels)
    classes = logits.shape[-1]
    low = label_smoothing / (classes - 1)
    soft = jax.nn.one_hot(labels, classes) * (1.0 - label_smoothing - low) + low
    return optax.softmax_cross_entropy(logits, soft)


def shifted_loss(logits, batch, label_smoothing=0.0, z_loss=0.0):
    """Position i predicts token i + 1; padding does not count."""
    shifted = logits[:, :-1]
    losses = cross_entropy(shifted, batch["input_ids"][:, 1:], label_smoothing)
    if z_loss:
        partition = jax.nn.logsumexp(shifted.astype(jnp.float32), axis=-1)
        losses = losses + z_loss * jnp.square(partition)
    return weighted_mean(losses, batch["attention_mask"][:, 1:].astype(jnp.float32))


def shifted_metrics(logits, batch):
    """Loss, perplexity and accuracy of the next token."""
    weights = batch["attention_mask"][:, 1:].astype(jnp.float32)
    labels = batch["input_ids"][:, 1:]
    loss = weighted_mean(cross_entropy(logits[:, :-1], labels), weights)
    right = jnp.argmax(logits[:, :-1], axis=-1) == labels
    return {
        "loss": loss,
        "perplexity": jnp.exp(loss),
        "accuracy": weighted_mean(right.astype(jnp.float32), weights),
        "tokens": jnp.sum(weights),
    }


# Each search that transformers' `generate` knows, by a name of ours.
SEARCHES = {
    "greedy": {},
    "greedy-min-length": {"min_length": 10},
    "greedy-forced-ends": {"forced_bos_token_id": 3, "forced_eos_token_id": 1},
    "sampling": {"do_sample": True, "top_k": 0},
    "temperature": {"do_sample": True, "top_k": 0, "temperature": 0.7},
    "top-k": {"do_sample": True, "top_k": 10},
    "top-p": {"do_sample": True, "top_k": 0, "top_p": 0.9},
    "top-k-top-p": {"do_sample": True, "top_k": 20, "top_p": 0.9, "temperature": 0.8},
    "beam": {"num_beams": 3},
    "beam-early": {"num_beams": 2, "early_stopping": True, "length_penalty": 2.0},
    "beam-min-length": {"num_beams": 4, "min_length": 8},
}


def generation(family, title, search, depth, make, dtype="f32"):
    """The spec of a generation loop; `make(depth, dtype)` gives model, parameters and settings."""

    def build():
        model, params, settings = make(depth, dtype)
        # Without an explicit start, encoder-decoder models take theirs from the configuration.
        settings = {"max_length": 16, "pad_token_id": 0, "eos_token_id": 1, **settings}
        settings |= SEARCHES[search]
        sampled = settings.get("do_sample", False)
        batch = text_batch(2, 6)

        def generate(params, batch, *key):
            chosen = {"prng_key": key[0]} if key else {}
            found = model.generate(
                batch["input_ids"],
                attention_mask=batch["attention_mask"],
                params=params,
                **settings,
                **chosen,
            )
            return found.sequences

        return lower(generate, params, batch, *([KEY] if sampled else []))

    suffix = "" if dtype == "f32" else f"-{dtype}"
    options = {"search": search, "depth": depth}
    if suffix:
        options["dtype"] = dtype
    return Spec(
        family=family,
        name=f"generate-{search}-{depth}l{suffix}",
        kind="generate",
        what=f"Generation with a {depth}-layer {title} and its key-value cache: {search}{suffix}.",
        build=build,
        options=options,
        libraries=LIBRARIES,
    )
