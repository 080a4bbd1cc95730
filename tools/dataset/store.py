"""Finished graphs in the work folder, one file each, so that an interrupted run goes on."""

import functools
import hashlib
import json
import os
import pathlib
import re
from importlib.metadata import version

HERE = pathlib.Path(__file__).resolve().parent

# Changing one of these can change any graph.
SHARED_SOURCES = ("lowering.py", "spec.py", "training.py", "variants.py")
LIBRARIES = ("jax", "jaxlib", "flax", "optax", "transformers", "keras", "numpy")


@functools.cache
def source_of(module):
    """The text of a family's module and of the family modules it imports."""
    text = (HERE / "families" / f"{module}.py").read_text()
    imported = sorted(set(re.findall(r"^from families\.(\w+) import", text, re.MULTILINE)))
    return text + "".join(source_of(name) for name in imported)


@functools.cache
def shared_key():
    parts = [(HERE / name).read_text() for name in SHARED_SOURCES]
    parts += [f"{library} {version(library)}" for library in LIBRARIES]
    return "\n".join(parts)


def input_key(module, spec):
    """What the graph is made from: the same key means the same bytes."""
    parts = (spec.id, json.dumps(spec.options), source_of(module), shared_key())
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def write_whole(path, data):
    """Writes all or nothing, whenever the process is interrupted."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(path.name + ".partial")
    partial.write_bytes(data)
    os.replace(partial, path)


class Store:
    """A data set's part of the work folder: FAMILY/NAME.hlo with FAMILY/NAME.json beside it."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)

    def text_path(self, spec):
        return self.folder / spec.family / f"{spec.name}.hlo"

    def facts(self, module, spec):
        """Instructions, hashes and opcodes of a finished graph; None if it must be made."""
        path = self.text_path(spec)
        try:
            facts = json.loads(path.with_suffix(".json").read_bytes())
        except (FileNotFoundError, json.JSONDecodeError):
            return None
        current = facts.get("key") == input_key(module, spec) and path.exists()
        return facts if current else None

    def save(self, module, spec, text, facts):
        path = self.text_path(spec)
        write_whole(path, text.encode())
        facts = {"key": input_key(module, spec), **facts}
        # The facts come last: without them the graph counts as missing.
        write_whole(path.with_suffix(".json"), json.dumps(facts).encode())
