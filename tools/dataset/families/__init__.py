"""The families of graphs: each module listed here has `specs()`, which yields `Spec`s."""

import importlib

# The order is the order of generation, and of two graphs of one opcode sequence the first stays.
SMALL_MODULES = (
    "gpt2",
    "bert",
    "resnet",
    "vit",
    "t5",
    "bart",
    "llama",
    "opt",
    "keras_cnn",
    "rnn",
    "moe",
    "mlp",
    "linalg",
    "signal",
    "sampling",
    "control",
    "sorting",
    "collective",
    "diffusion",
    "graphnet",
    "ode",
)

FULL_MODULES = (
    "full_text",
    "full_llama",
    "full_vision",
    "full_keras",
    "full_diffusion",
    "full_moe",
    "full_other",
    "full_physics",
)

MODULES = {"hlo-v1": SMALL_MODULES, "hlo-full-v1": FULL_MODULES}


def all_specs(dataset="hlo-v1"):
    """Every declared graph of a data set, with the name of the module that declares it."""
    seen = set()
    for name in MODULES[dataset]:
        for spec in importlib.import_module(f"families.{name}").specs():
            if spec.id in seen:
                raise ValueError(f"two graphs are called {spec.id}")
            seen.add(spec.id)
            yield name, spec
