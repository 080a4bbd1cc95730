"""EfficientNet-B0 and ConvNeXt-Tiny of keras.applications on ImageNet: 224 x 224, 1,000 classes."""

import functools

import jax
import jax.numpy as jnp
import keras

from families.full_size import full_size
from families.keras_cnn import LIBRARIES, shapes
from lowering import abstract, integers, lower

BATCH, IMAGE, CLASSES = 8, 224, 1000


def make_model(make, dtype):
    keras.config.set_dtype_policy("mixed_bfloat16" if dtype == "bf16" else "float32")
    try:
        return make(weights=None, classes=CLASSES)
    finally:
        keras.config.set_dtype_policy("float32")


def forward(make, dtype):
    model = make_model(make, dtype)
    trained, carried = shapes(model.trainable_variables), shapes(model.non_trainable_variables)

    def forward(trained, carried, images):
        return model.stateless_call(trained, carried, images, training=False)[0]

    return trained, lower(forward, trained, carried, abstract(BATCH, IMAGE, IMAGE, 3))


def train(make, dtype, make_optimizer):
    """Batch statistics and dropout seeds are carried along, as in Keras' own loop."""
    model = make_model(make, dtype)
    optimizer = make_optimizer()
    optimizer.build(model.trainable_variables)
    trained, carried = shapes(model.trainable_variables), shapes(model.non_trainable_variables)

    def loss(trained, carried, images, labels):
        found, carried = model.stateless_call(trained, carried, images, training=True)
        losses = keras.losses.categorical_crossentropy(
            jax.nn.one_hot(labels, CLASSES), found.astype(jnp.float32), label_smoothing=0.1
        )
        return jnp.mean(losses), carried

    def train_step(trained, carried, state, images, labels):
        (value, carried), gradients = jax.value_and_grad(loss, has_aux=True)(
            trained, carried, images, labels
        )
        trained, state = optimizer.stateless_apply(state, gradients, trained)
        return trained, carried, state, value

    state = shapes(optimizer.variables)
    images, labels = abstract(BATCH, IMAGE, IMAGE, 3), integers(BATCH)
    return trained, lower(train_step, trained, carried, state, images, labels)


def rmsprop():
    """As EfficientNet was trained."""
    decay = keras.optimizers.schedules.ExponentialDecay(0.016, 12_000, 0.97, staircase=True)
    return keras.optimizers.RMSprop(decay, rho=0.9, momentum=0.9, epsilon=1e-3)


def adamw():
    """As ConvNeXt was trained."""
    rate = keras.optimizers.schedules.CosineDecay(
        0.0, 375_000, warmup_target=4e-3, warmup_steps=25_000
    )
    return keras.optimizers.AdamW(rate, weight_decay=0.05)


def specs():
    sizes = {"batch": BATCH, "image": IMAGE}
    efficient, convnext = keras.applications.EfficientNetB0, keras.applications.ConvNeXtTiny
    yield full_size(
        "efficientnetb0", "forward", "forward",
        "Forward pass of EfficientNet-B0, 8 images of 224 x 224 pixels, f32.",
        functools.partial(forward, efficient, "f32"), 5_288_548, LIBRARIES, **sizes, dtype="f32",
    )  # fmt: skip
    yield full_size(
        "efficientnetb0", "train-dropout-bf16", "train",
        "Training step of EfficientNet-B0 with RMSprop, dropout and stochastic depth, "
        "8 images of 224 x 224 pixels, bf16.",
        functools.partial(train, efficient, "bf16", rmsprop), 5_288_548, LIBRARIES,
        **sizes, dtype="bf16", optimizer="rmsprop", dropout=True, label_smoothing=0.1,
    )  # fmt: skip
    yield full_size(
        "convnext", "train-tiny", "train",
        "Training step of ConvNeXt-Tiny with AdamW, 8 images of 224 x 224 pixels, f32.",
        functools.partial(train, convnext, "f32", adamw), 28_589_128, LIBRARIES,
        **sizes, dtype="f32", optimizer="adamw", label_smoothing=0.1,
    )  # fmt: skip
