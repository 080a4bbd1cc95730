"""A recurrent language model and a graph network, at the sizes of their usual benchmarks."""

import jax
import jax.numpy as jnp
import optax
from jax import lax

from families.full_size import full_size, lower_step
from families.layers import TRAIN_LIBRARIES, dense, dense_params, drop, layer_norm, norm_params
from families.rnn import lstm_cell, lstm_params
from lowering import KEY, abstract, integers, lower


def lstm_train():
    """Truncated backpropagation: the state of the last batch comes in, the new one goes out."""
    batch, length, width, vocab, depth = 32, 256, 1024, 10_000, 2
    params = {
        "embedding": abstract(vocab, width),
        "layers": [lstm_params(width, width) for _ in range(depth)],
        "head": dense_params(width, vocab),
    }
    carry = [(abstract(batch, width),) * 2 for _ in range(depth)]
    optimizer = optax.chain(optax.clip_by_global_norm(5.0), optax.sgd(1.0))

    def loss(params, carry, tokens, targets, key):
        keys = jax.random.split(key, depth + 1)
        x = drop(keys[0], params["embedding"][tokens.T], rate=0.5)
        ends = []
        for p, start, layer_key in zip(params["layers"], carry, keys[1:], strict=True):
            end, x = lax.scan(lambda carry, x, p=p: lstm_cell(p, carry, x), start, x)
            x = drop(layer_key, x, rate=0.5)
            ends.append(end)
        logits = dense(params["head"], x)
        losses = optax.softmax_cross_entropy_with_integer_labels(logits, targets.T)
        return jnp.mean(losses), ends

    def train_step(params, state, carry, tokens, targets, key):
        gradient = jax.value_and_grad(loss, has_aux=True)
        (value, carry), gradients = gradient(params, carry, tokens, targets, key)
        updates, state = optimizer.update(gradients, state, params)
        return optax.apply_updates(params, updates), state, carry, value

    state = jax.eval_shape(optimizer.init, params)
    tokens = integers(batch, length)
    return params, lower(train_step, params, state, carry, tokens, tokens, KEY)


def graph_train():
    """Node classification with GIN layers on one large graph, like the smaller ones of OGB."""
    nodes, edges, features, width, classes, depth = 100_000, 1_000_000, 128, 256, 40, 4

    def layer(inputs):
        return {
            "self": abstract(),
            "first": dense_params(inputs, width),
            "norm": norm_params(width),
            "second": dense_params(width, width),
        }

    params = {
        "layers": [layer(features)] + [layer(width)] * (depth - 1),
        "leave": dense_params(width, classes),
    }
    batch = {
        "nodes": abstract(nodes, features),
        "source": integers(edges),
        "target": integers(edges),
        "classes": integers(nodes),
        "known": abstract(nodes),
    }

    def loss(params, batch, key):
        x = batch["nodes"]
        for index, p in enumerate(params["layers"]):
            total = jax.ops.segment_sum(x[batch["source"]], batch["target"], num_segments=nodes)
            y = dense(p["first"], (1 + p["self"]) * x + total)
            y = dense(p["second"], jax.nn.relu(layer_norm(p["norm"], y)))
            x = drop(jax.random.fold_in(key, index), jax.nn.relu(y), rate=0.5)
        scores = jax.nn.log_softmax(dense(params["leave"], x))
        picked = jnp.take_along_axis(scores, batch["classes"][:, None], axis=1)[:, 0]
        return -jnp.sum(picked * batch["known"]) / jnp.maximum(jnp.sum(batch["known"]), 1)

    return params, lower_step(loss, params, batch, optax.adam(0.01), dropout=True)


def specs():
    yield full_size(
        "rnn", "train-lstm-1024-dropout", "train",
        "Training step of a 2-layer LSTM language model of width 1,024 with gradient descent, "
        "clipping and dropout, 32 texts of 256 tokens, f32.",
        lstm_train, 37_275_408, TRAIN_LIBRARIES,
        batch=32, length=256, dtype="f32", optimizer="sgd", dropout=True,
    )  # fmt: skip
    yield full_size(
        "graphnet", "train-gin-dropout", "train",
        "Training step of a 4-layer graph network (GIN) of width 256 with Adam and dropout, "
        "100,000 nodes and 1,000,000 edges, f32.",
        graph_train, 505_900, TRAIN_LIBRARIES,
        nodes=100_000, edges=1_000_000, dtype="f32", optimizer="adam", dropout=True,
    )  # fmt: skip
