"""Many environments on all cores, without Python in the loop."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from xla_gym import _native, _world
from xla_gym.data import Program
from xla_gym.envs import observation_space


class PassOrderVectorEnv(VectorEnv[Any, Any, Any]):
    """What ``gymnasium.make_vec`` makes: environments that share one compiler and one cache.

    The arguments are those of :class:`xla_gym.envs.PassOrderEnv`. An environment whose episode is over begins
    a new one at the next step, whatever the action. Environment ``i`` draws from stream ``i`` of the
    seed, so that a seed means the same whatever the timing.
    """

    metadata: dict[str, Any] = {
        "render_modes": ["ansi"],
        "autoreset_mode": AutoresetMode.NEXT_STEP,
    }

    def __init__(
        self,
        num_envs: int = 1,
        benchmark_locs: str | Program | Iterable[str | Program] | None = None,
        traj_limit: int = 40,
        *,
        observation: str = "counts",
        render_mode: str | None = None,
        **settings: Any,
    ) -> None:
        """Makes ``num_envs`` environments."""
        if observation == "graph":
            raise _native.ConfigError("graphs differ in size; use gymnasium.make for them")
        self.num_envs = num_envs
        self.render_mode = render_mode
        self._observation = observation
        self.world, config, views = _world.settings(
            benchmark_locs, traj_limit, observation=observation, **settings
        )
        self._envs = _native.VectorEnv(self.world, config, views, num_envs)
        self.actions: list[str] = self._envs.actions
        self.opcodes: list[str] = self.world.opcodes
        self.metric: str = self.world.counts[0]
        self.benchmarks: list[str] = self.world.benchmarks
        self.single_action_space = spaces.Discrete(len(self.actions))
        self.single_observation_space = observation_space(observation, self._envs.bounds, self.world)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self._masks = np.ones((num_envs, len(self.actions)), dtype=bool)

    def _see(self, arrays: list[np.ndarray]) -> Any:
        if self._observation == "counts+cost":
            return {"counts": arrays[0], "cost": arrays[1]}
        return arrays[0]

    def _gather(self, infos: list[dict[str, Any]]) -> dict[str, Any]:
        self._masks = np.stack([info["action_mask"] for info in infos])
        gathered: dict[str, Any] = {}
        for key in max(infos, key=len):
            present = np.array([key in info for info in infos])
            if key == "action_mask":
                gathered[key] = self._masks
            else:
                values = [info.get(key) for info in infos]
                kind = type(next(value for value, is_there in zip(values, present, strict=True) if is_there))
                if kind in (int, float, bool):
                    filled = [kind() if value is None else value for value in values]
                    gathered[key] = np.array(filled)
                else:
                    gathered[key] = np.empty(len(values), dtype=object)
                    gathered[key][:] = values
            gathered[f"_{key}"] = present
        return gathered

    def reset(
        self,
        *,
        seed: int | list[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[Any, dict[str, Any]]:
        """Begins an episode in each, or in those of ``options["reset_mask"]``."""
        seeds = list(seed) if isinstance(seed, list | tuple) else [seed] * self.num_envs
        which = (options or {}).get("reset_mask", np.ones(self.num_envs, dtype=bool))
        arrays, infos = self._envs.reset(seeds, [bool(value) for value in which])
        return self._see(arrays), self._gather(infos)

    def step(self, actions: Any) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Runs one pass in each."""
        arrays, rewards, terminated, truncated, infos = self._envs.step(
            [int(action) for action in actions]
        )
        return self._see(arrays), rewards, terminated, truncated, self._gather(infos)

    def action_masks(self) -> np.ndarray:
        """False for actions that are known to do nothing, or to fail, one row an environment."""
        return self._masks

    def render(self) -> tuple[str, ...]:
        """One line about each."""
        return tuple(self._envs.describe())

    def close_extras(self, **kwargs: Any) -> None:
        """Ends the compiler processes."""
        self._envs.close()


# As it was called when XLA was the only compiler.
XlaVectorEnv = PassOrderVectorEnv
