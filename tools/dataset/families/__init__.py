"""The families of graphs: each module listed here has `specs()`, which yields `Spec`s."""

import importlib

# The order is the order of generation, and of two graphs of one opcode sequence the first stays.
MODULES = (
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


def all_specs():
    """Every declared graph with the name of the module that declares it."""
    seen = set()
    for name in MODULES:
        for spec in importlib.import_module(f"families.{name}").specs():
            if spec.id in seen:
                raise ValueError(f"two graphs are called {spec.id}")
            seen.add(spec.id)
            yield name, spec
