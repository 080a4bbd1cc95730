"""Encoder-decoder models of transformers (T5, BART): teacher-forced training and generation."""

import jax.numpy as jnp

from families.flax_models import (
    BATCH,
    LENGTH,
    LIBRARIES,
    TRAIN_LIBRARIES,
    cross_entropy,
    dropout_arguments,
    generation,
    make_model,
    text_batch,
    weighted_mean,
)
from lowering import integers
from variants import Task, variant

TARGET_LENGTH = 12


def seq2seq_batch():
    """As a data collator gives it: decoder inputs are the labels, shifted to the right."""
    target = integers(BATCH, TARGET_LENGTH)
    return text_batch(
        BATCH, LENGTH,
        decoder_input_ids=target, decoder_attention_mask=target, labels=target,
    )  # fmt: skip


class Seq2SeqFamily:
    """A family whose models turn one text into another. `make_config(depth)` configures it."""

    def __init__(self, family, title, model_name, make_config):
        self.family, self.title, self.model_name = family, title, model_name
        self.make_config = make_config

    def model(self, depth, dtype="f32", remat=False, **config):
        keywords = {"gradient_checkpointing": True} if remat else {}
        return make_model(self.model_name, self.make_config(depth, **config), dtype, **keywords)

    def task(self, depth, dtype="f32", dropout=False, label_smoothing=0.0, **options):
        model, params = self.model(depth, dtype, **options)

        def forward(params, batch, key=None):
            inputs = {name: value for name, value in batch.items() if name != "labels"}
            return model(**inputs, params=params, **dropout_arguments(key)).logits

        def loss(params, batch, key=None):
            logits = forward(params, batch, key)
            losses = cross_entropy(logits, batch["labels"], label_smoothing)
            return weighted_mean(losses, batch["decoder_attention_mask"].astype(jnp.float32))

        def metrics(params, batch):
            logits = forward(params, batch)
            weights = batch["decoder_attention_mask"].astype(jnp.float32)
            right = (jnp.argmax(logits, axis=-1) == batch["labels"]).astype(jnp.float32)
            value = weighted_mean(cross_entropy(logits, batch["labels"]), weights)
            return {"loss": value, "accuracy": weighted_mean(right, weights)}

        return Task(params, seq2seq_batch(), forward, loss, metrics)

    def variant(self, kind, depth, **options):
        libraries = LIBRARIES if kind == "forward" else TRAIN_LIBRARIES
        return variant(self.family, self.title, self.task, kind, libraries, depth=depth, **options)

    def generation(self, search, depth, dtype="f32"):
        def make(depth, dtype):
            return *self.model(depth, dtype), {"decoder_start_token_id": 0}

        return generation(self.family, self.title, search, depth, make, dtype)
