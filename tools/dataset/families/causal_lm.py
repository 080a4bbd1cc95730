"""Causal language models of transformers (GPT-2, OPT, Llama, Mistral): tasks and variants."""

import jax

from families.flax_models import (
    LIBRARIES,
    TRAIN_LIBRARIES,
    dropout_arguments,
    generation,
    make_model,
    shifted_loss,
    shifted_metrics,
    text_batch,
)
from lowering import lower
from spec import Spec
from variants import Task, variant


class CausalFamily:
    """A family whose models continue text. `make_config(depth)` returns its configuration."""

    def __init__(self, family, title, model_name, make_config, call_arguments=dropout_arguments):
        self.family, self.title, self.model_name = family, title, model_name
        self.make_config, self.call_arguments = make_config, call_arguments

    def model(self, depth, dtype="f32", **config):
        return make_model(self.model_name, self.make_config(depth, **config), dtype)

    def task(self, depth, dtype="f32", dropout=False, label_smoothing=0.0, z_loss=0.0, **config):
        """Next-token prediction; `dropout` only matters to the caller, who passes a key."""
        model, params = self.model(depth, dtype, **config)

        def forward(params, batch, key=None):
            return model(**batch, params=params, **self.call_arguments(key)).logits

        return lm_task(params, text_batch(), forward, label_smoothing, z_loss)

    def variant(self, kind, depth, task=None, **options):
        libraries = TRAIN_LIBRARIES if kind != "forward" else LIBRARIES
        make_task = task or self.task
        return variant(self.family, self.title, make_task, kind, libraries, depth=depth, **options)

    def generation(self, search, depth, dtype="f32"):
        def make(depth, dtype):
            return *self.model(depth, dtype), {}

        return generation(self.family, self.title, search, depth, make, dtype)

    def cached_step(self, depth, dtype="f32"):
        """One token through the key-value cache, as a server runs it for each token."""

        def build():
            model, params = self.model(depth, dtype)
            batch, limit = 2, 16
            cache = jax.eval_shape(lambda: model.init_cache(batch, limit))
            arguments = text_batch(batch, 1)
            arguments["attention_mask"] = text_batch(batch, limit)["attention_mask"]
            arguments["position_ids"] = text_batch(batch, 1)["input_ids"]

            def decode_step(params, cache, batch):
                found = model(**batch, past_key_values=cache, params=params)
                return found.logits[:, -1], found.past_key_values

            return lower(decode_step, params, cache, arguments)

        return self.cache_spec("decode-step", depth, dtype, build, "One decoding step")

    def prefill(self, depth, dtype="f32"):
        """The prompt through the model at once, filling the cache."""

        def build():
            model, params = self.model(depth, dtype)
            cache = jax.eval_shape(lambda: model.init_cache(2, 16))
            arguments = text_batch(2, 8)
            arguments["position_ids"] = arguments["input_ids"]
            arguments["attention_mask"] = text_batch(2, 16)["attention_mask"]

            def prefill(params, cache, batch):
                found = model(**batch, past_key_values=cache, params=params)
                return found.logits[:, -1], found.past_key_values

            return lower(prefill, params, cache, arguments)

        return self.cache_spec("prefill", depth, dtype, build, "Prefill of the cache")

    def cache_spec(self, name, depth, dtype, build, what):
        suffix = "" if dtype == "f32" else f"-{dtype}"
        return Spec(
            family=self.family,
            name=f"{name}-{depth}l{suffix}",
            kind="generate",
            what=f"{what} with a {depth}-layer {self.title}{suffix.replace('-', ', ')}.",
            build=build,
            options={"depth": depth, "dtype": dtype},
            libraries=LIBRARIES,
        )


def lm_task(params, batch, forward, label_smoothing=0.0, z_loss=0.0):
    """Next-token prediction with any `forward(params, batch, key)` that gives logits."""

    def loss(params, batch, key=None):
        return shifted_loss(forward(params, batch, key), batch, label_smoothing, z_loss)

    def metrics(params, batch):
        return shifted_metrics(forward(params, batch), batch)

    return Task(params, batch, forward, loss, metrics)
