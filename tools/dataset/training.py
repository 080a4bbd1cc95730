"""Training steps as people run them, for any loss: optimizers, clipping, accumulation, averages.

A loss here is `loss(params, batch, key)`, where `batch` is a dict of arrays and `key` is the
dropout key or None.
"""

import jax
import jax.numpy as jnp
import optax
from jax import lax

from lowering import KEY, RBG_KEY, abstract, lower


def schedule(peak=1e-3):
    """Linear warm-up, then cosine decay: the schedule of most language models."""
    return optax.warmup_cosine_decay_schedule(0.0, peak, 100, 10_000, 1e-5)


def spare_vectors(params):
    """The mask of weight decay: biases and norms (rank below two) are spared."""
    return jax.tree.map(lambda leaf: leaf.ndim > 1, params)


# What `make_optimizer` knows by name. All come from optax; rates are those of common recipes.
OPTIMIZERS = {
    "adamw": lambda: optax.adamw(schedule(), weight_decay=0.01, mask=spare_vectors),
    "adamw-constant": lambda: optax.adamw(3e-4, weight_decay=0.01),
    "adam": lambda: optax.adam(1e-3),
    "sgd": lambda: optax.sgd(0.1),
    "sgd-momentum": lambda: optax.sgd(0.1, momentum=0.9),
    "sgd-nesterov": lambda: optax.sgd(schedule(0.1), momentum=0.9, nesterov=True),
    "lion": lambda: optax.lion(1e-4, weight_decay=0.1),
    "lamb": lambda: optax.lamb(1e-3, weight_decay=0.01),
    "lars": lambda: optax.lars(0.1, weight_decay=1e-4),
    "adafactor": lambda: optax.adafactor(1e-3, min_dim_size_to_factor=32),
    "rmsprop": lambda: optax.rmsprop(1e-3, decay=0.95, momentum=0.9),
    "adagrad": lambda: optax.adagrad(1e-2),
    "adadelta": lambda: optax.adadelta(1.0),
    "adamax": lambda: optax.adamax(1e-3),
    "amsgrad": lambda: optax.amsgrad(1e-3),
    "nadamw": lambda: optax.nadamw(1e-3, weight_decay=0.01),
    "radam": lambda: optax.radam(1e-3),
    "yogi": lambda: optax.yogi(1e-2),
    "adabelief": lambda: optax.adabelief(1e-3),
    "novograd": lambda: optax.novograd(1e-3),
    "adan": lambda: optax.adan(1e-3, weight_decay=0.01),
    "sm3": lambda: optax.sm3(0.1),
    "fromage": lambda: optax.fromage(1e-2),
    "sign-sgd": lambda: optax.sign_sgd(1e-3),
    "muon": lambda: optax.contrib.muon(1e-3),
    "prodigy": lambda: optax.contrib.prodigy(1.0),
    "schedule-free": lambda: optax.contrib.schedule_free_adamw(1e-3, warmup_steps=100),
}


def make_optimizer(name, clip=None):
    """The optimizer, after clipping: "norm" over all gradients, "block" or "value" for each."""
    optimizer = OPTIMIZERS[name]()
    clippers = {
        "norm": lambda: optax.clip_by_global_norm(1.0),
        "block": lambda: optax.clip_by_block_rms(1.0),
        "value": lambda: optax.clip(1.0),
        "adaptive": lambda: optax.adaptive_grad_clip(0.01),
    }
    return optax.chain(clippers[clip](), optimizer) if clip else optimizer


def accumulated_gradients(loss, params, batch, key, pieces):
    """Mean loss and gradients over `pieces` micro-batches, by lax.scan: one in memory at a time."""
    micro = jax.tree.map(lambda leaf: leaf.reshape(pieces, -1, *leaf.shape[1:]), batch)
    keys = None if key is None else jax.random.split(key, pieces)

    def add(total, piece):
        piece_batch, piece_key = piece
        found = jax.value_and_grad(loss)(params, piece_batch, piece_key)
        return jax.tree.map(jnp.add, total, found), None

    nothing = (jnp.zeros(()), jax.tree.map(jnp.zeros_like, params))
    total, _ = lax.scan(add, nothing, (micro, keys))
    return jax.tree.map(lambda leaf: leaf / pieces, total)


def train_step(loss, optimizer, accumulate=1, average=False):
    """One step: `step(params, state, batch[, key])` gives new parameters, state and metrics.

    With `average` the state is a pair and carries an exponential moving average of the parameters.
    """

    def step(params, state, batch, key=None):
        optimizer_state, slow_params = state if average else (state, None)
        if accumulate > 1:
            value, gradients = accumulated_gradients(loss, params, batch, key, accumulate)
        else:
            value, gradients = jax.value_and_grad(loss)(params, batch, key)
        updates, optimizer_state = optimizer.update(gradients, optimizer_state, params)
        params = optax.apply_updates(params, updates)
        metrics = {"loss": value, "gradient_norm": optax.global_norm(gradients)}
        if average:
            slow_params = optax.incremental_update(params, slow_params, 0.001)
            return params, (optimizer_state, slow_params), metrics
        return params, optimizer_state, metrics

    return step


def loop_of_steps(step):
    """Several steps in one program, scanned over stacked batches, as input-bound loops do."""

    def run(params, state, batches, *keys):
        def one(carry, batch):
            params, state, *keys = carry
            used = []
            if keys:
                key, next_key = jax.random.split(keys[0])
                used, keys = [key], [next_key]
            params, state, metrics = step(params, state, batch, *used)
            return (params, state, *keys), metrics

        (params, state, *_), metrics = lax.scan(one, (params, state, *keys), batches)
        return params, state, metrics

    return run


def dynamic_loss_scale_step(loss, optimizer):
    """Half-precision training: a scaled loss; a step with overflow is skipped by a conditional."""

    def step(params, state, scale, good_steps, batch, key=None):
        def scaled(params):
            return loss(params, batch, key) * scale

        value, gradients = jax.value_and_grad(scaled)(params)
        gradients = jax.tree.map(lambda leaf: leaf / scale, gradients)
        leaves = jax.tree.leaves(gradients)
        finite = jnp.all(jnp.stack([jnp.all(jnp.isfinite(leaf)) for leaf in leaves]))

        def apply(carry):
            params, state = carry
            updates, state = optimizer.update(gradients, state, params)
            return optax.apply_updates(params, updates), state

        value = value / scale
        params, state = lax.cond(finite, apply, lambda carry: carry, (params, state))
        grown = jnp.where(good_steps >= 1000, scale * 2, scale)
        scale = jnp.where(finite, grown, jnp.maximum(scale / 2, 1.0))
        good_steps = jnp.where(finite & (good_steps < 1000), good_steps + 1, 0)
        return params, state, scale, good_steps, value

    return step


def key_arguments(dropout):
    """The abstract arguments that carry the dropout key: none, threefry's, or rbg's."""
    return {False: [], True: [KEY], "rbg": [RBG_KEY]}[dropout]


def typed_key(data):
    """Raw key data is threefry's or rbg's by its size."""
    return jax.random.wrap_key_data(data, impl="rbg") if data.shape == (4,) else data


def lower_loss(loss, params, batch, dropout=False):
    def loss_only(params, batch, *key):
        return loss(params, batch, typed_key(*key) if key else None)

    return lower(loss_only, params, batch, *key_arguments(dropout), name="loss")


def lower_gradient(loss, params, batch, dropout=False, accumulate=1):
    def gradient(params, batch, *key):
        key = typed_key(*key) if key else None
        if accumulate > 1:
            return accumulated_gradients(loss, params, batch, key, accumulate)
        return jax.value_and_grad(loss)(params, batch, key)

    return lower(gradient, params, batch, *key_arguments(dropout), name="gradient")


def lower_train(
    loss,
    params,
    batch,
    optimizer="adamw",
    dropout=False,
    clip=None,
    accumulate=1,
    average=False,
    steps=1,
):
    """The training step (or a scan over `steps` of them) of `loss(params, batch, key)`."""
    chosen = make_optimizer(optimizer, clip)
    step = train_step(loss, chosen, accumulate, average)
    state = jax.eval_shape(chosen.init, params)
    state = (state, params) if average else state
    if steps > 1:
        step = loop_of_steps(step)
        batch = jax.tree.map(lambda leaf: abstract(steps, *leaf.shape, dtype=leaf.dtype), batch)

    def typed_step(params, state, batch, *key):
        return step(params, state, batch, *map(typed_key, key))

    return lower(typed_step, params, state, batch, *key_arguments(dropout), name="train_step")


def lower_scaled_train(loss, params, batch, optimizer="adamw", dropout=False, clip="norm"):
    chosen = make_optimizer(optimizer, clip)
    state = jax.eval_shape(chosen.init, params)
    step = dynamic_loss_scale_step(loss, chosen)
    counter = abstract(dtype=jnp.int32)
    arguments = [params, state, abstract(), counter, batch, *key_arguments(dropout)]
    return lower(step, *arguments, name="train_step")
