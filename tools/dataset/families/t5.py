"""T5: relative positions by buckets, no biases, RMS norms."""

import jax.numpy as jnp
from transformers import T5Config
from transformers.models.t5 import modeling_flax_t5

from families.flax_models import HEADS, VOCAB, WIDTH
from families.seq2seq import Seq2SeqFamily


class NumpyWithOldClip:
    """jax.numpy whose `clip` still takes `a_max`, the name that transformers' T5 uses."""

    def __getattr__(self, name):
        return getattr(jnp, name)

    @staticmethod
    def clip(values, a_min=None, a_max=None):
        return jnp.clip(values, min=a_min, max=a_max)


modeling_flax_t5.jnp = NumpyWithOldClip()


def config(depth, **more):
    return T5Config(
        num_layers=depth, num_decoder_layers=depth, d_model=WIDTH, d_kv=WIDTH // HEADS,
        d_ff=2 * WIDTH, num_heads=HEADS, vocab_size=VOCAB, **more,
    )  # fmt: skip


FAMILY = Seq2SeqFamily("t5", "T5", "T5ForConditionalGeneration", config)


def specs():
    of = FAMILY.variant
    yield from (of("forward", depth) for depth in (1, 3, 6))
    yield of("forward", 2, dtype="bf16")
    yield of("forward", 2, feed_forward_proj="gated-gelu", tie_word_embeddings=False)
    yield of("loss", 2, evaluate=True)
    yield of("gradient", 1)
    yield of("gradient", 3)
    yield of("gradient", 2, dropout=True)
    yield of("gradient", 2, remat=True)
    yield of("gradient", 2, feed_forward_proj="gated-gelu", dtype="bf16")
    yield of("train", 2, optimizer="adafactor")
    yield of("train", 2, optimizer="adamw")
    yield of("train", 1, optimizer="adafactor", dropout=True, label_smoothing=0.1)
    yield of("train", 3, optimizer="adamw", dtype="bf16", clip="norm")
    yield of("train", 2, optimizer="lion", dropout="rbg")
    yield of("train", 2, optimizer="adafactor", accumulate=2, remat=True)
    yield of("train", 4, optimizer="sgd-momentum")
    yield of("train", 2, optimizer="adafactor", feed_forward_proj="gated-gelu", average=True)
    for search in ("greedy", "beam", "top-k", "top-p"):
        yield FAMILY.generation(search, 2)
