"""Multi-layer perceptrons and what small ones are used for: regression, mixers, agents, fields."""

import jax
import jax.numpy as jnp

from families.layers import dense, dense_params, drop, layer_norm, norm_params, of
from lowering import abstract, integers
from variants import Task

BATCH, INPUTS, WIDTH, CLASSES = 8, 16, 32, 10


def stack(sizes):
    return [dense_params(a, b) for a, b in zip(sizes[:-1], sizes[1:], strict=True)]


def apply_stack(layers, x, activation=jax.nn.relu, key=None):
    for index, p in enumerate(layers[:-1]):
        layer_key = None if key is None else jax.random.fold_in(key, index)
        x = drop(layer_key, activation(dense(p, x)))
    return dense(layers[-1], x)


ACTIVATIONS = {"relu": jax.nn.relu, "gelu": jax.nn.gelu, "mish": jax.nn.mish, "selu": jax.nn.selu}


def classifier(depth=3, activation="relu", dropout=False, dtype="f32"):
    params = stack([INPUTS] + [WIDTH] * (depth - 1) + [CLASSES])
    batch = {"x": abstract(BATCH, INPUTS), "labels": integers(BATCH)}

    def forward(params, batch, key=None):
        x = batch["x"]
        if dtype == "bf16":
            params, x = jax.tree.map(lambda leaf: leaf.astype(jnp.bfloat16), (params, x))
        return apply_stack(params, x, ACTIVATIONS[activation], key)

    def loss(params, batch, key=None):
        scores = jax.nn.log_softmax(forward(params, batch, key).astype(jnp.float32))
        return -jnp.mean(jnp.take_along_axis(scores, batch["labels"][:, None], axis=-1))

    return Task(params, batch, forward, loss)


def mixer(depth=2, dropout=False):
    """MLP-Mixer: perceptrons across patches, then across channels."""
    patches = 16
    block = {
        "norm1": norm_params(WIDTH),
        "tokens": stack([patches, 24, patches]),
        "norm2": norm_params(WIDTH),
        "channels": stack([WIDTH, 64, WIDTH]),
    }
    params = {
        "enter": dense_params(INPUTS, WIDTH),
        "blocks": [block] * depth,
        "leave": dense_params(WIDTH, CLASSES),
    }
    batch = {"x": abstract(BATCH, patches, INPUTS), "labels": integers(BATCH)}

    def forward(params, batch, key=None):
        x = dense(params["enter"], batch["x"])
        for p in params["blocks"]:
            mixed = layer_norm(p["norm1"], x).swapaxes(1, 2)
            x = x + apply_stack(p["tokens"], mixed, jax.nn.gelu, key).swapaxes(1, 2)
            x = x + apply_stack(p["channels"], layer_norm(p["norm2"], x), jax.nn.gelu, key)
        return dense(params["leave"], jnp.mean(x, axis=1))

    def loss(params, batch, key=None):
        scores = jax.nn.log_softmax(forward(params, batch, key))
        return -jnp.mean(jnp.take_along_axis(scores, batch["labels"][:, None], axis=-1))

    return Task(params, batch, forward, loss)


def q_learning(dropout=False):
    """A DQN update: double targets, Huber loss, a target network among the arguments."""
    actions = 4
    params = stack([INPUTS, WIDTH, WIDTH, actions])
    batch = {
        "target": params,
        "state": abstract(BATCH, INPUTS),
        "next_state": abstract(BATCH, INPUTS),
        "action": integers(BATCH),
        "reward": abstract(BATCH),
        "done": abstract(BATCH, dtype=jnp.bool_),
    }

    def forward(params, batch, key=None):
        return jnp.argmax(apply_stack(params, batch["state"]), axis=-1)

    def loss(params, batch, key=None):
        values = apply_stack(params, batch["state"])
        value = jnp.take_along_axis(values, batch["action"][:, None], axis=1)[:, 0]
        best = jnp.argmax(apply_stack(params, batch["next_state"]), axis=1)
        later = apply_stack(batch["target"], batch["next_state"])
        later = jnp.take_along_axis(later, best[:, None], axis=1)[:, 0]
        goal = batch["reward"] + 0.99 * jnp.where(batch["done"], 0.0, later)
        error = value - jax.lax.stop_gradient(goal)
        small = jnp.minimum(jnp.abs(error), 1.0)
        return jnp.mean(0.5 * small**2 + (jnp.abs(error) - small))

    return Task(params, batch, forward, loss)


def autoencoder(dropout=False):
    """A variational autoencoder: the noise comes from the key that dropout would use."""
    hidden = 8
    params = {
        "encoder": stack([INPUTS, WIDTH, 2 * hidden]),
        "decoder": stack([hidden, WIDTH, INPUTS]),
    }

    def encode(params, x):
        return jnp.split(apply_stack(params["encoder"], x, jax.nn.softplus), 2, axis=-1)

    def forward(params, x, key=None):
        return jax.nn.sigmoid(apply_stack(params["decoder"], encode(params, x)[0]))

    def loss(params, x, key):
        mean, log_variance = encode(params, x)
        noise = jax.random.normal(key, mean.shape)
        logits = apply_stack(params["decoder"], mean + jnp.exp(0.5 * log_variance) * noise)
        fit = jnp.sum(jnp.maximum(logits, 0) - logits * x + jnp.log1p(jnp.exp(-jnp.abs(logits))))
        divergence = -0.5 * jnp.sum(1 + log_variance - mean**2 - jnp.exp(log_variance))
        return (fit + divergence) / BATCH

    return Task(params, abstract(BATCH, INPUTS), forward, loss)


def radiance_field(dropout=False):
    """A small NeRF: sines of positions, a perceptron, and compositing along rays."""
    rays, samples, bands = 8, 12, 4
    params = stack([3 * 2 * bands, WIDTH, WIDTH, 4])
    batch = {
        "origin": abstract(rays, 3),
        "direction": abstract(rays, 3),
        "color": abstract(rays, 3),
    }

    def forward(params, batch, key=None):
        depths = jnp.linspace(0.5, 3.0, samples)
        if key is not None:
            depths = depths + jax.random.uniform(key, (rays, samples)) * 0.2
        else:
            depths = jnp.broadcast_to(depths, (rays, samples))
        points = batch["origin"][:, None] + depths[..., None] * batch["direction"][:, None]
        waves = points[..., None, :] * (2.0 ** jnp.arange(bands))[:, None]
        waves = jnp.concatenate([jnp.sin(waves), jnp.cos(waves)], axis=-1)
        found = apply_stack(params, waves.reshape(rays, samples, -1))
        density = jax.nn.softplus(found[..., 3])
        steps = jnp.diff(depths, axis=1, append=depths[:, -1:] + 1e3)
        opacity = 1 - jnp.exp(-density * steps)
        seen = jnp.cumprod(1 - opacity + 1e-10, axis=1)
        weights = opacity * jnp.concatenate([jnp.ones((rays, 1)), seen[:, :-1]], axis=1)
        return jnp.sum(weights[..., None] * jax.nn.sigmoid(found[..., :3]), axis=1)

    def loss(params, batch, key=None):
        return jnp.mean(jnp.square(forward(params, batch, key) - batch["color"]))

    return Task(params, batch, forward, loss)


def specs():
    def perceptron(kind, **options):
        return of("mlp", "classifier", "perceptron", classifier, kind, **options)

    yield perceptron("forward", depth=8)
    yield perceptron("gradient", depth=6, activation="gelu")
    yield perceptron("train", depth=3, optimizer="sgd-momentum")
    yield perceptron("train", depth=4, activation="selu", optimizer="adamax", dtype="bf16")
    yield perceptron("train", depth=3, activation="mish", optimizer="adan", dropout=True, steps=4)
    yield perceptron("train", depth=8, optimizer="fromage", average=True)
    yield of("mlp", "mixer", "MLP-Mixer", mixer, "forward", depth=4)
    yield of(
        "mlp", "mixer", "MLP-Mixer", mixer, "train", depth=2, optimizer="amsgrad", dropout=True
    )
    yield of("mlp", "dqn", "Q network", q_learning, "train", optimizer="adam", clip="value")
    title = "variational autoencoder"
    yield of("mlp", "vae", title, autoencoder, "train", optimizer="adam", noise=True)
    title = "neural radiance field"
    yield of("mlp", "nerf", title, radiance_field, "forward")
    yield of("mlp", "nerf", title, radiance_field, "train", optimizer="sign-sgd", noise=True)
