"""Tells Gymnasium of the environments: when ``xla_gym`` is imported, or through the entry point."""

from __future__ import annotations

from typing import Any

from xla_gym import _native

# What stands between a compiler's name and the version -> what it adds to the defaults of PassOrderEnv.
VARIANTS: dict[str, dict[str, Any]] = {
    "": {"observation": "counts"},
    "-shaped": {"observation": "counts", "shaped": True},
    "-cost": {"observation": "counts+cost"},
    "-graph": {"observation": "graph"},
}

# Variants for which a compiler's worker has nothing: the toy gives no graphs, LLVM no estimates of work.
MISSING = {"toy": {"-graph"}, "llvm": {"-cost"}}

# The paper numbers its three environments; what the second and the third are is said by these ids.
ALIASES = {"xla-v1": "xla-shaped-v0", "xla-v2": "xla-cost-v0"}


def ids() -> dict[str, dict[str, Any]]:
    """Each id, with what its environments are made with."""
    return {
        f"{engine}{variant}-v0": {"engine": engine, **kwargs}
        for engine in _native.engines()
        for variant, kwargs in VARIANTS.items()
        if variant not in MISSING.get(engine, ())
    }


def register() -> None:
    """Registers the environments, once."""
    # Here, not above: Gymnasium imports this module while it is being imported itself.
    from gymnasium.envs.registration import register as add
    from gymnasium.envs.registration import registry

    for name, kwargs in ids().items():
        if name in registry:
            continue
        graph = kwargs["observation"] == "graph"
        add(
            id=name,
            entry_point="xla_gym.envs:PassOrderEnv",
            vector_entry_point=None if graph else "xla_gym.vector:PassOrderVectorEnv",
            kwargs=kwargs,
            order_enforce=True,
        )
    for alias, name in ALIASES.items():
        # Not by `register`: Gymnasium would take xla-v0 for an old version of them, and say so to whoever
        # makes it. What it compares are the names that specifications give themselves.
        registry.setdefault(alias, registry[name])
