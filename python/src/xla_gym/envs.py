"""Pass ordering as a Gymnasium environment, on any of the compilers.

Description
-----------
An episode begins at a program as it came, or after passes that prepare it (``start``). Each step runs one
real pass of the compiler on it. The aim is a program of which little is left, by few passes.

``engine`` says which compiler; the ids of Gymnasium begin with it: ``xla-v0``, ``toy-v0``. What can be
counted of a program, the compiler says itself. The first of it is the primary metric
(``env.unwrapped.metric``), which is to become small: the operations of XLA, the lines of the toy compiler.

Action space
------------
``Discrete(n)``: one action for each pass, ``env.unwrapped.actions`` names them. By default all passes
that the compiler proposes: of XLA those that keep what the program computes and belong before layout
assignment (115 with the engine of this version); ``passes`` chooses others. With ``stop_action`` the last
action ends the episode.

Observation space
-----------------
* ``xla-v0``, ``xla-shaped-v0``: ``Box(0, 1)``, instructions per opcode, ``ln(1 + n) / ln(1 + 10⁷)``;
  ``env.unwrapped.opcodes`` names them.
* ``xla-cost-v0``: ``Dict`` of ``counts`` as above, and ``cost``: what the compiler estimates of the work
  (of XLA: FLOPs, transcendental functions, bytes), and the primary metric, as logarithms and as ratios to
  the start. For value functions ``V(s, f)``.
* ``xla-graph-v0``: ``Graph``; nodes as ``env.unwrapped.world.node_features`` names what they say (of XLA:
  opcode, element type, rank, computation, logarithm of elements); edges: kind (0 a value, 1 an order, 2 the
  result of a called function) and position.

``observation`` chooses others: ``raw`` counts, ``share`` of the start's instructions, ``cost``, ``history``,
``applied`` and ``latest`` (which actions changed the program, and which two did last), ``size``,
``inlined`` (what inlining every call would cost).

Rewards
-------
* ``xla-v0``, ``xla-cost-v0``, ``xla-graph-v0``: minus the primary metric, as a share of that at the start.
* ``xla-shaped-v0``: the same plus ``γ φ(s′) − φ(s)``, where ``φ`` is minus a weighted sum of what the
  compiler estimates, as a share of the same sum at the start: of XLA the FLOPs and twice the transcendental
  functions; ``weights`` says others, by name.

``reward`` chooses ``difference`` (what this step removed of the primary metric), ``over-default`` (the same,
as a share of what the compiler's own order removes), ``record`` (by how much it went below the fewest so far,
likewise as a share), ``log-record`` (the logarithm of that) or ``nothing``; ``at_end`` adds a figure of what
the compiler makes of the result, by name (``env.unwrapped.world.figures``; of XLA ``legal``, ``kernels`` or
``run-time``, say).
A pass that crashes, is refused, or leaves an invalid program leaves the state as it was and costs
``failure_cost``.

Starting state
--------------
The next of ``benchmark_locs``, by ``sampler``: ``cycle``, ``random``, ``{"weighted": [...]}`` or
``{"curriculum": {"episodes": n}}``; or ``options={"benchmark": index or name}`` of ``reset``. There, at
``start``: ``emitted``, the program as it came, or another of ``env.unwrapped.world.starts`` (of XLA
``normalized``, on which passes rarely crash, and ``legal``, after what its pipeline needs in any case).

Episode end
-----------
Truncated after ``traj_limit`` steps; terminated by the stop action, if there is one.

Information
-----------
``benchmark``; what is counted and estimated, by the compiler's names (of XLA ``operations``,
``instructions``, ``inlined``, ``computations``, ``flops``, ``transcendentals``, ``bytes_accessed``);
``action_mask`` (false for what is known to do nothing or to fail here), and after a step ``pass``,
``changed``, ``failure`` (``refused``, ``died``, ``time-limit``, ``out-of-memory``, ``invalid``) and
``failure_message``. All of it is the same in every run; what is not, the time of the pass and whether it was
remembered, is in ``env.unwrapped.last_step``.

Version history
---------------
* v0: first release, on XLA as in TensorFlow 2.21.0. The paper calls ``xla-shaped-v0`` ``xla-v1`` and
  ``xla-cost-v0`` ``xla-v2``; these ids work too.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, SupportsInt

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.spaces import GraphInstance

from xla_gym import _native, _world
from xla_gym.data import Program

# Bounds of what nodes of graphs say of themselves, where they are less than the size of a program.
_NODE_BOUNDS = {"dtype": 64, "rank": 64, "elements": 64}


class PassOrderEnv(gym.Env[Any, np.int64]):
    """Pass ordering; see the module for what it is, :mod:`gymnasium` for how to use it."""

    metadata: dict[str, Any] = {"render_modes": ["human", "ansi", "rgb_array"], "render_fps": 4}

    def __init__(
        self,
        benchmark_locs: str | Program | Iterable[str | Program] | None = None,
        traj_limit: int = 40,
        *,
        observation: str = "counts",
        render_mode: str | None = None,
        **settings: Any,
    ) -> None:
        """Makes an environment.

        Args:
            benchmark_locs: programs; see :mod:`xla_gym.data`. For XLA by default ``hlo-v1:gpt2/train``.
            traj_limit: steps in an episode.
            observation: what is seen.
            render_mode: ``human``, ``ansi`` or ``rgb_array``.
            **settings: any of the following.
            engine: which compiler: ``xla``, ``toy``.
            reward: what is paid for each step.
            shaped: whether to add the potential-based term.
            gamma: its discount; that of the learning algorithm.
            weights: what each estimate weighs in it, by name.
            at_end: what is paid at the end.
            failure_cost: what a pass costs that fails.
            stop_action: whether the last action ends the episode.
            sampler: in which order the benchmarks come.
            mask: what the action mask knows: ``own`` (what this environment tried), ``shared``
                (whatever the cache knows; differs from run to run) or ``exact`` (slow).
            passes: names of the passes that are actions.
            start: where episodes begin.
            normalise: an old way to say ``start="normalized"``.
            cache: file in which the effects of passes are remembered, shared between processes.
            cache_memory: bytes of memory for the same.
            pass_limit: seconds that a pass may take.
            memory_limit: GiB that a compiler process may take.
            remember_failures: whether failures are remembered in the user's state folder.

        """
        if render_mode is not None and render_mode not in self.metadata["render_modes"]:
            raise _native.ConfigError(
                f"there is no render_mode {render_mode!r}; there are human, ansi and rgb_array"
            )
        self.render_mode = render_mode
        self._observation = observation
        self.world, config, views = _world.settings(
            benchmark_locs, traj_limit, observation=observation, **settings
        )
        self._env = _native.Env(self.world, config, views)
        self.actions: list[str] = self._env.actions
        self.opcodes: list[str] = self.world.opcodes
        self.metric: str = self.world.counts[0]
        self.benchmarks: list[str] = self.world.benchmarks
        self.action_space = spaces.Discrete(len(self.actions))
        self.observation_space = observation_space(observation, self._env.bounds, self.world)

    def _see(self, arrays: list[np.ndarray]) -> Any:
        if self._observation == "graph":
            nodes, links, kinds = self._env.graph()
            if len(links) == 0:
                return GraphInstance(nodes, None, None)
            return GraphInstance(nodes, kinds, links)
        if self._observation == "counts+cost":
            return {"counts": arrays[0], "cost": arrays[1]}
        return arrays[0]

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begins an episode; ``options={"benchmark": index or name}`` chooses where."""
        super().reset(seed=seed)
        benchmark = (options or {}).get("benchmark")
        if isinstance(benchmark, str):
            if benchmark not in self.benchmarks:
                raise _native.BenchmarkNotFoundError(
                    f"{benchmark!r} is not among the {len(self.benchmarks)} benchmarks"
                )
            benchmark = self.benchmarks.index(benchmark)
        arrays, info = self._env.reset(seed, benchmark)
        if self.render_mode == "human":
            self.render()
        return self._see(arrays), info

    def step(self, action: SupportsInt) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Runs the pass behind an action."""
        arrays, reward, terminated, truncated, info = self._env.step(int(action))
        if self.render_mode == "human":
            self.render()
        return self._see(arrays), reward, terminated, truncated, info

    def multistep(
        self, actions: Iterable[SupportsInt]
    ) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Runs several passes; the reward is their sum. Stops where the episode ends."""
        arrays, *rest = self._env.multistep([int(action) for action in actions])
        return self._see(arrays), *rest

    def undo(self, count: int = 1) -> Any:
        """Takes the last actions back."""
        return self._see(self._env.undo(count))

    def fork(self) -> PassOrderEnv:
        """A second environment in the same state."""
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        other._env = self._env.fork()
        return other

    def get_state(self) -> str:
        """Benchmark and actions as JSON: everything that is needed to come back here."""
        return self._env.save()

    def set_state(self, state: str) -> Any:
        """Comes back to what :meth:`get_state` gave, perhaps in another process."""
        return self._see(self._env.restore(state))

    def action_masks(self) -> np.ndarray:
        """False for actions that are known to do nothing here, or to fail. For sb3-contrib."""
        return self._env.action_mask()

    def program(self, form: str | None = None) -> bytes:
        """The current program as the compiler's own text, or in another of its forms, by name.

        ``env.unwrapped.world.forms`` names them: of XLA ``hlo`` text, ``pb``, StableHLO ``mlir`` and
        ``mlirbc``.
        """
        return self._env.program(form)

    def fingerprint(self) -> str:
        """Identity of the current program by content."""
        return self._env.fingerprint()

    @property
    def last_step(self) -> tuple[bool, float]:
        """Whether the last step was remembered, and the seconds of its pass if not."""
        return self._env.last

    @property
    def taken(self) -> list[str]:
        """Names of the passes of this episode."""
        return [self.actions[action] for action in self._env.taken]

    def render(self) -> Any:
        """A line about the current state, or a plot of the primary metric over steps."""
        if self.render_mode == "rgb_array":
            width, height, pixels = self._env.plot()
            return np.frombuffer(pixels, dtype=np.uint8).reshape(height, width, 3)
        line = self._env.describe()
        if self.render_mode == "ansi":
            return line
        print(line, flush=True)
        return None

    def close(self) -> None:
        """Ends the compiler process."""
        self._env.close()


def observation_space(
    observation: str, bounds: list[tuple[float, float, int]], world: _native.World
) -> spaces.Space[Any]:
    """The Gymnasium space of a kind of observation."""
    if observation == "graph":
        known = {"opcode": len(world.opcodes), **_NODE_BOUNDS}
        high = np.array([known.get(name, 1e7) for name in world.node_features], dtype=np.float32)
        kinds = np.array([2, 1e7], dtype=np.float32)
        return spaces.Graph(
            node_space=spaces.Box(np.zeros_like(high), high),
            edge_space=spaces.Box(np.zeros(2, np.float32), kinds),
        )
    boxes = [spaces.Box(low, high, (length,), np.float32) for low, high, length in bounds]
    if observation == "counts+cost":
        return spaces.Dict({"counts": boxes[0], "cost": boxes[1]})
    return boxes[0]


# As it was called when XLA was the only compiler.
XlaEnv = PassOrderEnv
