"""OPT: a decoder with learned positions and ReLU."""

from transformers import OPTConfig

from families.causal_lm import CausalFamily
from families.flax_models import HEADS, POSITIONS, VOCAB, WIDTH


def config(depth, **more):
    return OPTConfig(
        num_hidden_layers=depth, hidden_size=WIDTH, ffn_dim=4 * WIDTH, vocab_size=VOCAB,
        num_attention_heads=HEADS, max_position_embeddings=POSITIONS, word_embed_proj_dim=WIDTH,
        pad_token_id=0, bos_token_id=2, eos_token_id=1, **more,
    )  # fmt: skip


def call_arguments(key):
    """Unlike the other models, OPT takes `deterministic` instead of `train`."""
    return {"deterministic": key is None, "dropout_rng": key}


FAMILY = CausalFamily("opt", "OPT", "OPTForCausalLM", config, call_arguments)


def specs():
    of = FAMILY.variant
    yield from (of("forward", depth) for depth in (2, 6))
    yield of("forward", 3, dtype="bf16")
    yield of("forward", 2, do_layer_norm_before=False)
    yield of("loss", 2, evaluate=True)
    yield of("gradient", 2)
    yield of("gradient", 4, dropout=True)
    yield of("gradient", 2, dtype="bf16")
    yield of("train", 2, optimizer="adamw")
    yield of("train", 4, optimizer="adamw", dropout=True, clip="norm")
    yield of("train", 3, optimizer="adafactor", dtype="bf16")
    yield of("train", 2, optimizer="sgd-momentum", accumulate=2)
    yield of("train", 2, optimizer="lamb", do_layer_norm_before=False)
    for search in ("greedy", "top-k", "beam"):
        yield FAMILY.generation(search, 2)
    yield FAMILY.cached_step(4)
