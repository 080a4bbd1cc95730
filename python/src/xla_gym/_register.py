"""Tells Gymnasium of the environments: when ``xla_gym`` is imported, or through the entry point."""

from __future__ import annotations

# Id -> what it adds to the defaults of xla_gym.envs.XlaEnv.
IDS: dict[str, dict[str, object]] = {
    "xla-v0": {"observation": "counts"},
    "xla-v1": {"observation": "counts", "shaped": True},
    "xla-v2": {"observation": "counts+cost"},
    "xla-graph-v0": {"observation": "graph"},
}


def register() -> None:
    """Registers the environments, once."""
    # Here, not above: Gymnasium imports this module while it is being imported itself.
    from gymnasium.envs.registration import register as add
    from gymnasium.envs.registration import registry

    for name, kwargs in IDS.items():
        if name in registry:
            continue
        vector = None if name == "xla-graph-v0" else "xla_gym.vector:XlaVectorEnv"
        add(
            id=name,
            entry_point="xla_gym.envs:XlaEnv",
            vector_entry_point=vector,
            kwargs=kwargs,
            order_enforce=True,
        )
