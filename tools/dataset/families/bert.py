"""BERT and RoBERTa: pre-training and fine-tuning of encoders."""

import functools

from transformers import BertConfig, RobertaConfig

from families.encoder_heads import encoder_task
from families.flax_models import HEADS, LIBRARIES, POSITIONS, TRAIN_LIBRARIES, VOCAB, WIDTH
from variants import variant


def config_maker(config_class):
    def make_config(depth, **more):
        return config_class(
            num_hidden_layers=depth, hidden_size=WIDTH, num_attention_heads=HEADS,
            intermediate_size=4 * WIDTH, vocab_size=VOCAB, max_position_embeddings=POSITIONS,
            **more,
        )  # fmt: skip

    return make_config


def variants_of(family, title, prefix, config_class):
    task = functools.partial(encoder_task, prefix, config_maker(config_class))

    def of(kind, name, depth, **options):
        libraries = LIBRARIES if kind == "forward" else TRAIN_LIBRARIES
        return variant(family, title, task, kind, libraries, task=name, depth=depth, **options)

    return of


def bert():
    of = variants_of("bert", "BERT", "Bert", BertConfig)
    for name, depth in (
        ("mlm", 1), ("mlm", 4), ("mlm", 12), ("classification", 2), ("classification", 6),
        ("qa", 2), ("tagging", 3), ("choice", 2), ("pretraining", 4),
    ):  # fmt: skip
        yield of("forward", name, depth)
    yield of("forward", "mlm", 4, dtype="bf16")
    yield of("forward", "classification", 4, dtype="pure-bf16")
    yield of("forward", "qa", 4, dropout=True)
    yield of("loss", "pretraining", 2)
    yield of("loss", "multilabel", 2)
    yield of("loss", "mlm", 2, dropout=True)
    for name, depth in (("mlm", 2), ("classification", 3), ("qa", 4), ("tagging", 2)):
        yield of("loss", name, depth, evaluate=True)
    yield of("loss", "pretraining", 4, evaluate=True, dtype="bf16")
    for name, depth in (("mlm", 2), ("classification", 2), ("qa", 4), ("tagging", 1)):
        yield of("gradient", name, depth)
    yield of("gradient", "mlm", 4, dropout=True)
    yield of("gradient", "mlm", 3, dtype="bf16")
    yield of("gradient", "mlm", 4, remat=True)
    yield of("gradient", "classification", 4, dropout=True, remat=True)
    yield of("gradient", "choice", 2, dropout="rbg")
    yield of("gradient", "pretraining", 2, accumulate=2)
    yield from bert_training(of)


def bert_training(of):
    for optimizer in ("adamw", "lamb", "adafactor", "sgd-momentum", "lion", "radam", "yogi"):
        yield of("train", "mlm", 2, optimizer=optimizer)
    yield of("train", "mlm", 4, optimizer="adamw", dropout=True)
    yield of("train", "mlm", 6, optimizer="lamb", clip="norm")
    yield of("train", "mlm", 12, optimizer="adamw")
    yield of("train", "mlm", 12, optimizer="adamw", dtype="bf16", dropout=True)
    yield of("train", "mlm", 4, optimizer="adamw", remat=True, dtype="bf16")
    yield of("train", "pretraining", 2, optimizer="lamb", accumulate=4)
    yield of("train", "pretraining", 4, optimizer="lamb", dropout=True, clip="norm")
    yield of("train", "pretraining", 2, optimizer="adafactor", dtype="bf16")
    yield of("train", "classification", 2, optimizer="adamw", dropout=True)
    yield of("train", "classification", 4, optimizer="adam")
    yield of("train", "classification", 6, optimizer="sgd-nesterov", clip="value")
    yield of("train", "regression", 2, optimizer="adamw", average=True)
    yield of("train", "multilabel", 3, optimizer="rmsprop")
    yield of("train", "qa", 2, optimizer="adamw", dropout="rbg")
    yield of("train", "qa", 4, optimizer="adafactor", remat=True)
    yield of("train", "tagging", 2, optimizer="adamw", clip="norm")
    yield of("train", "tagging", 3, optimizer="lion", dtype="bf16")
    yield of("train", "choice", 2, optimizer="adamw", steps=4)


def roberta():
    of = variants_of("roberta", "RoBERTa", "Roberta", RobertaConfig)
    for name, depth in (("mlm", 2), ("mlm", 6), ("classification", 3), ("qa", 2), ("choice", 1)):
        yield of("forward", name, depth)
    yield of("forward", "tagging", 4, dtype="bf16")
    yield of("loss", "classification", 2, evaluate=True)
    yield of("loss", "mlm", 4, evaluate=True, dtype="bf16")
    yield of("gradient", "mlm", 3)
    yield of("gradient", "classification", 2, dropout=True)
    yield of("gradient", "qa", 2, dtype="bf16")
    yield of("gradient", "tagging", 4, remat=True)
    for optimizer in ("adamw", "adafactor", "adagrad", "nadamw"):
        yield of("train", "mlm", 2, optimizer=optimizer)
    yield of("train", "mlm", 4, optimizer="adamw", dropout=True, clip="norm")
    yield of("train", "mlm", 6, optimizer="adamw", accumulate=2)
    yield of("train", "classification", 2, optimizer="adamw", dropout=True)
    yield of("train", "classification", 3, optimizer="lion", dtype="bf16")
    yield of("train", "qa", 3, optimizer="adam", dropout="rbg")
    yield of("train", "tagging", 2, optimizer="sgd-momentum", remat=True)


def specs():
    yield from bert()
    yield from roberta()
