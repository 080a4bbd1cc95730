"""One declaration of a model, many graphs: the variants in which people run it.

A family describes its model as a function that returns a `Task`; `variant` turns that function
and a set of options into the `Spec` of one graph, with its name and its sentence.
"""

import dataclasses
from collections.abc import Callable

import training
from lowering import lower
from spec import Spec

# Options about the training step; all others are about the model and go to the family.
STEP_OPTIONS = ("optimizer", "clip", "accumulate", "average", "steps", "loss_scale")


@dataclasses.dataclass(frozen=True)
class Task:
    """A model with something to do: abstract arguments, and functions of them.

    `forward(params, batch, key)` gives the outputs, `loss(params, batch, key)` a scalar and
    `metrics(params, batch)` what an evaluation step reports.
    """

    params: object
    batch: object
    forward: Callable
    loss: Callable
    metrics: Callable | None = None


def variant(family, title, make_task, kind, libraries, task="", evaluate=False, **options):
    """The spec of one graph. `task` names what the model is trained for, if there is a choice."""
    task_options = {name: value for name, value in options.items() if name not in STEP_OPTIONS}
    step_options = {name: value for name, value in options.items() if name in STEP_OPTIONS}
    dropout = options.get("dropout", False)

    def build():
        made = make_task(task, **task_options) if task else make_task(**task_options)
        if evaluate:
            return lower(made.metrics, made.params, made.batch, name="eval_step")
        if kind == "forward":
            keys = training.key_arguments(dropout)

            def forward(params, batch, *key):
                return made.forward(params, batch, training.typed_key(*key) if key else None)

            return lower(forward, made.params, made.batch, *keys)
        if kind == "loss":
            return training.lower_loss(made.loss, made.params, made.batch, dropout)
        if kind == "gradient":
            return training.lower_gradient(
                made.loss, made.params, made.batch, dropout, **step_options
            )
        plain = {name: value for name, value in step_options.items() if name != "loss_scale"}
        step = training.lower_scaled_train if "loss_scale" in options else training.lower_train
        return step(made.loss, made.params, made.batch, dropout=dropout, **plain)

    shown = {"task": task, **options} if task else dict(options)
    return Spec(
        family=family,
        name=variant_name("eval" if evaluate else kind, task, options),
        kind=kind,
        what=sentence(title, "evaluation" if evaluate else kind, task, options),
        build=build,
        options=shown,
        libraries=libraries,
    )


def variant_name(kind, task, options):
    """Short, unique and sorted by eye: `train-mlm-4l-adamw-dropout-bf16`."""
    parts = [kind, task]
    for name, value in options.items():
        parts.append(f"{value}l" if name == "depth" else short(name, value))
    return "-".join(part for part in parts if part)


SHORT_NAMES = {"accumulate": "accum", "steps": "loop", "label_smoothing": "smooth"}


def short(name, value):
    """An option in a graph's name. Rates are left out: no two graphs differ by a rate alone."""
    written = SHORT_NAMES.get(name, name.replace("_", "-"))
    if value is True or isinstance(value, float):
        return written
    if isinstance(value, str):
        return f"{written}-{value}" if name in ("clip", "dropout") else value
    return f"{written}{value}"


KIND_PHRASES = {
    "forward": "Forward pass",
    "loss": "Loss",
    "gradient": "Loss and gradient",
    "train": "Training step",
    "evaluation": "Evaluation step",
}


# How an option reads in a sentence; others read as their name and value.
OPTION_PHRASES = {
    "optimizer": "{}",
    "dtype": "{}",
    "activation": "{}",
    "clip": "clipping by {}",
    "accumulate": "gradients of {} micro-batches accumulated in a scan",
    "steps": "{} steps in one scan",
    "average": "moving average of the parameters",
    "loss_scale": "dynamic loss scale",
    "scan": "scan over layers",
    "remat": "rematerialised blocks",
}


def sentence(title, kind, task, options):
    """What the graph is, for people who read the list."""
    model = f"{options['depth']}-layer {title}" if "depth" in options else title
    details = []
    for name, value in options.items():
        if name in OPTION_PHRASES:
            details.append(OPTION_PHRASES[name].format(value))
        elif name != "depth":
            details.append(f"{name} {value}".removesuffix(" True").replace("_", " "))
    article = "an" if model.startswith(("8", "11", "18", "A", "E", "I", "O", "a", "e")) else "a"
    text = f"{KIND_PHRASES[kind]} of {article} {model}"
    text += f" for {task}" if task else ""
    return f"{text}: {', '.join(details)}." if details else f"{text}."
