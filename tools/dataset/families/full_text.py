"""GPT-2, BERT-base and T5-base of transformers, at the sizes at which they were published."""

import jax
import jax.numpy as jnp
import optax
from flax import linen
from transformers import BertConfig, GPT2Config
from transformers.models.gpt2.modeling_flax_gpt2 import FlaxGPT2Block

from families.encoder_heads import ignoring
from families.flax_models import (
    DTYPES,
    LIBRARIES,
    TRAIN_LIBRARIES,
    cross_entropy,
    dropout_arguments,
    make_model,
    shifted_loss,
    text_batch,
    weighted_mean,
)
from families.full_size import adamw, full_size, lower_step, warm_up_cosine
from families.stacked import apply_module, stack_layers, through_layers
from families.t5 import T5Config  # From there, since that module mends transformers' T5.
from lowering import integers, lower

GPT2_SIZES = {
    "124m": {"n_layer": 12, "n_embd": 768, "n_head": 12},
    "355m": {"n_layer": 24, "n_embd": 1024, "n_head": 16},
}
GPT2_PARAMETERS = {"124m": 124_439_808, "355m": 354_823_168}
GPT2_RATES = {"124m": 6e-4, "355m": 3e-4}  # Those of the GPT-3 paper, which most recipes take.


def gpt2_config(size):
    return GPT2Config(vocab_size=50_257, n_positions=1024, **GPT2_SIZES[size])


def gpt2_model(size, dtype):
    """Parameters and `forward(params, batch, key)` of GPT-2 as transformers writes it."""
    model, params = make_model("GPT2LMHeadModel", gpt2_config(size), dtype)

    def forward(params, batch, key=None):
        return model(**batch, params=params, **dropout_arguments(key)).logits

    return params, forward


def gpt2_scanned(size, dtype):
    """The same with its blocks in one scan, each computed again in the backward pass."""
    settings = gpt2_config(size)
    _, params = make_model("GPT2LMHeadModel", settings)
    params = dict(params["transformer"])
    params["h"] = stack_layers(params["h"])
    block = FlaxGPT2Block(settings, dtype=DTYPES[dtype])
    norm = linen.LayerNorm(epsilon=settings.layer_norm_epsilon, dtype=DTYPES[dtype])

    def forward(params, batch, key=None):
        tokens, places = params["wte"]["embedding"], params["wpe"]["embedding"]
        x = tokens.astype(DTYPES[dtype])[batch["input_ids"]]
        x = x + places.astype(DTYPES[dtype])[: x.shape[1]]

        def apply_block(layer, x, key):
            return apply_module(block, layer, x, attention_mask=batch["attention_mask"], key=key)[0]

        x = through_layers(apply_block, params["h"], x, key, scan=True, remat="remat")
        return norm.apply({"params": params["ln_f"]}, x) @ tokens.T.astype(DTYPES[dtype])

    return params, forward


def gpt2_forward():
    params, forward = gpt2_model("124m", "f32")
    return params, lower(forward, params, text_batch(8, 512))


def gpt2_train(size, dtype, batch, dropout=False, model=gpt2_model):
    params, forward = model(size, dtype)

    def loss(params, batch, key=None):
        return shifted_loss(forward(params, batch, key), batch)

    optimizer = adamw(warm_up_cosine(GPT2_RATES[size], 2000, 600_000), weight_decay=0.1, b2=0.95)
    return params, lower_step(loss, params, text_batch(batch, 512), optimizer, dropout)


def gpt2_decode():
    """One token through the key-value cache, as a server runs it for each token."""
    model, params = make_model("GPT2LMHeadModel", gpt2_config("124m"))
    cache = jax.eval_shape(lambda: model.init_cache(1, 1024))
    batch = {
        "input_ids": integers(1, 1),
        "attention_mask": integers(1, 1024),
        "position_ids": integers(1, 1),
    }

    def decode_step(params, cache, batch):
        found = model(**batch, past_key_values=cache, params=params)
        return jnp.argmax(found.logits[:, -1], axis=-1), found.past_key_values

    return params, lower(decode_step, params, cache, batch)


def gpt2():
    small, medium = GPT2_PARAMETERS["124m"], GPT2_PARAMETERS["355m"]
    sizes = {"batch": 8, "length": 512}
    yield full_size(
        "gpt2", "forward-124m", "forward",
        "Forward pass of GPT-2 small (124M), 8 texts of 512 tokens, f32.",
        gpt2_forward, small, LIBRARIES, **sizes, dtype="f32",
    )  # fmt: skip
    for dtype, suffix in (("f32", ""), ("bf16", "-bf16")):
        yield full_size(
            "gpt2", f"train-124m{suffix}", "train",
            f"Training step of GPT-2 small (124M) with AdamW, 8 texts of 512 tokens, {dtype}.",
            lambda dtype=dtype: gpt2_train("124m", dtype, 8),
            small, TRAIN_LIBRARIES, **sizes, dtype=dtype, optimizer="adamw",
        )  # fmt: skip
    sizes = {"batch": 4, "length": 512, "dtype": "bf16", "optimizer": "adamw"}
    yield full_size(
        "gpt2", "train-355m-dropout-bf16", "train",
        "Training step of GPT-2 medium (355M) with AdamW and dropout, 4 texts of 512 tokens, bf16.",
        lambda: gpt2_train("355m", "bf16", 4, dropout=True),
        medium, TRAIN_LIBRARIES, **sizes, dropout=True,
    )  # fmt: skip
    yield full_size(
        "gpt2", "train-355m-scan-remat-bf16", "train",
        "Training step of GPT-2 medium (355M) with AdamW, its layers scanned and rematerialised, "
        "4 texts of 512 tokens, bf16.",
        lambda: gpt2_train("355m", "bf16", 4, model=gpt2_scanned),
        medium, TRAIN_LIBRARIES, **sizes, scan=True, remat=True,
    )  # fmt: skip
    yield full_size(
        "gpt2", "decode-step-124m", "generate",
        "One greedy decoding step of GPT-2 small (124M) with a key-value cache of 1,024 positions.",
        gpt2_decode, small, LIBRARIES, batch=1, positions=1024, dtype="f32",
    )  # fmt: skip


def bert_train():
    model, params = make_model("BertForMaskedLM", BertConfig())
    tokens = integers(16, 128)
    batch = {"inputs": text_batch(16, 128, token_type_ids=tokens), "labels": tokens}

    def loss(params, batch, key):
        found = model(**batch["inputs"], params=params, **dropout_arguments(key))
        return ignoring(found.logits, batch["labels"])

    warm_up = optax.linear_schedule(0.0, 1e-4, 10_000)
    rate = optax.join_schedules([warm_up, optax.linear_schedule(1e-4, 0.0, 990_000)], [10_000])
    return params, lower_step(loss, params, batch, adamw(rate, 0.01), dropout=True)


def t5_train():
    config = T5Config(
        d_model=768, d_ff=3072, d_kv=64, num_heads=12, num_layers=12, num_decoder_layers=12,
        vocab_size=32_128,
    )  # fmt: skip
    model, params = make_model("T5ForConditionalGeneration", config, "bf16")
    target = integers(8, 64)
    batch = text_batch(
        8, 256, decoder_input_ids=target, decoder_attention_mask=target, labels=target
    )

    def loss(params, batch, key):
        inputs = {name: value for name, value in batch.items() if name != "labels"}
        found = model(**inputs, params=params, **dropout_arguments(key))
        losses = cross_entropy(found.logits, batch["labels"])
        return weighted_mean(losses, batch["decoder_attention_mask"].astype(jnp.float32))

    def inverse_root(step):
        """The schedule of T5's pre-training."""
        return jnp.minimum(0.01, 1 / jnp.sqrt(jnp.maximum(step, 1.0)))

    return params, lower_step(loss, params, batch, optax.adafactor(inverse_root), dropout=True)


def specs():
    yield from gpt2()
    yield full_size(
        "bert", "train-base-dropout", "train",
        "Training step of BERT-base for masked tokens with AdamW and dropout, "
        "16 texts of 128 tokens, f32.",
        bert_train, 109_514_298, TRAIN_LIBRARIES,
        batch=16, length=128, dtype="f32", optimizer="adamw", dropout=True,
    )  # fmt: skip
    yield full_size(
        "t5", "train-base-dropout-bf16", "train",
        "Training step of T5-base with Adafactor and dropout, 8 pairs of 256 and 64 tokens, bf16.",
        t5_train, 222_903_552, TRAIN_LIBRARIES,
        batch=8, source=256, target=64, dtype="bf16", optimizer="adafactor", dropout=True,
    )  # fmt: skip
