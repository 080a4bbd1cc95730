"""Vision transformer: patches by convolution, then an encoder, then a class."""

import jax.numpy as jnp
from flax import linen
from jax import lax
from transformers import ViTConfig
from transformers.models.vit.modeling_flax_vit import FlaxViTEmbeddings, FlaxViTLayer

from families.flax_models import (
    BATCH,
    HEADS,
    LIBRARIES,
    TRAIN_LIBRARIES,
    WIDTH,
    cross_entropy,
    dropout_arguments,
    make_model,
)
from families.stacked import apply_module, stack_layers, through_layers
from lowering import abstract, integers
from variants import Task, variant

IMAGE, PATCH, CLASSES = 32, 8, 10


def config(depth):
    return ViTConfig(
        num_hidden_layers=depth, hidden_size=WIDTH, num_attention_heads=HEADS,
        intermediate_size=4 * WIDTH, image_size=IMAGE, patch_size=PATCH, num_labels=CLASSES,
        hidden_dropout_prob=0.1, attention_probs_dropout_prob=0.1,
    )  # fmt: skip


def classification(params, forward, label_smoothing=0.0, soft_labels=False):
    """Classes of images; `soft_labels` are the blends that mixup makes in the data loader."""
    labels = abstract(BATCH, CLASSES) if soft_labels else integers(BATCH)
    batch = {"images": abstract(BATCH, 3, IMAGE, IMAGE), "labels": labels}

    def loss(params, batch, key=None):
        logits = forward(params, batch, key).astype(jnp.float32)
        if soft_labels:
            return -jnp.mean(jnp.sum(batch["labels"] * linen.log_softmax(logits), axis=-1))
        return jnp.mean(cross_entropy(logits, batch["labels"], label_smoothing))

    def metrics(params, batch):
        logits = forward(params, batch)
        _, best = lax.top_k(logits, 5)
        hits = best == batch["labels"][:, None]
        return {"loss": loss(params, batch), "top1": jnp.mean(hits[:, 0]), "top5": jnp.mean(hits)}

    return Task(params, batch, forward, loss, metrics)


def task(depth, dtype="f32", dropout=False, **options):
    model, params = make_model("ViTForImageClassification", config(depth), dtype)

    def forward(params, batch, key=None):
        return model(batch["images"], params=params, **dropout_arguments(key)).logits

    return classification(params, forward, **options)


def looped_task(depth, scan=False, remat=None, dropout=False):
    """The encoder's layers in a loop of ours: scanned, rematerialised, or both."""
    settings = config(depth)
    _, params = make_model("ViTForImageClassification", settings)
    encoder = params["vit"]["encoder"]["layer"]
    params = {
        "embeddings": params["vit"]["embeddings"],
        "layers": stack_layers(encoder) if scan else encoder,
        "norm": params["vit"]["layernorm"],
        "classifier": params["classifier"],
    }
    layer = FlaxViTLayer(settings)

    def forward(params, batch, key=None):
        images = jnp.transpose(batch["images"], (0, 2, 3, 1))
        x = apply_module(FlaxViTEmbeddings(settings), params["embeddings"], images, key=key)

        def apply_block(weights, x, key):
            return apply_module(layer, weights, x, key=key)[0]

        x = through_layers(apply_block, params["layers"], x, key, scan, remat)
        norm = linen.LayerNorm(epsilon=settings.layer_norm_eps)
        x = norm.apply({"params": params["norm"]}, x)
        return linen.Dense(CLASSES).apply({"params": params["classifier"]}, x[:, 0])

    return classification(params, forward)


def of(kind, depth, make_task=task, **options):
    libraries = LIBRARIES if kind == "forward" else TRAIN_LIBRARIES
    title = "vision transformer"
    return variant("vit", title, make_task, kind, libraries, depth=depth, **options)


def specs():
    yield from (of("forward", depth) for depth in (1, 4, 12))
    yield of("forward", 6, dtype="bf16")
    yield of("forward", 4, make_task=looped_task, scan=True)
    yield of("loss", 2, evaluate=True)
    yield of("loss", 4, dropout=True)
    yield of("gradient", 2)
    yield of("gradient", 4, dropout=True)
    yield of("gradient", 3, dtype="bf16")
    yield of("gradient", 4, make_task=looped_task, remat="remat")
    for optimizer in ("adamw", "sgd-momentum", "lamb", "adafactor"):
        yield of("train", 2, optimizer=optimizer)
    yield of("train", 4, optimizer="adamw", dropout=True, clip="norm")
    yield of("train", 6, optimizer="lion", dtype="bf16")
    yield of("train", 8, optimizer="adamw", dtype="bf16", label_smoothing=0.1)
    yield of("train", 3, optimizer="adamw", soft_labels=True, average=True)
    yield of("train", 4, make_task=looped_task, optimizer="adamw", scan=True, dropout=True)
    yield of("train", 2, optimizer="adam", accumulate=2, dropout="rbg")
