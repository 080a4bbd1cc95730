"""Programs for several devices: shard_map with explicit collectives over meshes of 2 to 8."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import lax
from jax.sharding import AxisType, Mesh, PartitionSpec

from families.layers import (
    TRAIN_LIBRARIES,
    dense,
    dense_params,
    layer_norm,
    norm_params,
    program,
    programs,
)
from lowering import abstract, integers, lower
from training import make_optimizer

WIDTH, BATCH = 16, 8
WHOLE = PartitionSpec()


def mesh(**axes):
    """A mesh of named axes, e.g. `mesh(data=2, model=2)`, whose partitioning shard_map decides."""
    count = int(np.prod(list(axes.values())))
    devices = np.array(jax.devices()[:count]).reshape(tuple(axes.values()))
    return Mesh(devices, tuple(axes), axis_types=(AxisType.Auto,) * len(axes))


def on(names, *axes):
    """A partition: which dimensions are split over which axes of the mesh."""
    return PartitionSpec(*axes) if axes else PartitionSpec(names)


def mapped(function, devices, inputs, outputs, tracked=False):
    """shard_map; with `tracked`, JAX knows what differs by device and sums gradients itself."""
    return jax.shard_map(
        function, mesh=devices, in_specs=inputs, out_specs=outputs, check_vma=tracked
    )


def mlp_params():
    return [dense_params(WIDTH, 2 * WIDTH), dense_params(2 * WIDTH, WIDTH), dense_params(WIDTH, 4)]


def mlp(params, x):
    for p in params[:-1]:
        x = jax.nn.relu(dense(p, x))
    return dense(params[-1], x)


def class_loss(params, x, labels):
    scores = jax.nn.log_softmax(mlp(params, x))
    return -jnp.mean(jnp.take_along_axis(scores, labels[:, None], axis=1))


DATA = (abstract(BATCH, WIDTH), integers(BATCH))


def data_parallel(count, optimizer):
    """Each device has all parameters and a part of the batch; gradients are averaged."""
    chosen = make_optimizer(optimizer)
    params = mlp_params()
    state = jax.eval_shape(chosen.init, params)

    def step(params, state, x, labels):
        value, gradients = jax.value_and_grad(class_loss)(params, x, labels)
        gradients = lax.pmean(gradients, "data")
        updates, state = chosen.update(gradients, state, params)
        return optax.apply_updates(params, updates), state, lax.pmean(value, "data")

    split = on("data")
    step = mapped(step, mesh(data=count), (WHOLE, WHOLE, split, split), (WHOLE, WHOLE, WHOLE))
    return lower(step, params, state, *DATA, name="train_step")


def fully_sharded(count):
    """Parameters live in parts (ZeRO): gathered for use, gradients scattered back."""
    chosen = optax.adam(1e-3)
    params = [abstract(WIDTH, 2 * WIDTH), abstract(2 * WIDTH, WIDTH), abstract(WIDTH, 4)]

    def step(params, mean, square, count_of_steps, x, labels):
        def loss(params):
            full = [lax.all_gather(p, "shard", tiled=True) for p in params]
            hidden = jnp.tanh(jnp.tanh(x @ full[0]) @ full[1])
            scores = jax.nn.log_softmax(hidden @ full[2])
            local = -jnp.mean(jnp.take_along_axis(scores, labels[:, None], axis=1))
            return lax.pmean(local, "shard")

        value, gradients = jax.value_and_grad(loss)(params)
        adam = optax.ScaleByAdamState(count_of_steps, mean, square)
        state = (adam, optax.EmptyState())
        updates, (adam, _) = chosen.update(gradients, state, params)
        params = optax.apply_updates(params, updates)
        return params, adam.mu, adam.nu, adam.count, value

    split = on("shard")
    inputs = (split, split, split, WHOLE, split, split)
    outputs = (split, split, split, WHOLE, WHOLE)
    step = mapped(step, mesh(shard=count), inputs, outputs, tracked=True)
    return lower(step, params, params, params, integers(), *DATA, name="train_step")


def tensor_parallel_params():
    return {
        "norm1": norm_params(WIDTH),
        "qkv": abstract(3, 4, WIDTH, 4),
        "out": abstract(4, 4, WIDTH),
        "norm2": norm_params(WIDTH),
        "up": abstract(WIDTH, 4 * WIDTH),
        "down": abstract(4 * WIDTH, WIDTH),
    }


TENSOR_SPLITS = {
    "norm1": {"scale": WHOLE, "bias": WHOLE},
    "qkv": PartitionSpec(None, "model"),
    "out": PartitionSpec("model"),
    "norm2": {"scale": WHOLE, "bias": WHOLE},
    "up": PartitionSpec(None, "model"),
    "down": PartitionSpec("model"),
}


def tensor_parallel_block(p, x):
    """A transformer block split by heads and by hidden units: one all-reduce after each half."""
    q, k, v = jnp.einsum("btd,shdf->sbhtf", layer_norm(p["norm1"], x), p["qkv"])
    scores = jnp.einsum("bhtf,bhsf->bhts", q, k) / 2.0
    causal = jnp.tril(jnp.ones(scores.shape[-2:], bool))
    weights = jax.nn.softmax(jnp.where(causal, scores, -1e9))
    mixed = jnp.einsum("bhts,bhsf,hfd->btd", weights, v, p["out"])
    x = x + lax.psum(mixed, "model")
    hidden = jax.nn.gelu(layer_norm(p["norm2"], x) @ p["up"])
    return x + lax.psum(hidden @ p["down"], "model")


def tensor_parallel_forward(count, depth):
    params = [tensor_parallel_params()] * depth

    def forward(params, x):
        for p in params:
            x = tensor_parallel_block(p, x)
        return x

    forward = mapped(forward, mesh(model=count), ([TENSOR_SPLITS] * depth, WHOLE), WHOLE)
    return lower(forward, params, abstract(2, 8, WIDTH), name="forward")


def tensor_parallel_train(depth):
    """Data parallel on one axis, tensor parallel on the other."""
    params = [tensor_parallel_params()] * depth
    splits = [TENSOR_SPLITS] * depth

    def step(params, velocity, x, target):
        def loss(params):
            found = x
            for p in params:
                found = tensor_parallel_block(p, found)
            return lax.pmean(jnp.mean(jnp.square(found - target)), "data")

        value, gradients = jax.value_and_grad(loss)(params)
        velocity = jax.tree.map(lambda v, g: 0.9 * v + g, velocity, gradients)
        params = jax.tree.map(lambda p, v: p - 0.1 * v, params, velocity)
        return params, velocity, value

    split = on("data")
    inputs, outputs = (splits, splits, split, split), (splits, splits, WHOLE)
    step = mapped(step, mesh(data=2, model=2), inputs, outputs, tracked=True)
    batch = abstract(4, 8, WIDTH)
    return lower(step, params, params, batch, batch, name="train_step")


def sequence_parallel():
    """Norms on split sequences: all-gather before the product, reduce-scatter after it."""

    def block(x, norm, up, down):
        whole = lax.all_gather(layer_norm(norm, x), "model", axis=1, tiled=True)
        partial = jax.nn.gelu(whole @ up) @ down
        return x + lax.psum_scatter(partial, "model", scatter_dimension=1, tiled=True)

    rows = PartitionSpec(None, "model")
    inputs = (rows, WHOLE, rows, PartitionSpec("model"))
    block = mapped(block, mesh(model=4), inputs, rows)
    sizes = abstract(WIDTH, 4 * WIDTH), abstract(4 * WIDTH, WIDTH)
    return lower(block, abstract(2, 8, WIDTH), norm_params(WIDTH), *sizes, name="block")


def ring_attention():
    """Attention over a ring: keys and values travel by collective-permute, softmax online."""
    count = 4
    around = [(i, (i + 1) % count) for i in range(count)]

    def attend(q, k, v):
        def step(carry, _):
            k, v, total, weight, highest = carry
            scores = jnp.einsum("bqd,bkd->bqk", q, k) / jnp.sqrt(WIDTH * 1.0)
            top = jnp.maximum(highest, jnp.max(scores, axis=-1))
            grown = jnp.exp(scores - top[..., None])
            shrink = jnp.exp(highest - top)
            total = total * shrink[..., None] + jnp.einsum("bqk,bkd->bqd", grown, v)
            weight = weight * shrink + jnp.sum(grown, axis=-1)
            k, v = (lax.ppermute(part, "ring", around) for part in (k, v))
            return (k, v, total, weight, top), None

        empty = jnp.zeros(q.shape[:2])
        start = (k, v, jnp.zeros_like(q), empty, jnp.full_like(empty, -1e9))
        (_, _, total, weight, _), _ = lax.scan(step, start, None, length=count)
        return total / weight[..., None]

    rows = PartitionSpec(None, "ring")
    attend = mapped(attend, mesh(ring=count), (rows, rows, rows), rows)
    part = abstract(2, 16, WIDTH)
    return lower(attend, part, part, part, name="ring_attention")


def pipeline():
    """A pipeline of four stages: micro-batches move on by collective-permute in a scan."""
    stages, micro = 4, 6
    onward = [(i, i + 1) for i in range(stages - 1)]

    def run(weights, batches):
        rank = lax.axis_index("stage")
        weight = weights[0]

        def tick(carry, time):
            arrived, outputs = carry
            fresh = batches[jnp.minimum(time, micro - 1)]
            found = jnp.tanh(jnp.where(rank == 0, fresh, arrived) @ weight)
            place = jnp.clip(time - stages + 1, 0, micro - 1)
            done = (rank == stages - 1) & (time >= stages - 1)
            outputs = jnp.where(done, outputs.at[place].set(found), outputs)
            return (lax.ppermute(found, "stage", onward), outputs), None

        start = (jnp.zeros_like(batches[0]), jnp.zeros_like(batches))
        (_, outputs), _ = lax.scan(tick, start, jnp.arange(micro + stages - 1))
        return lax.psum(jnp.where(rank == stages - 1, outputs, 0.0), "stage")

    run = mapped(run, mesh(stage=stages), (on("stage"), WHOLE), WHOLE)
    return lower(run, abstract(stages, WIDTH, WIDTH), abstract(micro, 2, WIDTH), name="pipeline")


def expert_parallel():
    """Experts on their own devices: tokens travel there and back by all-to-all."""
    count = 4

    def layer(router, up, down, x):
        scores = jax.nn.softmax(x @ router)
        gate, expert = jnp.max(scores, axis=1), jnp.argmax(scores, axis=1)
        chosen = jax.nn.one_hot(expert, count, dtype=jnp.int32)
        slot = jnp.sum((jnp.cumsum(chosen, axis=0) - 1) * chosen, axis=1)
        dispatch = jax.nn.one_hot(expert, count)[:, :, None] * jax.nn.one_hot(slot, 4)[:, None]
        sent = jnp.einsum("tec,td->ecd", dispatch, x)
        here = lax.all_to_all(sent, "expert", split_axis=0, concat_axis=1, tiled=True)
        found = jnp.einsum("ecf,efd->ecd", jax.nn.relu(jnp.einsum("ecd,edf->ecf", here, up)), down)
        back = lax.all_to_all(found, "expert", split_axis=1, concat_axis=0, tiled=True)
        balance = lax.pmean(jnp.mean(scores, axis=0) * jnp.mean(chosen, axis=0), "expert")
        return x + gate[:, None] * jnp.einsum("tec,ecd->td", dispatch, back), jnp.sum(balance)

    split = on("expert")
    layer = mapped(layer, mesh(expert=count), (WHOLE, split, split, split), (split, WHOLE))
    experts = abstract(count, WIDTH, 2 * WIDTH), abstract(count, 2 * WIDTH, WIDTH)
    return lower(layer, abstract(WIDTH, count), *experts, abstract(32, WIDTH), name="experts")


def matrix_product():
    """Cannon's product on a 2 by 2 grid, blocks shifting each round, and a loss's gradient."""

    def multiply(a, b):
        total = jnp.zeros((a.shape[0], b.shape[1]))
        for _ in range(2):
            total = total + a @ b
            a = lax.ppermute(a, "column", [(0, 1), (1, 0)])
            b = lax.ppermute(b, "row", [(0, 1), (1, 0)])
        return total

    def gradient(a, b, target):
        def loss(a, b):
            return jnp.sum(jnp.square(jnp.tanh(multiply(a, b)) - target))

        value, slopes = jax.value_and_grad(loss, argnums=(0, 1))(a, b)
        return lax.psum(value, ("row", "column")), slopes

    grid = PartitionSpec("row", "column")
    gradient = mapped(gradient, mesh(row=2, column=2), (grid, grid, grid), (WHOLE, (grid, grid)))
    return lower(gradient, abstract(8, 8), abstract(8, 8), abstract(8, 8), name="gradient")


def halo_exchange():
    """Heat on a split grid: borders are exchanged with both neighbours in each step."""
    count = 8

    def simulate(grid):
        right = [(i, (i + 1) % count) for i in range(count)]
        left = [(b, a) for a, b in right]

        def step(grid, _):
            above = lax.ppermute(grid[-1:], "rows", right)
            below = lax.ppermute(grid[:1], "rows", left)
            tall = jnp.concatenate([above, grid, below])
            wide = jnp.roll(grid, 1, axis=1) + jnp.roll(grid, -1, axis=1)
            moved = grid + 0.1 * (tall[:-2] + tall[2:] + wide - 4 * grid)
            return moved, lax.pmax(jnp.max(jnp.abs(moved - grid)), "rows")

        return lax.scan(step, grid, None, length=10)

    rows = on("rows")
    simulate = mapped(simulate, mesh(rows=count), (rows,), (rows, WHOLE))
    return lower(simulate, abstract(32, 16), name="simulate")


def contrastive():
    """A contrastive loss over all devices' pairs, as CLIP: embeddings gathered, gradients too."""

    def loss(weights, images, texts):
        def normal(x):
            return x / jnp.sqrt(jnp.sum(x**2, axis=-1, keepdims=True) + 1e-6)

        mine, others = normal(images @ weights[0]), normal(texts @ weights[1])
        all_others = lax.all_gather(others, "data", tiled=True)
        all_mine = lax.all_gather(mine, "data", tiled=True)
        labels = lax.axis_index("data") * mine.shape[0] + jnp.arange(mine.shape[0])

        def one_way(logits):
            scores = jax.nn.log_softmax(14.0 * logits)
            return -jnp.mean(jnp.take_along_axis(scores, labels[:, None], axis=1))

        return 0.5 * (one_way(mine @ all_others.T) + one_way(others @ all_mine.T))

    def gradient(weights, images, texts):
        value, slope = jax.value_and_grad(loss)(weights, images, texts)
        return lax.pmean(value, "data"), lax.psum(slope, "data")

    split = on("data")
    gradient = mapped(gradient, mesh(data=4), (WHOLE, split, split), (WHOLE, WHOLE))
    weights = abstract(2, WIDTH, WIDTH)
    return lower(gradient, weights, abstract(16, WIDTH), abstract(16, WIDTH), name="contrastive")


def synchronised_norm():
    """Batch norm whose statistics are shared by all devices, with its gradient."""

    def loss(scale, x, target):
        mean = lax.pmean(jnp.mean(x, axis=0), "data")
        square = lax.pmean(jnp.mean(x**2, axis=0), "data")
        normal = (x - mean) * lax.rsqrt(square - mean**2 + 1e-5) * scale
        return jnp.mean((jax.nn.relu(normal) - target) ** 2)

    def gradient(scale, x, target):
        value, slopes = jax.value_and_grad(loss, argnums=(0, 1))(scale, x, target)
        return lax.pmean(value, "data"), lax.psum(slopes[0], "data"), slopes[1]

    split = on("data")
    gradient = mapped(gradient, mesh(data=2), (WHOLE, split, split), (WHOLE, WHOLE, split))
    rows = abstract(BATCH, WIDTH)
    return lower(gradient, abstract(WIDTH), rows, rows, name="gradient")


def specs():
    def trained(name, what, build, **options):
        return program(
            "collective", name, what, build, "train", libraries=TRAIN_LIBRARIES, **options
        )

    for count, optimizer in ((2, "sgd-momentum"), (4, "adamw"), (8, "lamb")):
        yield trained(
            f"data-parallel-{count}-{optimizer}",
            f"Data-parallel training step of a perceptron on {count} devices: {optimizer}.",
            lambda count=count, optimizer=optimizer: data_parallel(count, optimizer),
            devices=count,
            optimizer=optimizer,
        )
    yield trained(
        "fully-sharded-4",
        "Training step with parameters in parts (ZeRO) on 4 devices.",
        lambda: fully_sharded(4),
        devices=4,
        optimizer="adam",
    )
    yield program(
        "collective",
        "tensor-parallel-forward-4-2l",
        "Forward pass of a 2-layer transformer, tensor parallel on 4 devices.",
        lambda: tensor_parallel_forward(4, 2),
        "forward",
        devices=4,
        depth=2,
    )
    yield trained(
        "tensor-parallel-train-2x2-2l",
        "Training step of a 2-layer transformer, data and tensor parallel on 2 by 2 devices.",
        lambda: tensor_parallel_train(2),
        devices=4,
        depth=2,
        optimizer="sgd-momentum",
    )
    yield from programs(
        "collective",
        (
            sequence_parallel, ring_attention, pipeline, expert_parallel, matrix_product,
            halo_exchange, contrastive, synchronised_norm,
        ),
    )  # fmt: skip
