"""From a Python function to published HLO text: lower, strip, print, fingerprint.

Nothing here compiles: the data set holds graphs as the frameworks emit them, before any
pass of the compiler has run.
"""

import hashlib
import os
import re

# Set before the frameworks are imported: no network, no configuration of this machine's user.
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
os.environ.setdefault("TRANSFORMERS_NO_ADVISORY_WARNINGS", "1")
os.environ["KERAS_BACKEND"] = "jax"
os.environ["KERAS_HOME"] = os.path.join(os.devnull, "keras")  # Nowhere, on purpose.

import jax
import jax.numpy as jnp
from jaxlib import _hlo

jax.config.update("jax_platforms", "cpu")
jax.config.update("jax_num_cpu_devices", 8)  # The meshes of `collective` need up to eight.
# Locations hold local file paths; none may reach a file that we publish.
jax.config.update("jax_traceback_in_locations_limit", 0)
# Shardy writes MLIR into HLO attributes; GSPMD's plain `sharding=` is read by every XLA.
jax.config.update("jax_use_shardy_partitioner", False)

# A published text that holds one of these would leak a local path or be incomplete.
FORBIDDEN = (
    "metadata=", "source_file", "site-packages", ".py", "/tmp", "/work", "/root", "/home", "{...}",
)  # fmt: skip

# Longer lines than this are large constants, which make a graph heavy and teach nothing.
LONGEST_CONSTANT = 40_000


def abstract(*shape, dtype=jnp.float32):
    """An argument of which only the shape is known."""
    return jax.ShapeDtypeStruct(shape, dtype)


def integers(*shape):
    return abstract(*shape, dtype=jnp.int32)


# A key of the default generator (threefry), and one of `rbg`, as raw data.
KEY = abstract(2, dtype=jnp.uint32)
RBG_KEY = abstract(4, dtype=jnp.uint32)


def lower(function, *arguments, platform="cpu", name=None):
    """Lowers `function` for abstract arguments; the HLO module is called `jit_NAME`."""
    if name is not None:
        function = renamed(function, name)
    return jax.jit(function).trace(*arguments).lower(lowering_platforms=(platform,))


def renamed(function, name):
    """The same function under another name, since jit names the module after it."""

    def call(*arguments):
        return function(*arguments)

    call.__name__ = call.__qualname__ = name
    return call


def hlo_text(lowered):
    """Complete, reparsable HLO text: every constant printed, no metadata."""
    options = _hlo.HloPrintOptions()
    options.print_large_constants = True
    options.print_metadata = False
    options.print_percent = False
    options.print_operand_shape = False
    options.print_program_shape = False
    text = lowered.compiler_ir("hlo").as_hlo_module().to_string(options)
    for forbidden in FORBIDDEN:
        if forbidden in text:
            raise ValueError(f"the HLO text holds {forbidden!r}")
    for line in text.splitlines():
        if " constant(" in line and len(line) > LONGEST_CONSTANT:
            raise ValueError(f"a constant takes {len(line):,} characters: {line[:80]}")
    return text


INSTRUCTION = re.compile(r"^\s+(?:ROOT )?[^\s=]+ = (.*)$", re.MULTILINE)


def opcodes(text):
    """The opcodes of all instructions of all computations, in the order of the text."""
    return [opcode_of(match[1]) for match in INSTRUCTION.finditer(text)]


def opcode_of(definition):
    """The opcode in `SHAPE OPCODE(OPERANDS), ...`; a tuple's shape has spaces and parentheses."""
    end_of_shape, depth = 0, 0
    # A tuple's shape ends where its parentheses close; another shape at the first space.
    while depth > 0 or definition[end_of_shape] != " ":
        depth += (definition[end_of_shape] == "(") - (definition[end_of_shape] == ")")
        end_of_shape += 1
    start = end_of_shape + 1
    return definition[start : definition.index("(", start)]


def opcode_fingerprint(sequence):
    """Graphs of the same fingerprint differ in shapes only, which counts as a duplicate."""
    return hashlib.sha256("\n".join(sequence).encode()).hexdigest()
