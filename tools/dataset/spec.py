"""What a family declares: one `Spec` for each graph it wants in the data set."""

import dataclasses
from collections.abc import Callable
from importlib.metadata import version

# The data set of small graphs, and that of programs at the sizes at which people run them.
DATASETS = ("hlo-v1", "hlo-full-v1")

KINDS = ("forward", "loss", "gradient", "train", "generate", "other")


@dataclasses.dataclass(frozen=True)
class Spec:
    """One graph to make. `build` returns it lowered; it runs only when the graph is missing."""

    family: str
    name: str
    kind: str
    what: str
    build: Callable
    options: dict = dataclasses.field(default_factory=dict)
    libraries: tuple = ("jax",)
    dataset: str = "hlo-v1"

    def __post_init__(self):
        if self.kind not in KINDS:
            raise ValueError(f"{self.id}: {self.kind!r} is none of {KINDS}")
        if self.dataset not in DATASETS:
            raise ValueError(f"{self.id}: {self.dataset!r} is none of {DATASETS}")

    @property
    def id(self):
        return f"{self.dataset}/{self.family}/{self.name}"

    @property
    def framework(self):
        """The libraries that emitted the graph, with versions: `jax 0.10.2, optax 0.2.8`."""
        return ", ".join(f"{library} {version(library)}" for library in self.libraries)


# Graphs of one super-family resemble each other; train/test splits must not cut through it.
SUPER_FAMILIES = {
    "opt": "gpt2",
    "roberta": "bert",
    "mistral": "llama",
    "vgg16": "cnn",
    "mobilenetv2": "cnn",
    "efficientnetb0": "cnn",
    "inceptionv3": "cnn",
    "densenet121": "cnn",
    "xception": "cnn",
    "convnext": "cnn",
    "physics": "ode",
}


def super_family(family):
    return SUPER_FAMILIES.get(family, family)
