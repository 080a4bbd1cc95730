"""Recurrent networks: LSTM, GRU and a linear recurrence, as scans over time."""

import jax
import jax.numpy as jnp
from jax import lax

from families.layers import dense, dense_params, drop, of
from lowering import abstract, integers
from variants import Task

BATCH, LENGTH, WIDTH, VOCAB = 4, 12, 32, 64


def lstm_params(inputs, width):
    return {"gates": dense_params(inputs + width, 4 * width)}


def lstm_cell(p, carry, x):
    hidden, memory = carry
    gates = dense(p["gates"], jnp.concatenate([x, hidden], axis=-1))
    enter, forget, candidate, leave = jnp.split(gates, 4, axis=-1)
    memory = jax.nn.sigmoid(forget + 1.0) * memory + jax.nn.sigmoid(enter) * jnp.tanh(candidate)
    hidden = jax.nn.sigmoid(leave) * jnp.tanh(memory)
    return (hidden, memory), hidden


def gru_params(inputs, width):
    return {
        "gates": dense_params(inputs + width, 2 * width),
        "candidate": dense_params(inputs + width, width),
    }


def gru_cell(p, hidden, x):
    gates = jax.nn.sigmoid(dense(p["gates"], jnp.concatenate([x, hidden], axis=-1)))
    reset, update = jnp.split(gates, 2, axis=-1)
    candidate = jnp.tanh(dense(p["candidate"], jnp.concatenate([x, reset * hidden], axis=-1)))
    hidden = update * hidden + (1 - update) * candidate
    return hidden, hidden


CELLS = {"lstm": (lstm_params, lstm_cell), "gru": (gru_params, gru_cell)}


def run_cell(cell, p, x, reverse=False, unroll=1):
    """`x` is [batch, time, feature]; the scan runs over time."""
    _, step = CELLS[cell]
    zeros = jnp.zeros((x.shape[0], WIDTH), x.dtype)
    carry = (zeros, zeros) if cell == "lstm" else zeros
    _, found = lax.scan(
        lambda carry, x: step(p, carry, x), carry, x.swapaxes(0, 1), reverse=reverse, unroll=unroll
    )
    return found.swapaxes(0, 1)


def token_loss(logits, tokens):
    """Each position predicts the next token."""
    picked = jnp.take_along_axis(
        jax.nn.log_softmax(logits[:, :-1].astype(jnp.float32)), tokens[:, 1:, None], axis=-1
    )
    return -jnp.mean(picked)


def language_model(cell="lstm", depth=1, unroll=1, dropout=False, dtype="f32"):
    """Next-token prediction with stacked recurrent layers."""
    make, _ = CELLS[cell]
    params = {
        "embedding": abstract(VOCAB, WIDTH),
        "layers": [make(WIDTH, WIDTH) for _ in range(depth)],
        "head": dense_params(WIDTH, VOCAB),
    }

    def forward(params, tokens, key=None):
        if dtype == "bf16":
            params = jax.tree.map(lambda leaf: leaf.astype(jnp.bfloat16), params)
        x = params["embedding"][tokens]
        for index, p in enumerate(params["layers"]):
            layer_key = None if key is None else jax.random.fold_in(key, index)
            x = drop(layer_key, run_cell(cell, p, x, unroll=unroll))
        return dense(params["head"], x)

    def loss(params, tokens, key=None):
        return token_loss(forward(params, tokens, key), tokens)

    return Task(params, integers(BATCH, LENGTH), forward, loss)


def bidirectional_tagger(cell="lstm", depth=1, dropout=False):
    """Two directions, joined; one label for each position, with a mask for padding."""
    make, _ = CELLS[cell]
    labels = 6
    layers = [
        {"forward": make(size, WIDTH), "backward": make(size, WIDTH)}
        for size in [WIDTH] + [2 * WIDTH] * (depth - 1)
    ]
    params = {
        "embedding": abstract(VOCAB, WIDTH),
        "layers": layers,
        "head": dense_params(2 * WIDTH, labels),
    }
    tokens = integers(BATCH, LENGTH)

    def forward(params, batch, key=None):
        x = params["embedding"][batch["tokens"]]
        for p in params["layers"]:
            ahead = run_cell(cell, p["forward"], x)
            back = run_cell(cell, p["backward"], x, reverse=True)
            x = drop(key, jnp.concatenate([ahead, back], axis=-1))
        return dense(params["head"], x)

    def loss(params, batch, key=None):
        scores = jax.nn.log_softmax(forward(params, batch, key))
        picked = jnp.take_along_axis(scores, batch["labels"][..., None], axis=-1)[..., 0]
        weights = (batch["tokens"] != 0).astype(jnp.float32)
        return -jnp.sum(picked * weights) / jnp.maximum(jnp.sum(weights), 1.0)

    return Task(params, {"tokens": tokens, "labels": tokens}, forward, loss)


def state_space(depth=2, dropout=False):
    """A linear recurrence by an associative scan, with a gated output (as S4 and LRU do)."""
    layer = {
        "decay": abstract(WIDTH),
        "enter": dense_params(WIDTH, WIDTH),
        "gate": dense_params(WIDTH, 2 * WIDTH),
    }
    params = {
        "embedding": abstract(VOCAB, WIDTH),
        "layers": [layer] * depth,
        "head": dense_params(WIDTH, VOCAB),
    }

    def join(earlier, later):
        return earlier[0] * later[0], later[0] * earlier[1] + later[1]

    def forward(params, tokens, key=None):
        x = params["embedding"][tokens]
        for p in params["layers"]:
            decay = jnp.broadcast_to(jax.nn.sigmoid(p["decay"]), x.shape)
            _, states = lax.associative_scan(join, (decay, dense(p["enter"], x)), axis=1)
            value, gate = jnp.split(dense(p["gate"], drop(key, jax.nn.gelu(states))), 2, axis=-1)
            x = x + value * jax.nn.sigmoid(gate)
        return dense(params["head"], x)

    def loss(params, tokens, key=None):
        return token_loss(forward(params, tokens, key), tokens)

    return Task(params, integers(BATCH, LENGTH), forward, loss)


def attention_decoder(dropout=False):
    """A GRU encoder and a GRU decoder that attends to it, as translation before transformers."""
    params = {
        "embedding": abstract(VOCAB, WIDTH),
        "encoder": gru_params(WIDTH, WIDTH),
        "decoder": gru_params(2 * WIDTH, WIDTH),
        "query": dense_params(WIDTH, WIDTH),
        "head": dense_params(WIDTH, VOCAB),
    }
    tokens = integers(BATCH, LENGTH)

    def forward(params, batch, key=None):
        memory = run_cell("gru", params["encoder"], params["embedding"][batch["source"]])
        memory = drop(key, memory)

        def step(hidden, x):
            scores = jnp.einsum("bd,btd->bt", dense(params["query"], hidden), memory)
            context = jnp.einsum("bt,btd->bd", jax.nn.softmax(scores), memory)
            return gru_cell(params["decoder"], hidden, jnp.concatenate([x, context], axis=-1))

        inputs = params["embedding"][batch["target"]].swapaxes(0, 1)
        _, states = lax.scan(step, memory[:, -1], inputs)
        return dense(params["head"], states.swapaxes(0, 1))

    def loss(params, batch, key=None):
        return token_loss(forward(params, batch, key), batch["target"])

    return Task(params, {"source": tokens, "target": tokens}, forward, loss)


def specs():
    def language(kind, **options):
        return of("rnn", "language", "recurrent language model", language_model, kind, **options)

    def tagger(kind, **options):
        title = "bidirectional tagger"
        return of("rnn", "tagger", title, bidirectional_tagger, kind, **options)

    def linear(kind, **options):
        return of("rnn", "state-space", "state-space model", state_space, kind, **options)

    yield language("forward", cell="lstm", depth=1)
    yield language("forward", cell="gru", depth=2)
    yield language("forward", cell="lstm", depth=2, dtype="bf16")
    yield language("gradient", cell="lstm", depth=1, unroll=4)
    yield language("train", cell="lstm", depth=2, optimizer="adam", dropout=True, clip="norm")
    yield language("train", cell="gru", depth=3, optimizer="rmsprop")
    yield language("train", cell="gru", depth=1, optimizer="adadelta", accumulate=2)
    yield tagger("forward", cell="lstm", depth=2)
    yield tagger("train", cell="gru", depth=2, optimizer="adamw", dropout=True)
    yield linear("forward", depth=2)
    yield linear("gradient", depth=3)
    yield linear("train", depth=2, optimizer="adamw", dropout=True)
    yield of(
        "rnn", "translator", "attentive translator", attention_decoder, "train",
        optimizer="adam", clip="norm",
    )  # fmt: skip
