"""BART: an encoder-decoder with learned positions; also its classification and answering heads."""

import functools

from transformers import BartConfig

from families.encoder_heads import encoder_task
from families.flax_models import HEADS, LIBRARIES, POSITIONS, TRAIN_LIBRARIES, VOCAB, WIDTH
from families.seq2seq import Seq2SeqFamily
from variants import variant


def config(depth, **more):
    return BartConfig(
        encoder_layers=depth, decoder_layers=depth, d_model=WIDTH, encoder_ffn_dim=2 * WIDTH,
        decoder_ffn_dim=2 * WIDTH, encoder_attention_heads=HEADS, decoder_attention_heads=HEADS,
        vocab_size=VOCAB, max_position_embeddings=POSITIONS, pad_token_id=0, bos_token_id=3,
        eos_token_id=1, decoder_start_token_id=2, forced_eos_token_id=None, **more,
    )  # fmt: skip


FAMILY = Seq2SeqFamily("bart", "BART", "BartForConditionalGeneration", config)


def headed(kind, task, depth, **options):
    libraries = LIBRARIES if kind == "forward" else TRAIN_LIBRARIES
    make = functools.partial(encoder_task, "Bart", config, segments=False)
    return variant("bart", "BART", make, kind, libraries, task=task, depth=depth, **options)


def specs():
    of = FAMILY.variant
    yield from (of("forward", depth) for depth in (1, 3, 6))
    yield of("forward", 2, dtype="bf16")
    yield of("loss", 2, evaluate=True)
    yield of("gradient", 2)
    yield of("gradient", 1, dropout=True)
    yield of("gradient", 3, dtype="bf16")
    yield of("train", 2, optimizer="adamw", label_smoothing=0.1)
    yield of("train", 1, optimizer="adamw", dropout=True)
    yield of("train", 2, optimizer="adafactor", accumulate=2)
    yield of("train", 3, optimizer="lion", dtype="bf16", clip="norm")
    yield of("train", 4, optimizer="adam")
    yield headed("train", "qa", 2, optimizer="adamw")
    yield headed("gradient", "qa", 1, dropout=True)
    for search in ("greedy", "beam", "sampling", "beam-early"):
        yield FAMILY.generation(search, 2)
