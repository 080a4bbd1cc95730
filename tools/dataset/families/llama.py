"""Llama and Mistral: rotary positions, RMS norms, gated feed-forward, sliding windows."""

import jax.numpy as jnp
from transformers import LlamaConfig, MistralConfig
from transformers.models.llama.modeling_flax_llama import FlaxLlamaDecoderLayer, FlaxLlamaRMSNorm

from families.causal_lm import CausalFamily, lm_task
from families.flax_models import (
    DTYPES,
    HEADS,
    POSITIONS,
    VOCAB,
    WIDTH,
    make_model,
    text_batch,
)
from families.stacked import apply_module, positions, stack_layers, through_layers


def config_maker(config_class, **fixed):
    def make_config(depth, **more):
        return config_class(
            num_hidden_layers=depth, hidden_size=WIDTH, intermediate_size=2 * WIDTH,
            num_attention_heads=HEADS, vocab_size=VOCAB, max_position_embeddings=POSITIONS,
            bos_token_id=2, eos_token_id=1, attention_dropout=0.1, **{**fixed, **more},
        )  # fmt: skip

    return make_config


llama_config = config_maker(LlamaConfig, num_key_value_heads=HEADS)
LLAMA = CausalFamily("llama", "Llama", "LlamaForCausalLM", llama_config)
MISTRAL = CausalFamily(
    "mistral",
    "Mistral",
    "MistralForCausalLM",
    config_maker(MistralConfig, num_key_value_heads=HEADS // 2, sliding_window=8),
)


def looped_task(depth, scan=False, remat=None, dtype="f32", dropout=False, **config):
    """Llama with the loop over its layers in our hands: scanned, rematerialised, or both."""
    settings = llama_config(depth, **config)
    _, params = make_model("LlamaForCausalLM", settings)
    params = {**params["model"], "lm_head": params["lm_head"]}
    if scan:
        params["layers"] = stack_layers(params["layers"])
    layer = FlaxLlamaDecoderLayer(settings, dtype=DTYPES[dtype])
    norm = FlaxLlamaRMSNorm(settings, dtype=DTYPES[dtype])

    def forward(params, batch, key=None):
        x = params["embed_tokens"]["embedding"][batch["input_ids"]].astype(DTYPES[dtype])

        def apply_block(weights, x, key):
            return apply_module(
                layer, weights, x, batch["attention_mask"], positions(batch), key=key
            )[0]

        x = through_layers(apply_block, params["layers"], x, key, scan, remat)
        x = norm.apply({"params": params["norm"]}, x)
        return jnp.asarray(x) @ params["lm_head"]["kernel"].astype(DTYPES[dtype])

    return lm_task(params, text_batch(), forward)


def llama():
    of = LLAMA.variant
    yield from (of("forward", depth) for depth in (1, 4, 8))
    yield of("forward", 2, dtype="bf16")
    yield of("forward", 2, num_key_value_heads=2)
    yield of("forward", 4, task=looped_task, scan=True)
    yield of("loss", 2, evaluate=True, dtype="bf16")
    yield of("gradient", 2)
    yield of("gradient", 4, dtype="bf16")
    yield of("gradient", 2, task=looped_task, remat="remat")
    yield of("train", 2, optimizer="adamw", clip="norm")
    yield of("train", 6, optimizer="adamw", dtype="bf16", z_loss=1e-4)
    yield of("train", 2, optimizer="adafactor")
    yield of("train", 2, optimizer="muon")
    yield of("train", 2, optimizer="lion", accumulate=2)
    yield of("train", 4, task=looped_task, optimizer="adamw", scan=True, dtype="bf16")
    yield of("train", 4, task=looped_task, optimizer="adamw", scan=True, remat="remat", clip="norm")
    yield of("train", 3, task=looped_task, optimizer="sgd-momentum", remat="remat-dots")
    for search in ("greedy", "top-p", "beam"):
        yield LLAMA.generation(search, 2)
    yield LLAMA.cached_step(4)
    yield LLAMA.prefill(2, "bf16")


def mistral():
    of = MISTRAL.variant
    yield from (of("forward", depth) for depth in (2, 6))
    yield of("forward", 3, dtype="bf16")
    yield of("loss", 4, evaluate=True)
    yield of("gradient", 1)
    yield of("gradient", 3, dtype="bf16")
    yield of("train", 2, optimizer="adamw")
    yield of("train", 4, optimizer="adamw", dtype="bf16", clip="norm")
    yield of("train", 1, optimizer="adafactor", accumulate=4)
    yield of("train", 3, optimizer="lion", label_smoothing=0.1)
    for search in ("greedy", "top-k"):
        yield MISTRAL.generation(search, 2)
    yield MISTRAL.cached_step(2)


def specs():
    yield from llama()
    yield from mistral()
