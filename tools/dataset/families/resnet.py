"""ResNet of transformers: image classification with the batch statistics carried along.

The statistics are an argument and a result; without that most of a training step folds away.
"""

import jax
import jax.numpy as jnp
import optax
from jax import lax
from transformers import ResNetConfig

import training
from families.flax_models import (
    LIBRARIES,
    TRAIN_LIBRARIES,
    cross_entropy,
    make_model,
)
from lowering import abstract, integers, lower
from spec import Spec
from variants import sentence, variant_name

BATCH, IMAGE, CLASSES = 4, 32, 10

# Blocks of each stage and the kind of block.
DEPTHS = {
    10: ([1, 1, 1, 1], "basic"),
    18: ([2, 2, 2, 2], "basic"),
    26: ([2, 2, 2, 2], "bottleneck"),
    34: ([3, 4, 6, 3], "basic"),
    50: ([3, 4, 6, 3], "bottleneck"),
    101: ([3, 4, 23, 3], "bottleneck"),
}


def make_resnet(depth, dtype="f32", activation="relu"):
    blocks, block = DEPTHS[depth]
    config = ResNetConfig(
        depths=blocks, layer_type=block, embedding_size=8, hidden_sizes=[8, 16, 32, 64],
        num_labels=CLASSES, hidden_act=activation,
    )  # fmt: skip
    return make_model(
        "ResNetForImageClassification", config, dtype, input_shape=(1, IMAGE, IMAGE, 3)
    )


def image_batch():
    return {"pixel_values": abstract(BATCH, 3, IMAGE, IMAGE), "labels": integers(BATCH)}


def image_loss(model, label_smoothing=0.0, mixup=False, weight_decay=0.0, remat=False):
    """`loss(params, statistics, batch, key)` gives the loss and the new statistics."""

    def loss(params, statistics, batch, key=None):
        images = batch["pixel_values"]
        if mixup:
            # Each image is blended with another of the batch, and so is its loss.
            share_key, order_key = jax.random.split(key)
            share = jax.random.beta(share_key, 0.4, 0.4)
            order = jax.random.permutation(order_key, images.shape[0])
            images = share * images + (1 - share) * images[order]

        def apply(params, images):
            variables = {"params": params, "batch_stats": statistics}
            found, updated = model(images, params=variables, train=True)
            return found.logits, updated["batch_stats"]

        logits, updated = (jax.checkpoint(apply) if remat else apply)(params, images)
        losses = cross_entropy(logits, batch["labels"], label_smoothing)
        if mixup:
            others = cross_entropy(logits, batch["labels"][order], label_smoothing)
            losses = share * losses + (1 - share) * others
        value = jnp.mean(losses)
        if weight_decay:
            kernels = [leaf for leaf in jax.tree.leaves(params) if leaf.ndim > 1]
            value += weight_decay / 2 * sum(jnp.sum(jnp.square(kernel)) for kernel in kernels)
        return value, updated

    return loss


def train_step(loss, optimizer, average=False, accumulate=1):
    """A step that carries batch statistics, and if asked a moving average of the parameters."""

    def gradients_of(params, statistics, batch, *key):
        (value, statistics), gradients = jax.value_and_grad(loss, has_aux=True)(
            params, statistics, batch, *key
        )
        return value, statistics, gradients

    def gradients_in_pieces(params, statistics, batch, *key):
        micro = jax.tree.map(lambda leaf: leaf.reshape(accumulate, -1, *leaf.shape[1:]), batch)

        def add(carry, piece):
            total, statistics = carry
            value, statistics, gradients = gradients_of(params, statistics, piece, *key)
            return (jax.tree.map(jnp.add, total, gradients), statistics), value

        nothing = jax.tree.map(jnp.zeros_like, params)
        (total, statistics), values = lax.scan(add, (nothing, statistics), micro)
        mean = jax.tree.map(lambda leaf: leaf / accumulate, total)
        return jnp.mean(values), statistics, mean

    compute = gradients_in_pieces if accumulate > 1 else gradients_of

    def train_step(params, statistics, state, batch, *more):
        slow, key = (more[0], more[1:]) if average else (None, more)
        value, statistics, gradients = compute(params, statistics, batch, *key)
        updates, state = optimizer.update(gradients, state, params)
        params = optax.apply_updates(params, updates)
        if average:
            slow = optax.incremental_update(params, slow, 0.001)
            return params, statistics, state, value, slow
        return params, statistics, state, value

    return train_step


def lower_resnet(
    kind, depth, dtype="f32", activation="relu", optimizer=None, clip=None, average=False,
    accumulate=1, mixup=False, **loss_options,
):  # fmt: skip
    model, variables = make_resnet(depth, dtype, activation)
    params, statistics, batch = variables["params"], variables["batch_stats"], image_batch()
    keys = [training.KEY] if mixup else []

    def predict(params, statistics, images):
        joined = {"params": params, "batch_stats": statistics}
        return model(images, params=joined, train=False).logits

    if kind == "forward":
        return lower(predict, params, statistics, batch["pixel_values"], name="forward")
    if kind == "eval":

        def eval_step(params, statistics, batch):
            logits = predict(params, statistics, batch["pixel_values"])
            _, best = lax.top_k(logits, 5)
            hits = best == batch["labels"][:, None]
            return {
                "loss": jnp.sum(cross_entropy(logits, batch["labels"])),
                "top1": jnp.sum(hits[:, 0]),
                "top5": jnp.sum(jnp.any(hits, axis=1)),
            }

        return lower(eval_step, params, statistics, batch)
    loss = image_loss(model, mixup=mixup, **loss_options)
    if kind == "loss":
        return lower(loss, params, statistics, batch, *keys)
    if kind == "gradient":
        gradient = jax.value_and_grad(loss, has_aux=True)
        return lower(gradient, params, statistics, batch, *keys, name="gradient")
    chosen = training.make_optimizer(optimizer, clip)
    state = jax.eval_shape(chosen.init, params)
    step = train_step(loss, chosen, average, accumulate)
    slow = [params] if average else []
    return lower(step, params, statistics, state, batch, *slow, *keys)


def of(kind, depth, **options):
    block = DEPTHS[depth][1]
    title = f"ResNet ({block} blocks)"
    evaluation = kind == "eval"
    return Spec(
        family="resnet",
        name=variant_name(kind, "", {"depth": depth, **options}),
        kind="loss" if evaluation else kind,
        what=sentence(title, "evaluation" if evaluation else kind, "", {"depth": depth, **options}),
        build=lambda: lower_resnet(kind, depth, **options),
        options={"depth": depth, "block": block, **options},
        libraries=TRAIN_LIBRARIES if kind == "train" else LIBRARIES,
    )


def specs():
    yield from (of("forward", depth) for depth in (10, 18, 26, 34, 50, 101))
    yield of("forward", 18, dtype="bf16")
    yield of("forward", 50, dtype="bf16")
    yield of("forward", 18, activation="gelu")
    yield from (of("eval", depth) for depth in (18, 50))
    yield of("eval", 34, dtype="bf16")
    yield from (of("loss", depth) for depth in (18, 50))
    yield from (of("gradient", depth) for depth in (10, 18, 26, 34, 50))
    yield of("gradient", 18, dtype="bf16")
    yield of("gradient", 18, remat=True)
    yield of("gradient", 26, label_smoothing=0.1)
    yield of("gradient", 10, activation="silu")
    yield from training_steps()


def training_steps():
    for optimizer in ("sgd-momentum", "sgd-nesterov", "adamw", "lars", "lamb", "rmsprop"):
        yield of("train", 18, optimizer=optimizer)
    yield from (of("train", depth, optimizer="sgd-momentum") for depth in (10, 26, 34, 50))
    yield of("train", 101, optimizer="sgd-momentum", weight_decay=1e-4)
    yield of("train", 50, optimizer="lars", label_smoothing=0.1)
    yield of("train", 50, optimizer="sgd-nesterov", dtype="bf16", label_smoothing=0.1)
    yield of("train", 18, optimizer="sgd-momentum", dtype="bf16", weight_decay=1e-4)
    yield of("train", 26, optimizer="adam", dtype="bf16")
    yield of("train", 18, optimizer="adamw", mixup=True)
    yield of("train", 10, optimizer="sgd-momentum", clip="adaptive")
    yield of("train", 18, optimizer="rmsprop", average=True)
    yield of("train", 18, optimizer="sgd-momentum", accumulate=2)
    yield of("train", 34, optimizer="adamw", remat=True)
    yield of("train", 10, optimizer="lion", mixup=True, label_smoothing=0.1)
