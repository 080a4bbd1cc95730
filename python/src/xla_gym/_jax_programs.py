"""Programs inside JAX: how to get at them, and how to put others in their place.

All of this takes attributes that JAX calls private; what is missing in a version is named.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable
from typing import Any

import jax


class Refused(Exception):
    """Why a program is not optimised."""


def private(what: str, get: Callable[..., Any], *arguments: Any) -> Any:
    """Something that JAX may rename any day."""
    try:
        return get(*arguments)
    except (ImportError, AttributeError, KeyError, TypeError) as error:
        raise Refused(f"this version of JAX keeps {what} elsewhere ({error})") from error


def hlo_of(lowered: Any) -> bytes:
    return lowered.compiler_ir("hlo").as_serialized_hlo_module_proto()


def refuse_effects(traced: Any, lowered: Any) -> None:
    """Refuses what must not run twice, or holds on to Python."""
    if effects := traced.jaxpr.effects:
        raise Refused(f"it has effects: {', '.join(sorted(map(str, effects)))}")
    inside = private("what a lowered function calls", lambda: lowered._lowering.compile_args)
    if inside.get("host_callbacks") or inside.get("keepalive"):
        raise Refused("it calls back into Python")
    if inside.get("mut") is not None:
        raise Refused("it changes references")


def refuse_devices(plain: Any) -> None:
    shardings = jax.tree_util.tree_leaves((plain.input_shardings, plain.output_shardings))
    devices = {device for sharding in shardings for device in sharding.device_set}
    if len(devices) > 1:
        raise Refused(f"it runs on {len(devices)} devices")
    if other := {device.platform for device in devices} - {"cpu"}:
        raise Refused(f"it runs on {other.pop()}; recipes are for XLA's CPU pipeline")


def refuse_donation(lowered: Any, other: Any, plain: Any, optimised: Any) -> None:
    """Refuses a program that uses up other arguments, whether JAX knows of it or not."""
    infos = [jax.tree_util.tree_leaves(each.args_info) for each in (lowered, other)]
    donated = [[info.donated for info in each] for each in infos]
    # As the header of a compiled module says: which result lies in the memory of which parameter.
    headers = [each.as_text().partition("\n")[0] for each in (plain, optimised)]
    aliases = [sorted(re.findall(r"\{([\d, ]*)\}: \((\d+), \{([\d, ]*)\}", each)) for each in headers]
    if donated[0] != donated[1] or aliases[0] != aliases[1]:
        raise Refused("it donates other arguments than the plain program")


def main_of(module: Any) -> Any:
    for operation in module.body.operations:
        if "sym_name" in operation.attributes and operation.attributes["sym_name"].value == "main":
            return operation
    raise Refused("the program has no main function")


def with_module(lowered: Any, module: Any) -> Any:
    """A lowered function with another program in it: all that JAX knows around it stays."""
    lowering = copy.copy(lowered._lowering)
    if not hasattr(lowering, "_hlo"):
        raise AttributeError("_hlo")
    lowering._hlo, lowering._executable = module, None
    other = copy.copy(lowered)
    other._lowering = lowering
    return other


def again(lowered: Any) -> Any:
    """The same lowered function, of which JAX remembers no compilation."""
    module = lowered.compiler_ir("stablehlo")
    return private(
        "the program of a lowered function",
        lambda: with_module(lowered, type(module).parse(str(module), module.context)),
    )


def replaced(lowered: Any, hlo: bytes) -> Any:
    """The lowered function with this program for its own."""
    before = lowered.compiler_ir("stablehlo")

    def convert() -> Any:
        try:
            from jax.extend.mlir import hlo_to_stablehlo
        except ImportError:
            from jax._src.lib import _jax

            hlo_to_stablehlo = _jax.mlir.hlo_to_stablehlo
        return type(before).parse(hlo_to_stablehlo(hlo), before.context)

    after = private("the way from HLO to StableHLO", convert)
    old, new = main_of(before), main_of(after)
    if old.attributes["function_type"] != new.attributes["function_type"]:
        raise Refused(
            f"its type became {new.attributes['function_type']}, from {old.attributes['function_type']}"
        )
    # Donation, layouts and the like stand in attributes, which HLO writes otherwise or not at all.
    for name in ("arg_attrs", "res_attrs"):
        if name in new.attributes:
            del new.attributes[name]
        if name in old.attributes:
            new.attributes[name] = old.attributes[name]
    attributes, wanted = after.operation.attributes, before.operation.attributes
    for name in [attribute if isinstance(attribute, str) else attribute.name for attribute in attributes]:
        del attributes[name]
    for name in [attribute if isinstance(attribute, str) else attribute.name for attribute in wanted]:
        attributes[name] = wanted[name]
    return private("the program of a lowered function", with_module, lowered, after)
