"""A Llama of one billion parameters, written out: the sizes of Llama 3.2 1B, a smaller vocabulary.

Rotary angles are computed in the program; transformers' Flax Llama writes them as a large constant.
"""

import jax
import jax.numpy as jnp
from jax import lax

from families.full_size import full_size
from lowering import abstract, integers, lower

LAYERS, WIDTH, HEADS, KV_HEADS, HIDDEN, VOCAB = 16, 2048, 32, 8, 8192, 32_000
HEAD = WIDTH // HEADS
PARAMETERS = 1_038_682_112
ROTARY_BASE = 500_000.0
PROMPT, POSITIONS = 512, 2048


def weights(*shape):
    return abstract(*shape, dtype=jnp.bfloat16)


def llama_params():
    layer = {
        "attention_norm": weights(WIDTH),
        "query": weights(WIDTH, HEADS, HEAD),
        "key": weights(WIDTH, KV_HEADS, HEAD),
        "value": weights(WIDTH, KV_HEADS, HEAD),
        "out": weights(HEADS, HEAD, WIDTH),
        "mlp_norm": weights(WIDTH),
        "gate": weights(WIDTH, HIDDEN),
        "up": weights(WIDTH, HIDDEN),
        "down": weights(HIDDEN, WIDTH),
    }
    # The embedding is also the output layer.
    return {"embedding": weights(VOCAB, WIDTH), "layers": [layer] * LAYERS, "norm": weights(WIDTH)}


def rms_norm(scale, x):
    """In f32, as the published code does it."""
    wide = x.astype(jnp.float32)
    wide = wide * lax.rsqrt(jnp.mean(jnp.square(wide), axis=-1, keepdims=True) + 1e-5)
    return wide.astype(x.dtype) * scale


def rotate(x, positions):
    """Rotary embedding: each pair of features turns by an angle that grows with the position."""
    rates = ROTARY_BASE ** (-jnp.arange(0, HEAD, 2, dtype=jnp.float32) / HEAD)
    angles = positions[:, None, None].astype(jnp.float32) * rates
    cos, sin = jnp.cos(angles), jnp.sin(angles)
    first, second = jnp.split(x.astype(jnp.float32), 2, axis=-1)
    turned = jnp.concatenate([first * cos - second * sin, second * cos + first * sin], axis=-1)
    return turned.astype(x.dtype)


def attend(query, key, value, seen):
    """Each key and value head serves a group of query heads; `seen` is [query, key]."""
    batch, length = query.shape[:2]
    query = query.reshape(batch, length, KV_HEADS, HEADS // KV_HEADS, HEAD)
    scores = jnp.einsum("bqhgd,bkhd->bhgqk", query, key).astype(jnp.float32) / HEAD**0.5
    shares = jax.nn.softmax(jnp.where(seen, scores, -1e30), axis=-1).astype(value.dtype)
    mixed = jnp.einsum("bhgqk,bkhd->bqhgd", shares, value)
    return mixed.reshape(batch, length, HEADS, HEAD)


def through(params, tokens, start, cache=None):
    """The last layer's output and the filled cache; `start` is the first token's position."""
    x = params["embedding"][tokens]
    positions = start + jnp.arange(tokens.shape[1])
    filled = []
    for index, p in enumerate(params["layers"]):
        y = rms_norm(p["attention_norm"], x)
        query = rotate(jnp.einsum("bld,dhk->blhk", y, p["query"]), positions)
        key = rotate(jnp.einsum("bld,dhk->blhk", y, p["key"]), positions)
        value = jnp.einsum("bld,dhk->blhk", y, p["value"])
        if cache is not None:
            old_key, old_value = cache[index]
            key = lax.dynamic_update_slice(old_key, key, (0, start, 0, 0))
            value = lax.dynamic_update_slice(old_value, value, (0, start, 0, 0))
            filled.append((key, value))
        seen = jnp.arange(key.shape[1]) <= positions[:, None]
        x = x + jnp.einsum("blhk,hkd->bld", attend(query, key, value, seen), p["out"])
        y = rms_norm(p["mlp_norm"], x)
        x = x + (jax.nn.silu(y @ p["gate"]) * (y @ p["up"])) @ p["down"]
    return rms_norm(params["norm"], x), filled


def logits_of(params, x):
    return (x @ params["embedding"].T).astype(jnp.float32)


def forward():
    params = llama_params()

    def forward(params, tokens):
        return logits_of(params, through(params, tokens, 0)[0])

    return params, lower(forward, params, integers(1, PROMPT))


def abstract_cache():
    return [(weights(1, POSITIONS, KV_HEADS, HEAD),) * 2 for _ in range(LAYERS)]


def prefill():
    """The prompt at once, into an empty cache; only its last logits are of use."""
    params = llama_params()

    def prefill(params, tokens):
        empty = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), abstract_cache())
        x, cache = through(params, tokens, 0, empty)
        return logits_of(params, x[:, -1]), cache

    return params, lower(prefill, params, integers(1, PROMPT))


def decode():
    """One token: sampled from the logits at a temperature, with the cache moved on."""
    params = llama_params()

    def decode_step(params, cache, token, position, key):
        x, cache = through(params, token, position, cache)
        logits = logits_of(params, x[:, -1])
        return jax.random.categorical(key, logits / 0.7), cache

    key = abstract(2, dtype=jnp.uint32)
    return params, lower(decode_step, params, abstract_cache(), integers(1, 1), integers(), key)


def specs():
    size = {"batch": 1, "dtype": "bf16"}
    yield full_size(
        "llama", "forward-1b-bf16", "forward",
        "Forward pass of a Llama of 1B parameters, a text of 512 tokens, bf16.",
        forward, PARAMETERS, ("jax",), **size, length=PROMPT,
    )  # fmt: skip
    yield full_size(
        "llama", "prefill-1b-bf16", "generate",
        "Prefill of a Llama of 1B parameters: a prompt of 512 tokens into a key-value cache of "
        "2,048 positions, bf16.",
        prefill, PARAMETERS, ("jax",), **size, length=PROMPT, positions=POSITIONS,
    )  # fmt: skip
    yield full_size(
        "llama", "decode-step-1b-bf16", "generate",
        "One sampled decoding step of a Llama of 1B parameters with a key-value cache of "
        "2,048 positions, bf16.",
        decode, PARAMETERS, ("jax",), **size, positions=POSITIONS,
    )  # fmt: skip
