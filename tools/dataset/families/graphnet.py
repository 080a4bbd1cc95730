"""Graph networks: messages along edges by gather, sums at nodes by scatter."""

import functools

import jax
import jax.numpy as jnp

from families.layers import dense, dense_params, drop, layer_norm, norm_params, of
from lowering import abstract, integers
from variants import Task

NODES, EDGES, GRAPHS, WIDTH, CLASSES = 24, 64, 4, 16, 5


def segment_softmax(scores, segments):
    """Softmax over the edges that end at the same node."""
    highest = jax.ops.segment_max(scores, segments, num_segments=NODES)
    grown = jnp.exp(scores - highest[segments])
    total = jax.ops.segment_sum(grown, segments, num_segments=NODES)
    return grown / (total[segments] + 1e-9)


def convolution(p, x, batch):
    """A graph convolution with symmetric normalisation (GCN)."""
    source, target = batch["source"], batch["target"]
    ones = jnp.ones(EDGES)
    leaving = jax.ops.segment_sum(ones, source, num_segments=NODES) + 1
    arriving = jax.ops.segment_sum(ones, target, num_segments=NODES) + 1
    x = dense(p["message"], x)
    messages = (x * jax.lax.rsqrt(leaving)[:, None])[source]
    total = jax.ops.segment_sum(messages, target, num_segments=NODES)
    return jax.nn.relu(total * jax.lax.rsqrt(arriving)[:, None] + x / arriving[:, None])


def attention(p, x, batch):
    """Attention over neighbours (GAT)."""
    source, target = batch["source"], batch["target"]
    x = dense(p["message"], x)
    scores = jax.nn.leaky_relu(x[source] @ p["from"] + x[target] @ p["to"], 0.2)
    weights = segment_softmax(scores, target)
    return jax.nn.elu(jax.ops.segment_sum(weights[:, None] * x[source], target, NODES))


def message_passing(p, x, batch):
    """Messages from both ends and the edge; sum, mean and maximum at the node."""
    source, target = batch["source"], batch["target"]
    inputs = jnp.concatenate([x[source], x[target], batch["edges"]], axis=-1)
    messages = jax.nn.silu(dense(p["edge"], inputs))
    total = jax.ops.segment_sum(messages, target, num_segments=NODES)
    count = jax.ops.segment_sum(jnp.ones(EDGES), target, num_segments=NODES)
    highest = jax.ops.segment_max(messages, target, num_segments=NODES)
    highest = jnp.where(jnp.isfinite(highest), highest, 0.0)
    mean = total / jnp.maximum(count, 1)[:, None]
    joined = jnp.concatenate([x, total, mean, highest], axis=-1)
    return x + layer_norm(p["norm"], dense(p["node"], joined))


def isomorphism(p, x, batch):
    """A sum of neighbours, then a perceptron (GIN)."""
    total = jax.ops.segment_sum(x[batch["source"]], batch["target"], num_segments=NODES)
    hidden = jax.nn.relu(dense(p["message"], (1 + p["self"]) * x + total))
    return layer_norm(p["norm"], jax.nn.relu(dense(p["second"], hidden)))


LAYERS = {
    "gcn": (convolution, {"message": dense_params(WIDTH, WIDTH)}),
    "gat": (
        attention,
        {"message": dense_params(WIDTH, WIDTH), "from": abstract(WIDTH), "to": abstract(WIDTH)},
    ),
    "mpnn": (
        message_passing,
        {
            "edge": dense_params(2 * WIDTH + 4, WIDTH),
            "node": dense_params(4 * WIDTH, WIDTH),
            "norm": norm_params(WIDTH),
        },
    ),
    "gin": (
        isomorphism,
        {
            "message": dense_params(WIDTH, WIDTH),
            "second": dense_params(WIDTH, WIDTH),
            "self": abstract(),
            "norm": norm_params(WIDTH),
        },
    ),
}


def task(layer, depth=2, by_graph=False, dropout=False):
    """A class for each node, or with `by_graph` a number for each graph of the batch."""
    apply_layer, shape = LAYERS[layer]
    params = {
        "enter": dense_params(8, WIDTH),
        "layers": [shape] * depth,
        "leave": dense_params(WIDTH, 1 if by_graph else CLASSES),
    }
    batch = {
        "nodes": abstract(NODES, 8),
        "edges": abstract(EDGES, 4),
        "source": integers(EDGES),
        "target": integers(EDGES),
        "graph": integers(NODES),
        "goal": abstract(GRAPHS) if by_graph else integers(NODES),
    }

    def forward(params, batch, key=None):
        x = dense(params["enter"], batch["nodes"])
        for index, p in enumerate(params["layers"]):
            layer_key = None if key is None else jax.random.fold_in(key, index)
            x = drop(layer_key, apply_layer(p, x, batch))
        if by_graph:
            total = jax.ops.segment_sum(x, batch["graph"], num_segments=GRAPHS)
            return dense(params["leave"], total)[:, 0]
        return dense(params["leave"], x)

    def loss(params, batch, key=None):
        found = forward(params, batch, key)
        if by_graph:
            return jnp.mean(jnp.abs(found - batch["goal"]))
        scores = jax.nn.log_softmax(found)
        return -jnp.mean(jnp.take_along_axis(scores, batch["goal"][:, None], axis=1))

    return Task(params, batch, forward, loss)


def specs():
    def model(kind, layer, **options):
        title = f"graph network ({layer.upper()})"
        make = functools.partial(task, layer)
        return of("graphnet", layer, title, make, kind, **options)

    yield from (model("forward", layer, depth=2) for layer in LAYERS)
    yield model("gradient", "gat", depth=2)
    yield model("gradient", "mpnn", depth=3, by_graph=True)
    yield model("train", "gcn", depth=2, optimizer="adam", dropout=True)
    yield model("train", "gat", depth=3, optimizer="adamw")
    yield model("train", "mpnn", depth=2, optimizer="adamw", clip="norm")
    yield model("train", "gin", depth=4, by_graph=True, optimizer="sgd-momentum")
