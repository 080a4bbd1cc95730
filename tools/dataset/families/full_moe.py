"""A transformer whose every other layer is a mixture of experts, as GShard and Switch train it."""

import jax
import jax.numpy as jnp
from jax import lax

from families.full_size import adamw, full_size, lower_step, warm_up_cosine
from families.layers import TRAIN_LIBRARIES, layer_norm, norm_params
from lowering import abstract, integers

LAYERS, WIDTH, HEADS, HIDDEN, EXPERTS, VOCAB = 6, 1024, 16, 4096, 8, 32_000
BATCH, LENGTH = 4, 512
CHOSEN = 2
CAPACITY = LENGTH * CHOSEN * 5 // (4 * EXPERTS)  # A quarter more than an even load.


def moe_params():
    def layer(index):
        experts = (EXPERTS,) if index % 2 else ()
        return {
            "attention_norm": norm_params(WIDTH),
            "qkv": abstract(WIDTH, 3, HEADS, WIDTH // HEADS),
            "out": abstract(HEADS, WIDTH // HEADS, WIDTH),
            "mlp_norm": norm_params(WIDTH),
            "up": abstract(*experts, WIDTH, HIDDEN),
            "down": abstract(*experts, HIDDEN, WIDTH),
            **({"router": abstract(WIDTH, EXPERTS)} if experts else {}),
        }

    return {
        "embedding": abstract(VOCAB, WIDTH),
        "positions": abstract(LENGTH, WIDTH),
        "layers": [layer(index) for index in range(LAYERS)],
        "norm": norm_params(WIDTH),
    }


def attention(p, x):
    query, key, value = jnp.einsum("bld,dchk->cblhk", x, p["qkv"])
    scores = jnp.einsum("bqhk,bshk->bhqs", query, key).astype(jnp.float32)
    places = jnp.arange(x.shape[1])
    scores = jnp.where(places[:, None] >= places, scores * query.shape[-1] ** -0.5, -1e30)
    mixed = jnp.einsum("bhqs,bshk->bqhk", jax.nn.softmax(scores).astype(x.dtype), value)
    return jnp.einsum("bqhk,hkd->bqd", mixed, p["out"])


def routes(scores):
    """Dispatch [group, token, expert, slot] weighted by the gates; full experts drop tokens."""
    gates, indices = lax.top_k(scores, CHOSEN)
    gates = gates / jnp.sum(gates, axis=-1, keepdims=True)
    wanted = jax.nn.one_hot(indices, EXPERTS)
    # First choices come before second choices; within them the order is that of the text.
    queue = wanted.swapaxes(1, 2).reshape(scores.shape[0], -1, EXPERTS)
    slots = jnp.sum((jnp.cumsum(queue, axis=1) - 1) * queue, axis=-1)
    slots = slots.reshape(scores.shape[0], CHOSEN, -1).swapaxes(1, 2).astype(jnp.int32)
    places = jax.nn.one_hot(slots, CAPACITY)
    return jnp.einsum("gtke,gtkc,gtk->gtec", wanted, places, gates), wanted


def experts(p, x):
    """Each text is a group of its own; the loss that evens out the load comes with the result."""
    logits = x.astype(jnp.float32) @ p["router"].astype(jnp.float32)
    scores = jax.nn.softmax(logits)
    combine, wanted = routes(scores)
    dispatch = (combine > 0).astype(x.dtype)
    inputs = jnp.einsum("gtec,gtd->egcd", dispatch, x)
    hidden = jax.nn.gelu(jnp.einsum("egcd,edf->egcf", inputs, p["up"]))
    outputs = jnp.einsum("egcf,efd->egcd", hidden, p["down"])
    mixed = jnp.einsum("gtec,egcd->gtd", combine.astype(x.dtype), outputs)
    share = jnp.mean(wanted[:, :, 0], axis=(0, 1))
    balance = EXPERTS * jnp.sum(share * jnp.mean(scores, axis=(0, 1)))
    return mixed, balance + 1e-1 * jnp.mean(jnp.square(jax.nn.logsumexp(logits, axis=-1)))


def loss(params, tokens, key=None):
    """Next-token prediction in bf16, with the penalties of the routers."""
    params = jax.tree.map(lambda leaf: leaf.astype(jnp.bfloat16), params)
    x = params["embedding"][tokens] + params["positions"]
    penalty = jnp.zeros(())
    for p in params["layers"]:
        x = x + attention(p, layer_norm(p["attention_norm"], x))
        y = layer_norm(p["mlp_norm"], x)
        if "router" in p:
            mixed, balance = experts(p, y)
            x, penalty = x + mixed, penalty + balance
        else:
            x = x + jax.nn.gelu(y @ p["up"]) @ p["down"]
    logits = layer_norm(params["norm"], x) @ params["embedding"].T
    scores = jax.nn.log_softmax(logits[:, :-1].astype(jnp.float32))
    picked = jnp.take_along_axis(scores, tokens[:, 1:, None], axis=-1)
    return 0.01 * penalty - jnp.mean(picked)


def train():
    params = moe_params()
    optimizer = adamw(warm_up_cosine(3e-4, 2000, 100_000), weight_decay=0.1, b2=0.95)
    return params, lower_step(loss, params, integers(BATCH, LENGTH), optimizer)


def specs():
    yield full_size(
        "moe", "train-8-experts-bf16", "train",
        "Training step of a 6-layer mixture-of-experts transformer with AdamW: 8 experts in every "
        "other layer, two for each token; 4 texts of 512 tokens, bf16.",
        train, 285_001_728, TRAIN_LIBRARIES,
        batch=BATCH, length=LENGTH, dtype="bf16", experts=EXPERTS, optimizer="adamw",
    )  # fmt: skip
