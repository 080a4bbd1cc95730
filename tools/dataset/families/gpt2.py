"""GPT-2: its training loop in the forms in which people write it, and its generation loops."""

from flax import linen
from transformers import GPT2Config
from transformers.models.gpt2.modeling_flax_gpt2 import FlaxGPT2Block

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
from families.gpt2_recipes import recipe_specs
from families.stacked import apply_module, positions, stack_layers, through_layers


def config(depth, **more):
    return GPT2Config(
        n_layer=depth, n_embd=WIDTH, n_head=HEADS, vocab_size=VOCAB, n_positions=POSITIONS,
        bos_token_id=2, eos_token_id=1, **more,
    )  # fmt: skip


FAMILY = CausalFamily("gpt2", "GPT-2", "GPT2LMHeadModel", config)


def looped_task(depth, scan=False, remat=None, dtype="f32", dropout=False):
    """GPT-2 with the loop over its blocks in our hands: scanned, rematerialised, or both."""
    settings = config(depth)
    _, params = make_model("GPT2LMHeadModel", settings)
    params = dict(params["transformer"])
    if scan:
        params["h"] = stack_layers(params["h"])
    block = FlaxGPT2Block(settings, dtype=DTYPES[dtype])
    norm = linen.LayerNorm(epsilon=settings.layer_norm_epsilon, dtype=DTYPES[dtype])

    def forward(params, batch, key=None):
        tokens, places = params["wte"]["embedding"], params["wpe"]["embedding"]
        x = tokens.astype(DTYPES[dtype])[batch["input_ids"]]
        x = x + places.astype(DTYPES[dtype])[positions(batch)]

        def apply_block(layer, x, key):
            return apply_module(block, layer, x, attention_mask=batch["attention_mask"], key=key)[0]

        x = through_layers(apply_block, params["h"], x, key, scan, remat)
        return norm.apply({"params": params["ln_f"]}, x) @ tokens.T.astype(DTYPES[dtype])

    return lm_task(params, text_batch(), forward)


def forwards_and_losses():
    of = FAMILY.variant
    yield from (of("forward", depth) for depth in (1, 2, 3, 4, 6, 8, 12))
    yield from (of("forward", depth, dtype="bf16") for depth in (2, 6))
    yield of("forward", 4, dtype="pure-bf16")
    yield of("forward", 4, dropout=True)
    yield of("forward", 4, activation_function="relu")
    yield of("forward", 4, task=looped_task, scan=True)
    yield of("loss", 2)
    yield of("loss", 4, label_smoothing=0.1)
    yield of("loss", 3, z_loss=1e-4)
    yield of("loss", 2, evaluate=True)
    yield of("loss", 4, evaluate=True, dtype="bf16")


def gradients():
    of = FAMILY.variant
    yield from (of("gradient", depth) for depth in (1, 2, 4, 6))
    yield of("gradient", 2, dropout=True)
    yield of("gradient", 4, dropout="rbg")
    yield of("gradient", 3, dtype="bf16")
    yield of("gradient", 2, dtype="pure-bf16", dropout=True)
    yield of("gradient", 2, label_smoothing=0.1, dropout=True)
    yield of("gradient", 2, accumulate=4, dropout=True)
    yield of("gradient", 4, task=looped_task, scan=True)
    yield of("gradient", 4, task=looped_task, remat="remat")
    yield of("gradient", 4, task=looped_task, scan=True, remat="remat-dots")


def training_steps():
    of = FAMILY.variant
    for optimizer in (
        "adamw", "adam", "sgd-momentum", "lion", "lamb", "adafactor", "rmsprop", "adagrad",
        "adabelief", "novograd", "muon", "prodigy", "schedule-free", "nadamw", "sm3",
    ):  # fmt: skip
        yield of("train", 2, optimizer=optimizer)
    yield from (of("train", depth, optimizer="adamw") for depth in (1, 3, 4, 6, 8, 12))
    yield from (of("train", depth, optimizer="adamw", dropout=True) for depth in (1, 4))
    yield of("train", 3, optimizer="lion", dropout=True)
    yield of("train", 2, optimizer="adafactor", dropout=True, dtype="bf16")
    yield of("train", 4, optimizer="adamw", dropout="rbg", clip="norm")
    yield of("train", 12, optimizer="adamw", dtype="bf16")
    yield of("train", 2, optimizer="adamw-constant", dtype="pure-bf16")
    yield of("train", 4, optimizer="sgd-nesterov", dtype="bf16", clip="norm")
    yield of("train", 2, optimizer="adamw", clip="norm")
    yield of("train", 2, optimizer="adam", clip="value")
    yield of("train", 3, optimizer="lamb", clip="block")
    yield of("train", 2, optimizer="adamw", label_smoothing=0.1)
    yield of("train", 2, optimizer="adamw", z_loss=1e-4, clip="norm")
    yield of("train", 2, optimizer="adamw", average=True)
    yield of("train", 2, optimizer="adamw", accumulate=2)
    yield of("train", 4, optimizer="adafactor", accumulate=4, dropout=True)
    yield of("train", 2, optimizer="sgd-momentum", steps=4)
    yield of("train", 1, optimizer="adam", steps=8, dropout=True)
    yield of("train", 2, optimizer="adam", loss_scale=True, dtype="f16")


def loops_over_layers():
    """Scan and rematerialisation, alone and together."""

    def of(depth, **options):
        return FAMILY.variant("train", depth, task=looped_task, **options)

    yield of(4, optimizer="adamw", scan=True)
    yield of(4, optimizer="adafactor", scan=True, dropout=True)
    yield of(4, optimizer="lion", scan=True, dtype="bf16", clip="norm")
    yield of(4, optimizer="adamw", scan=True, remat="remat")
    yield of(8, optimizer="adamw", scan=True, remat="remat-dots", accumulate=2)
    yield of(2, optimizer="adamw", remat="remat")
    yield of(4, optimizer="adam", remat="remat-dots", dropout=True)
    yield of(3, optimizer="sgd-momentum", remat="remat", dtype="bf16")


def generations():
    for search in (
        "greedy", "greedy-min-length", "greedy-forced-ends", "sampling", "temperature",
        "top-k", "top-p", "top-k-top-p", "beam", "beam-early", "beam-min-length",
    ):  # fmt: skip
        yield FAMILY.generation(search, 2)
    yield FAMILY.generation("greedy", 6)
    yield FAMILY.generation("beam", 4, "bf16")
    yield FAMILY.cached_step(2)
    yield FAMILY.cached_step(6, "bf16")
    yield FAMILY.prefill(4)


def specs():
    yield from forwards_and_losses()
    yield from gradients()
    yield from training_steps()
    yield from loops_over_layers()
    yield from generations()
    yield from recipe_specs(FAMILY)
