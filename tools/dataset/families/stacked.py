"""Decoders whose blocks are applied one by one, so that layers can be scanned or rematerialised.

transformers' own modules only unroll their layers; large-scale training scans over stacked
parameters instead. The blocks here are transformers' own, only the loop around them is ours.
"""

import jax
import jax.numpy as jnp
from jax import lax

from families.flax_models import LENGTH
from lowering import abstract

REMAT_POLICIES = {
    "remat": None,  # Keep nothing: recompute the whole block.
    "remat-dots": jax.checkpoint_policies.dots_with_no_batch_dims_saveable,
}


def stack_layers(layers):
    """Abstract parameters {"0": tree, "1": tree, ...} as one tree with a leading axis."""
    first = layers["0"]
    return jax.tree.map(lambda leaf: abstract(len(layers), *leaf.shape, dtype=leaf.dtype), first)


def through_layers(apply_block, layers, x, key, scan, remat):
    """`x` through all blocks, where `apply_block(params, x, key)` is one of them.

    `layers` is a dict of trees, or one stacked tree if `scan`; `remat` is None or a policy's name.
    """
    if remat:
        apply_block = jax.checkpoint(apply_block, policy=REMAT_POLICIES[remat])
    if scan:
        count = jax.tree.leaves(layers)[0].shape[0]
        keys = None if key is None else jax.random.split(key, count)
        x, _ = lax.scan(
            lambda x, layer: (apply_block(layer[0], x, layer[1]), None), x, (layers, keys)
        )
        return x
    for index, name in enumerate(sorted(layers, key=int)):
        block_key = None if key is None else jax.random.fold_in(key, index)
        x = apply_block(layers[name], x, block_key)
    return x


def positions(batch):
    """Position ids of a batch that is padded on the right."""
    return jnp.broadcast_to(jnp.arange(LENGTH)[None], batch["input_ids"].shape)


def apply_module(module, params, *arguments, key=None, **keywords):
    """A flax module with dropout if there is a key."""
    rngs = {"dropout": key} if key is not None else {}
    return module.apply(
        {"params": params}, *arguments, deterministic=key is None, rngs=rngs, **keywords
    )
