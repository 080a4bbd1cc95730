"""The convolutional networks of keras.applications, with Keras' own optimizers, on JAX.

The architectures are those of Keras, layer by layer; only channels and image size shrink, so
that a graph runs in milliseconds. `stateless_call` carries batch statistics and dropout seeds.
"""

import functools

import jax
import jax.numpy as jnp
import keras
import numpy as np
from keras.src.applications.densenet import DenseNet

from lowering import abstract, integers, lower
from spec import Spec
from variants import sentence, variant_name

LIBRARIES = ("jax", "keras")
BATCH, CLASSES = 2, 10
SHRINK = 8  # Channels are divided by this.


def initialize_with_zeros(variable, initializer):
    """Initial weights never reach the graph, and numpy's zeros cost no compilation."""
    variable._initialize(np.zeros(variable._shape, variable._dtype))


keras.Variable._initialize_with_initializer = initialize_with_zeros


def shrunk(layer):
    """The same layer with fewer channels."""
    config = layer.get_config()
    for size in ("filters", "units"):
        if config.get(size, 0) > CLASSES:
            config[size] = max(config[size] // SHRINK, 4)
    return layer.__class__.from_config(config)


def short_densenet(**arguments):
    """DenseNet with fewer layers in each block: with all, a training step is enormous."""
    return DenseNet([2, 4, 6, 4], **arguments)


def with_fewer_channels(make):
    """For models without a width parameter: rebuilds them from narrower layers."""

    def build(**arguments):
        return keras.models.clone_model(make(**arguments), clone_function=shrunk)

    return build


# How each model is made small, its image size, and its title.
MODELS = {
    "vgg16": (with_fewer_channels(keras.applications.VGG16), 32, "VGG16"),
    "mobilenetv2": (
        functools.partial(keras.applications.MobileNetV2, alpha=0.35), 32, "MobileNetV2",
    ),
    "efficientnetb0": (keras.applications.EfficientNetB0, 32, "EfficientNetB0"),
    "inceptionv3": (with_fewer_channels(keras.applications.InceptionV3), 75, "InceptionV3"),
    "densenet121": (with_fewer_channels(keras.applications.DenseNet121), 32, "DenseNet121"),
    "densenet-short": (with_fewer_channels(short_densenet), 32, "DenseNet"),
    "xception": (with_fewer_channels(keras.applications.Xception), 71, "Xception"),
}  # fmt: skip

OPTIMIZERS = {
    "sgd-momentum": lambda: keras.optimizers.SGD(0.1, momentum=0.9),
    "sgd-nesterov": lambda: keras.optimizers.SGD(0.1, momentum=0.9, nesterov=True),
    "adam": lambda: keras.optimizers.Adam(1e-3),
    "adamw": lambda: keras.optimizers.AdamW(1e-3, weight_decay=1e-4, clipnorm=1.0),
    "rmsprop": lambda: keras.optimizers.RMSprop(1e-3, rho=0.9, momentum=0.9),
    "lion": lambda: keras.optimizers.Lion(1e-4),
    "nadam": lambda: keras.optimizers.Nadam(1e-3, global_clipnorm=1.0),
    "adafactor": lambda: keras.optimizers.Adafactor(1e-3),
    "ema-sgd": lambda: keras.optimizers.SGD(0.1, momentum=0.9, use_ema=True),
}


def shapes(variables):
    return [abstract(*variable.shape, dtype=variable.value.dtype) for variable in variables]


@functools.lru_cache(maxsize=1)
def make_model(model_name, dtype):
    make, size, _ = MODELS[model_name]
    keras.config.set_dtype_policy("mixed_bfloat16" if dtype == "bf16" else "float32")
    try:
        return make(weights=None, input_shape=(size, size, 3), classes=CLASSES), size
    finally:
        keras.config.set_dtype_policy("float32")


def lower_keras(model_name, kind, dtype="f32", optimizer=None, label_smoothing=0.0):
    model, size = make_model(model_name, dtype)
    trained, carried = shapes(model.trainable_variables), shapes(model.non_trainable_variables)
    images, labels = abstract(BATCH, size, size, 3), integers(BATCH)

    def forward(trained, carried, images):
        return model.stateless_call(trained, carried, images, training=False)[0]

    def loss(trained, carried, images, labels):
        found, carried = model.stateless_call(trained, carried, images, training=True)
        wanted = jax.nn.one_hot(labels, CLASSES)
        losses = keras.losses.categorical_crossentropy(
            wanted, found.astype(jnp.float32), label_smoothing=label_smoothing
        )
        return jnp.mean(losses), carried

    if kind == "forward":
        return lower(forward, trained, carried, images)
    gradient = jax.value_and_grad(loss, has_aux=True)
    if kind == "gradient":
        return lower(gradient, trained, carried, images, labels, name="gradient")
    chosen = OPTIMIZERS[optimizer]()
    chosen.build(model.trainable_variables)

    def train_step(trained, carried, state, images, labels):
        (value, carried), gradients = gradient(trained, carried, images, labels)
        trained, state = chosen.stateless_apply(state, gradients, trained)
        return trained, carried, state, value

    return lower(train_step, trained, carried, shapes(chosen.variables), images, labels)


def of(family, kind, model_name=None, **options):
    model_name = model_name or family
    title = MODELS[model_name][2]
    if model_name != family:
        options = {"blocks": "2-4-6-4", **options}
    lowering_options = {name: value for name, value in options.items() if name != "blocks"}
    return Spec(
        family=family,
        name=variant_name(kind, "", options),
        kind=kind,
        what=sentence(title, kind, "", options),
        build=lambda: lower_keras(model_name, kind, **lowering_options),
        options=options,
        libraries=LIBRARIES,
    )


# The optimizers of each model: those of its paper first.
TRAINED_WITH = {
    "vgg16": ("sgd-momentum", "adam", "adamw"),
    "mobilenetv2": ("rmsprop", "sgd-nesterov"),
    "efficientnetb0": ("rmsprop", "lion"),
    "inceptionv3": ("rmsprop", "nadam"),
    "densenet121": ("sgd-nesterov",),
    "xception": ("sgd-momentum", "ema-sgd"),
}


def specs():
    for family, optimizers in TRAINED_WITH.items():
        yield of(family, "forward")
        yield of(family, "forward", dtype="bf16")
        yield of(family, "gradient")
        for optimizer in optimizers:
            yield of(family, "train", optimizer=optimizer)
    yield of("vgg16", "train", optimizer="sgd-momentum", dtype="bf16")
    yield of("mobilenetv2", "train", optimizer="rmsprop", label_smoothing=0.1)
    yield of("densenet121", "gradient", model_name="densenet-short")
    yield of("densenet121", "train", model_name="densenet-short", optimizer="adam")
    yield of("xception", "gradient", dtype="bf16")
