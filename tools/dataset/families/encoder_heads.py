"""What encoders (BERT, RoBERTa) are trained for: heads of transformers, losses, evaluation."""

import jax.numpy as jnp
import optax

from families.flax_models import (
    BATCH,
    LENGTH,
    cross_entropy,
    dropout_arguments,
    make_model,
    text_batch,
    weighted_mean,
)
from lowering import abstract, integers
from variants import Task

LABELS = 5
CHOICES = 2
IGNORED = -100  # The label of positions that do not count, as in transformers' data collators.


def ignoring(logits, labels):
    """Mean cross-entropy over the positions whose label counts."""
    counts = (labels != IGNORED).astype(jnp.float32)
    return weighted_mean(cross_entropy(logits, jnp.maximum(labels, 0)), counts)


def accuracy(logits, labels):
    counts = (labels != IGNORED).astype(jnp.float32)
    return weighted_mean((jnp.argmax(logits, axis=-1) == labels).astype(jnp.float32), counts)


def mean_loss(logits, labels):
    return jnp.mean(cross_entropy(logits, labels))


class Head:
    """One task: the model class of transformers, its labels, its loss and its evaluation."""

    def __init__(self, suffix, labels, loss, metrics, **config):
        self.suffix, self.labels, self.loss, self.metrics = suffix, labels, loss, metrics
        self.config = config


def span_loss(found, labels):
    """Start and end of the answer, each a choice among the positions."""
    return 0.5 * (
        mean_loss(found.start_logits, labels["start"]) + mean_loss(found.end_logits, labels["end"])
    )


def span_metrics(found, labels):
    start = jnp.argmax(found.start_logits, axis=-1)
    end = jnp.argmax(found.end_logits, axis=-1)
    exact = (start == labels["start"]) & (end == labels["end"])
    # The best span whose end is not before its start, as the decoding of SQuAD needs it.
    scores = found.start_logits[:, :, None] + found.end_logits[:, None, :]
    ordered = jnp.triu(jnp.ones(scores.shape[1:], bool))
    best = jnp.max(jnp.where(ordered, scores, -1e9), axis=(1, 2))
    return {"loss": span_loss(found, labels), "exact": jnp.mean(exact), "score": jnp.mean(best)}


def token_metrics(found, labels):
    return {
        "loss": ignoring(found.logits, labels),
        "accuracy": accuracy(found.logits, labels),
    }


def class_metrics(found, labels):
    right = jnp.argmax(found.logits, axis=-1) == labels
    return {"loss": mean_loss(found.logits, labels), "accuracy": jnp.mean(right)}


def regression_loss(found, labels):
    return jnp.mean(jnp.square(found.logits[..., 0].astype(jnp.float32) - labels))


def pretraining_loss(found, labels):
    """Masked tokens and "is this the next sentence", as BERT was trained."""
    tokens = ignoring(found.prediction_logits, labels["tokens"])
    return tokens + mean_loss(found.seq_relationship_logits, labels["next"])


def pretraining_metrics(found, labels):
    return {
        "loss": pretraining_loss(found, labels),
        "token_accuracy": accuracy(found.prediction_logits, labels["tokens"]),
        "next_accuracy": accuracy(found.seq_relationship_logits, labels["next"]),
    }


TOKENS, ONE = integers(BATCH, LENGTH), integers(BATCH)

HEADS_BY_TASK = {
    "mlm": Head(
        "ForMaskedLM",
        TOKENS,
        lambda found, labels: ignoring(found.logits, labels),
        token_metrics,
    ),
    "classification": Head(
        "ForSequenceClassification",
        ONE,
        lambda found, labels: mean_loss(found.logits, labels),
        class_metrics,
        num_labels=LABELS,
    ),
    "regression": Head(
        "ForSequenceClassification",
        abstract(BATCH),
        regression_loss,
        lambda found, labels: {"loss": regression_loss(found, labels)},
        num_labels=1,
    ),
    "multilabel": Head(
        "ForSequenceClassification",
        abstract(BATCH, LABELS),
        lambda found, labels: jnp.mean(optax.sigmoid_binary_cross_entropy(found.logits, labels)),
        lambda found, labels: {"accuracy": jnp.mean((found.logits > 0) == (labels > 0.5))},
        num_labels=LABELS,
    ),
    "qa": Head(
        "ForQuestionAnswering",
        {"start": ONE, "end": ONE},
        span_loss,
        span_metrics,
    ),
    "tagging": Head(
        "ForTokenClassification",
        TOKENS,
        lambda found, labels: ignoring(found.logits, labels),
        token_metrics,
        num_labels=LABELS,
    ),
    "choice": Head(
        "ForMultipleChoice",
        ONE,
        lambda found, labels: mean_loss(found.logits, labels),
        class_metrics,
    ),
    "pretraining": Head(
        "ForPreTraining",
        {"tokens": TOKENS, "next": ONE},
        pretraining_loss,
        pretraining_metrics,
    ),
}


def encoder_task(
    prefix, make_config, task, depth, dtype="f32", dropout=False, remat=False, segments=True
):
    """A task of the models called `prefix`, e.g. BERT's masked tokens.

    `segments`: whether the model is told which of two texts a token belongs to.
    """
    head = HEADS_BY_TASK[task]
    keywords = {"gradient_checkpointing": True} if remat else {}
    model, params = make_model(
        prefix + head.suffix, make_config(depth, **head.config), dtype, **keywords
    )
    inputs = text_batch(token_type_ids=TOKENS) if segments else text_batch()
    if task == "choice":
        inputs = text_batch()
        inputs = {name: integers(BATCH, CHOICES, LENGTH) for name in inputs}
    batch = {"inputs": inputs, "labels": head.labels}

    def outputs(params, inputs, key=None):
        return model(**inputs, params=params, **dropout_arguments(key))

    def forward(params, inputs, key=None):
        return outputs(params, inputs["inputs"], key).to_tuple()

    def loss(params, batch, key=None):
        return head.loss(outputs(params, batch["inputs"], key), batch["labels"])

    def metrics(params, batch):
        return head.metrics(outputs(params, batch["inputs"]), batch["labels"])

    return Task(params, batch, forward, loss, metrics)
