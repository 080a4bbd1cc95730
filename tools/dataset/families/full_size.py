"""What the programs of hlo-full-v1 share: real sizes, and a parameter count that is checked."""

import math

import jax
import optax

import training
from lowering import lower
from spec import Spec


def count_parameters(params):
    return sum(math.prod(leaf.shape) for leaf in jax.tree.leaves(params))


def full_size(family, name, kind, what, make, parameters, libraries, **options):
    """The spec of one program; `make()` returns the abstract parameters and the lowered graph.

    `parameters` is written down, so that a list of the programs needs no model, and compared
    with the shapes when the graph is made.
    """

    def build():
        params, lowered = make()
        found = count_parameters(params)
        if found != parameters:
            raise ValueError(f"the model has {found:,} parameters, not {parameters:,}")
        return lowered

    return Spec(
        family=family,
        name=name,
        kind=kind,
        what=what,
        build=build,
        options={"parameters": parameters, **options},
        libraries=libraries,
        dataset="hlo-full-v1",
    )


def warm_up_cosine(peak, warm_up, steps):
    """Linear warm-up, then cosine decay to a tenth of the peak."""
    return optax.warmup_cosine_decay_schedule(0.0, peak, warm_up, steps, 0.1 * peak)


def adamw(rate, weight_decay, b2=0.999, clip=1.0):
    """AdamW after clipping by the global norm; biases and norms do not decay."""
    optimizer = optax.adamw(rate, b2=b2, weight_decay=weight_decay, mask=training.spare_vectors)
    return optax.chain(optax.clip_by_global_norm(clip), optimizer)


def lower_step(loss, params, batch, optimizer, dropout=False, average=False):
    """The training step of `loss(params, batch, key)`; `dropout` is False, True or "rbg"."""
    step = training.train_step(loss, optimizer, average=average)
    state = jax.eval_shape(optimizer.init, params)
    state = (state, params) if average else state

    def train_step(params, state, batch, *key):
        return step(params, state, batch, *map(training.typed_key, key))

    return lower(train_step, params, state, batch, *training.key_arguments(dropout))
