"""ViT-B/16 and ResNet-50 of transformers on ImageNet: 224 x 224 pixels, 1,000 classes."""

import jax
import jax.numpy as jnp
import optax
from transformers import ResNetConfig, ViTConfig

import training
from families.flax_models import (
    LIBRARIES,
    TRAIN_LIBRARIES,
    cross_entropy,
    dropout_arguments,
    make_model,
)
from families.full_size import adamw, full_size, lower_step, warm_up_cosine
from families.resnet import image_loss, train_step
from lowering import abstract, integers, lower

IMAGE, CLASSES = 224, 1000
VIT_PARAMETERS, RESNET_PARAMETERS = 86_567_656, 25_557_032


def image_batch(batch):
    return {"pixel_values": abstract(batch, 3, IMAGE, IMAGE), "labels": integers(batch)}


def make_vit(dtype):
    """ViT-B/16 is transformers' default, but for dropout and the classes."""
    config = ViTConfig(
        num_labels=CLASSES, hidden_dropout_prob=0.1, attention_probs_dropout_prob=0.1
    )
    return make_model("ViTForImageClassification", config, dtype)


def vit_forward():
    model, params = make_vit("f32")

    def forward(params, images):
        return model(images, params=params, train=False).logits

    return params, lower(forward, params, image_batch(8)["pixel_values"])


def vit_train():
    model, params = make_vit("bf16")

    def loss(params, batch, key):
        found = model(batch["pixel_values"], params=params, **dropout_arguments(key))
        return jnp.mean(cross_entropy(found.logits, batch["labels"]))

    optimizer = adamw(warm_up_cosine(3e-3, 10_000, 300_000), weight_decay=0.3)
    return params, lower_step(loss, params, image_batch(16), optimizer, dropout=True)


def make_resnet(dtype):
    """ResNet-50 is transformers' default. Gives the model, parameters and batch statistics."""
    model, variables = make_model(
        "ResNetForImageClassification", ResNetConfig(num_labels=CLASSES), dtype,
        input_shape=(1, IMAGE, IMAGE, 3),
    )  # fmt: skip
    return model, variables["params"], variables["batch_stats"]


def resnet_forward():
    model, params, statistics = make_resnet("bf16")

    def forward(params, statistics, images):
        variables = {"params": params, "batch_stats": statistics}
        return model(images, params=variables, train=False).logits

    return params, lower(forward, params, statistics, image_batch(8)["pixel_values"])


def resnet_train():
    model, params, statistics = make_resnet("f32")
    optimizer = optax.chain(
        optax.add_decayed_weights(1e-4, mask=training.spare_vectors),
        optax.sgd(warm_up_cosine(0.1, 2500, 450_000), momentum=0.9),
    )
    state = jax.eval_shape(optimizer.init, params)
    step = train_step(image_loss(model, label_smoothing=0.1), optimizer)
    return params, lower(step, params, statistics, state, image_batch(16))


def specs():
    yield full_size(
        "vit", "forward-b16", "forward",
        "Forward pass of ViT-B/16, 8 images of 224 x 224 pixels, f32.",
        vit_forward, VIT_PARAMETERS, LIBRARIES, batch=8, image=IMAGE, dtype="f32",
    )  # fmt: skip
    yield full_size(
        "vit", "train-b16-dropout-bf16", "train",
        "Training step of ViT-B/16 with AdamW and dropout, 16 images of 224 x 224 pixels, bf16.",
        vit_train, VIT_PARAMETERS, TRAIN_LIBRARIES,
        batch=16, image=IMAGE, dtype="bf16", optimizer="adamw", dropout=True,
    )  # fmt: skip
    yield full_size(
        "resnet", "forward-50-bf16", "forward",
        "Forward pass of ResNet-50, 8 images of 224 x 224 pixels, bf16.",
        resnet_forward, RESNET_PARAMETERS, LIBRARIES, batch=8, image=IMAGE, dtype="bf16",
    )  # fmt: skip
    yield full_size(
        "resnet", "train-50", "train",
        "Training step of ResNet-50 with momentum and weight decay, "
        "16 images of 224 x 224 pixels, f32.",
        resnet_train, RESNET_PARAMETERS, TRAIN_LIBRARIES,
        batch=16, image=IMAGE, dtype="f32", optimizer="sgd-momentum", label_smoothing=0.1,
    )  # fmt: skip
