"""Fine-tuning recipes around a causal language model, beyond plain next-token training."""

import jax
import jax.numpy as jnp
import optax

from families.flax_models import TRAIN_LIBRARIES, VOCAB, WIDTH, shifted_loss, text_batch
from lowering import KEY, abstract, integers, lower
from spec import Spec
from training import make_optimizer


def sequence_log_probability(logits, batch):
    """Log-probability of each sequence: the sum over its tokens."""
    log_probabilities = jax.nn.log_softmax(logits[:, :-1].astype(jnp.float32))
    labels = batch["input_ids"][:, 1:, None]
    picked = jnp.take_along_axis(log_probabilities, labels, axis=-1)[..., 0]
    return jnp.sum(picked * batch["attention_mask"][:, 1:], axis=-1)


def step_of(loss, optimizer):
    """A training step of `loss(trained, *others)`; only the first argument is trained."""

    def train_step(trained, state, *others):
        value, gradients = jax.value_and_grad(loss)(trained, *others)
        updates, state = optimizer.update(gradients, state, trained)
        return optax.apply_updates(trained, updates), state, value

    return train_step


def lower_step(loss, optimizer, trained, *others):
    state = jax.eval_shape(optimizer.init, trained)
    return lower(step_of(loss, optimizer), trained, state, *others)


def low_rank_adapters(family, depth, rank=4):
    """LoRA: the model is frozen, a low-rank product is added to each attention projection."""
    model, params = family.model(depth)

    def adapted(path):
        return jax.tree_util.keystr(path).endswith("['attn']['c_attn']['kernel']")

    leaves = jax.tree_util.tree_leaves_with_path(params)
    adapters = {
        jax.tree_util.keystr(path): {
            "down": abstract(rank, leaf.shape[1]),
            "up": abstract(leaf.shape[0], rank),
        }
        for path, leaf in leaves
        if adapted(path)
    }

    def loss(adapters, params, batch):
        def add(path, leaf):
            if not adapted(path):
                return leaf
            pair = adapters[jax.tree_util.keystr(path)]
            return leaf + (16 / rank) * (pair["up"] @ pair["down"])

        whole = jax.tree_util.tree_map_with_path(add, params)
        return shifted_loss(model(**batch, params=whole, train=False).logits, batch)

    return lower_step(loss, make_optimizer("adamw-constant"), adapters, params, text_batch())


def distillation(family, depth):
    """A student of half the depth learns from the teacher's distribution and from the text."""
    teacher, teacher_params = family.model(depth)
    student, student_params = family.model(depth // 2)
    temperature = 2.0

    def loss(student_params, teacher_params, batch, key):
        known = teacher(**batch, params=teacher_params, train=False).logits[:, :-1]
        target = jax.lax.stop_gradient(jax.nn.softmax(known / temperature))
        logits = student(**batch, params=student_params, train=True, dropout_rng=key).logits
        guess = jax.nn.log_softmax(logits[:, :-1] / temperature)
        weights = batch["attention_mask"][:, 1:].astype(jnp.float32)
        divergence = -jnp.sum(target * guess, axis=-1) * temperature**2
        soft = jnp.sum(divergence * weights) / jnp.maximum(jnp.sum(weights), 1)
        return 0.5 * soft + 0.5 * shifted_loss(logits, batch)

    optimizer = make_optimizer("adamw")
    return lower_step(loss, optimizer, student_params, teacher_params, text_batch(), KEY)


def preference(family, depth):
    """Direct preference optimisation: chosen against rejected answers, with a frozen reference."""
    model, params = family.model(depth)

    def loss(params, reference, chosen, rejected):
        def margin(params):
            better = model(**chosen, params=params, train=False).logits
            worse = model(**rejected, params=params, train=False).logits
            return sequence_log_probability(better, chosen) - sequence_log_probability(
                worse, rejected
            )

        gain = margin(params) - jax.lax.stop_gradient(margin(reference))
        return -jnp.mean(jax.nn.log_sigmoid(0.1 * gain))

    return lower_step(
        loss, make_optimizer("rmsprop", "norm"), params, params, text_batch(), text_batch()
    )


def policy_gradient(family, depth):
    """The clipped policy loss of PPO on sampled answers, with given advantages."""
    model, params = family.model(depth)

    def loss(params, batch, old_log_probabilities, advantages):
        logits = model(**batch, params=params, train=False).logits[:, :-1]
        log_probabilities = jax.nn.log_softmax(logits)
        picked = jnp.take_along_axis(log_probabilities, batch["input_ids"][:, 1:, None], axis=-1)[
            ..., 0
        ]
        ratio = jnp.exp(picked - old_log_probabilities)
        clipped = jnp.clip(ratio, 0.8, 1.2)
        gain = jnp.minimum(ratio * advantages, clipped * advantages)
        entropy = -jnp.sum(jnp.exp(log_probabilities) * log_probabilities, axis=-1)
        weights = batch["attention_mask"][:, 1:]
        return -jnp.sum((gain + 0.01 * entropy) * weights) / jnp.sum(weights)

    batch = text_batch()
    rows, length = batch["input_ids"].shape
    per_token = abstract(rows, length - 1)
    optimizer = make_optimizer("adam", "norm")
    return lower_step(loss, optimizer, params, batch, per_token, per_token)


def reward_model(family, depth):
    """A scalar head on the last token, trained so that preferred answers score higher."""
    model, params = family.model(depth, output_hidden_states=True)
    trained = {"model": params, "head": abstract(WIDTH)}

    def loss(trained, chosen, rejected):
        def score(batch):
            hidden = model(**batch, params=trained["model"], train=False).hidden_states[-1]
            last = jnp.sum(batch["attention_mask"], axis=-1) - 1
            return jnp.take_along_axis(hidden, last[:, None, None], axis=1)[:, 0] @ trained["head"]

        return -jnp.mean(jax.nn.log_sigmoid(score(chosen) - score(rejected)))

    optimizer = make_optimizer("adamw")
    return lower_step(loss, optimizer, trained, text_batch(), text_batch())


def per_example_clipping(family, depth):
    """Differentially private training: each example's gradient is clipped, then noise is added."""
    model, params = family.model(depth)

    def example_loss(params, tokens, mask):
        batch = {"input_ids": tokens[None], "attention_mask": mask[None]}
        return shifted_loss(model(**batch, params=params, train=False).logits, batch)

    def train_step(params, state, batch, key):
        gradients = jax.vmap(jax.grad(example_loss), in_axes=(None, 0, 0))(
            params, batch["input_ids"], batch["attention_mask"]
        )
        norms = jax.vmap(optax.global_norm)(gradients)
        scale = jnp.minimum(1.0, 1.0 / (norms + 1e-6))
        leaves, structure = jax.tree.flatten(gradients)
        keys = jax.random.split(key, len(leaves))
        noisy = [
            (jnp.einsum("b,b...->...", scale, leaf) + jax.random.normal(k, leaf.shape[1:]))
            / scale.shape[0]
            for leaf, k in zip(leaves, keys, strict=True)
        ]
        updates, state = optimizer.update(jax.tree.unflatten(structure, noisy), state, params)
        return optax.apply_updates(params, updates), state, jnp.mean(norms)

    optimizer = make_optimizer("sgd-momentum")
    state = jax.eval_shape(optimizer.init, params)
    return lower(train_step, params, state, text_batch(), KEY)


def sequence_scores(family, depth):
    """Log-probabilities of given continuations, as multiple-choice evaluations compute them."""
    model, params = family.model(depth)

    def score(params, batch, starts):
        logits = model(**batch, params=params, train=False).logits
        places = jnp.arange(logits.shape[1])[None]
        answer = dict(batch, attention_mask=(places >= starts[:, None]).astype(jnp.int32))
        total = sequence_log_probability(logits, answer)
        lengths = jnp.sum(answer["attention_mask"][:, 1:], axis=-1)
        return jnp.argmax(total / lengths), total, jax.lax.top_k(logits[:, -1], min(5, VOCAB))

    return lower(score, params, text_batch(), integers(4))


RECIPES = {
    "lora": (low_rank_adapters, "train", 4, "Training step of low-rank adapters (LoRA)"),
    "distillation": (distillation, "train", 4, "Distillation step into a model of half the depth"),
    "preference": (preference, "train", 2, "Direct preference optimisation (DPO) step"),
    "policy-gradient": (policy_gradient, "train", 2, "Clipped policy-gradient (PPO) step"),
    "reward-model": (reward_model, "train", 2, "Training step of a reward model on pairs"),
    "private": (per_example_clipping, "train", 1, "Differentially private training step"),
    "choice-scores": (sequence_scores, "loss", 2, "Scores of multiple-choice continuations"),
}


def recipe_specs(family):
    for name, (recipe, kind, depth, what) in RECIPES.items():
        yield Spec(
            family=family.family,
            name=f"{kind}-{name}-{depth}l",
            kind=kind,
            what=f"{what} with a {depth}-layer {family.title}.",
            build=lambda recipe=recipe, depth=depth: recipe(family, depth),
            options={"recipe": name, "depth": depth},
            libraries=TRAIN_LIBRARIES,
        )
