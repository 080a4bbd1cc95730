"""Mixtures of experts: tokens are routed to a few of many feed-forward networks."""

import functools

import jax
import jax.numpy as jnp
from jax import lax

from families.layers import dense_params, layer_norm, norm_params, of
from lowering import abstract, integers
from variants import Task

BATCH, LENGTH, WIDTH, EXPERTS, VOCAB = 4, 8, 32, 4, 64
TOKENS = BATCH * LENGTH


def top_k_routes(scores, chosen, capacity):
    """One-hot dispatch [token, choice, expert, slot] and gates; full experts drop tokens."""
    gates, indices = lax.top_k(scores, chosen)
    gates = gates / jnp.sum(gates, axis=-1, keepdims=True)
    requests = jax.nn.one_hot(indices.T.reshape(-1), EXPERTS, dtype=jnp.int32)
    before = (jnp.cumsum(requests, axis=0) - 1) * requests
    slots = jnp.sum(before, axis=-1).reshape(chosen, -1).T
    dispatch = (
        jax.nn.one_hot(indices, EXPERTS)[..., None] * jax.nn.one_hot(slots, capacity)[:, :, None, :]
    )
    return dispatch, gates, indices


def expert_layer(p, x):
    hidden = jax.nn.silu(jnp.einsum("ecd,edf->ecf", x, p["up"]))
    return jnp.einsum("ecf,efd->ecd", hidden, p["down"])


def capacity_routing(p, x, chosen, key):
    """Einsum dispatch under a capacity limit, as in Switch and GShard."""
    logits = x @ p["router"]
    if key is not None:
        logits = logits * jax.random.uniform(key, logits.shape, minval=0.98, maxval=1.02)
    scores = jax.nn.softmax(logits)
    dispatch, gates, indices = top_k_routes(scores, chosen, capacity=16)
    outputs = expert_layer(p, jnp.einsum("tkec,td->ecd", dispatch, x))
    mixed = jnp.einsum("tkec,tk,ecd->td", dispatch, gates, outputs)
    share = jnp.mean(jax.nn.one_hot(indices[:, 0], EXPERTS), axis=0)
    balance = EXPERTS * jnp.sum(share * jnp.mean(scores, axis=0))
    return mixed, balance + 1e-3 * jnp.mean(jnp.square(jax.nn.logsumexp(logits, axis=-1)))


def sorted_routing(p, x, chosen, key):
    """Tokens sorted by expert, a ragged product by group, then put back: no token is dropped."""
    scores = jax.nn.softmax(x @ p["router"])
    gates, indices = lax.top_k(scores, chosen)
    flat = indices.reshape(-1)
    order = jnp.argsort(flat)
    groups = jnp.bincount(flat, length=EXPERTS).astype(jnp.int32)
    grouped = x[order // chosen]
    hidden = jax.nn.silu(lax.ragged_dot(grouped, p["up"], groups))
    outputs = lax.ragged_dot(hidden, p["down"], groups) * gates.reshape(-1)[order][:, None]
    mixed = jax.ops.segment_sum(outputs, order // chosen, num_segments=x.shape[0])
    return mixed, EXPERTS * jnp.sum(jnp.mean(scores, axis=0) * groups / flat.shape[0])


def expert_choice(p, x, chosen, key):
    """Each expert picks its tokens, so the load is even by construction."""
    scores = jax.nn.softmax(x @ p["router"]).T
    gates, picked = lax.top_k(scores, TOKENS * chosen // EXPERTS)
    outputs = expert_layer(p, x[picked]) * gates[..., None]
    mixed = jnp.zeros_like(x).at[picked.reshape(-1)].add(outputs.reshape(-1, WIDTH))
    return mixed, jnp.zeros(())


def soft_routing(p, x, chosen, key):
    """Slots are weighted means of all tokens (soft mixture of experts)."""
    logits = x @ p["router"]
    gathered = jnp.einsum("te,td->ed", jax.nn.softmax(logits, axis=0), x)
    outputs = expert_layer(p, gathered[:, None])[:, 0]
    return jax.nn.softmax(logits, axis=1) @ outputs, jnp.zeros(())


ROUTERS = {
    "capacity": capacity_routing,
    "sorted": sorted_routing,
    "expert-choice": expert_choice,
    "soft": soft_routing,
}


def task(routing, depth=1, chosen=2, dropout=False):
    """Blocks of norm and experts over token embeddings, trained on the next token."""
    layer = {
        "norm": norm_params(WIDTH),
        "router": abstract(WIDTH, EXPERTS),
        "up": abstract(EXPERTS, WIDTH, 2 * WIDTH),
        "down": abstract(EXPERTS, 2 * WIDTH, WIDTH),
    }
    params = {
        "embedding": abstract(VOCAB, WIDTH),
        "layers": [layer] * depth,
        "head": dense_params(WIDTH, VOCAB),
    }

    def apply(params, tokens, key):
        x = params["embedding"][tokens].reshape(TOKENS, WIDTH)
        penalty = jnp.zeros(())
        for index, p in enumerate(params["layers"]):
            layer_key = None if key is None else jax.random.fold_in(key, index)
            mixed, balance = ROUTERS[routing](p, layer_norm(p["norm"], x), chosen, layer_key)
            x, penalty = x + mixed, penalty + balance
        logits = x @ params["head"]["kernel"] + params["head"]["bias"]
        return logits.reshape(BATCH, LENGTH, VOCAB), penalty

    def forward(params, tokens, key=None):
        return apply(params, tokens, key)

    def loss(params, tokens, key=None):
        logits, penalty = apply(params, tokens, key)
        scores = jax.nn.log_softmax(logits[:, :-1])
        picked = jnp.take_along_axis(scores, tokens[:, 1:, None], axis=-1)
        return 0.01 * penalty - jnp.mean(picked)

    return Task(params, integers(BATCH, LENGTH), forward, loss)


def title(routing):
    return f"mixture of experts with {routing} routing"


def make(routing):
    return functools.partial(task, routing)


def specs():
    def model(kind, routing, **options):
        return of("moe", routing, title(routing), make(routing), kind, **options)

    yield from (model("forward", routing=name) for name in ROUTERS)
    yield model("forward", routing="capacity", depth=3, chosen=1)
    yield model("gradient", routing="capacity", depth=2)
    yield model("gradient", routing="sorted")
    yield model("gradient", routing="expert-choice", depth=2)
    yield model("train", routing="capacity", optimizer="adamw", noise=True, clip="norm")
    yield model("train", routing="capacity", depth=4, optimizer="adafactor")
    yield model("train", routing="sorted", depth=2, optimizer="adamw")
    yield model("train", routing="soft", depth=2, optimizer="lion")
