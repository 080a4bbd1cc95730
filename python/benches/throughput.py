"""What the Python environments add to the passes' own time, measured in one run.

Run by ``make bench``. Every step is measured twice: by the worker around the bare pass, and here around the
whole ``step`` with its observation, info and mask.
"""

from __future__ import annotations

import argparse
import statistics
import time

import gymnasium
import numpy as np

import xla_gym  # noqa: F401  (registers the environments)


def main() -> None:
    """Prints one row for each way to step."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--graph", default="hlo-v1/gpt2/train-4l-adamw", help="which graph")
    parser.add_argument("--episodes", type=int, default=40, help="how many episodes")
    parser.add_argument("--length", type=int, default=40, help="steps in each")
    parser.add_argument("--rounds", type=int, default=3, help="repetitions; the middle one counts")
    args = parser.parse_args()
    actions = np.random.default_rng(0).integers(114, size=(args.episodes, args.length)).tolist()

    rows: dict[str, list[float]] = {}
    for _ in range(args.rounds):
        bare, forgetful = one(args, actions, cache_memory=0)
        rows.setdefault("bare passes, inside the worker", []).append(bare)
        rows.setdefault("environment, nothing remembered", []).append(forgetful)
        rows.setdefault("2 environments, nothing remembered", []).append(two(args, actions, 0))
        remembering = make(args, cache_memory=256 << 20)
        run(remembering, actions)
        rows.setdefault("everything remembered", []).append(run(remembering, actions)[1])
    base = statistics.median(rows["bare passes, inside the worker"])
    print(f"Python, {args.graph}, {args.episodes} episodes of {args.length} random passes:")
    for name, times in rows.items():
        micros = statistics.median(times)
        print(f"  {name:38} {micros:8.1f} µs a step, {micros / base:.3f} of the bare passes")


def make(args: argparse.Namespace, cache_memory: int):
    """One environment."""
    return gymnasium.make(
        "xla-v0",
        benchmark_locs=args.graph,
        traj_limit=args.length,
        start="normalized",
        cache_memory=cache_memory,
        remember_failures=False,
    ).unwrapped


def run(env, actions: list[list[int]]) -> tuple[float, float]:
    """Microseconds a step: of the pass alone, and of the whole step."""
    inside = outside = 0.0
    for episode in actions:
        env.reset()
        if env.world.cache_stats()["memory_entries"] == 0:
            env.fingerprint()  # forks the start state, which the first unknown pass would wait for
        for action in episode:
            begin = time.perf_counter()
            env.step(action)
            outside += time.perf_counter() - begin
            inside += env.last_step[1]
    steps = len(actions) * len(actions[0])
    return inside / steps * 1e6, outside / steps * 1e6


def one(args: argparse.Namespace, actions: list[list[int]], cache_memory: int):
    """One environment that remembers nothing."""
    return run(make(args, cache_memory), actions)


def two(args: argparse.Namespace, actions: list[list[int]], cache_memory: int) -> float:
    """Two environments side by side."""
    envs = gymnasium.make_vec(
        "xla-v0",
        num_envs=2,
        benchmark_locs=args.graph,
        traj_limit=args.length,
        start="normalized",
        cache_memory=cache_memory,
        remember_failures=False,
    )
    spent = 0.0
    for first, second in zip(actions[::2], actions[1::2], strict=False):
        envs.reset()
        begin = time.perf_counter()
        for pair in zip(first, second, strict=True):
            envs.step(pair)
        spent += time.perf_counter() - begin
    return spent / (len(actions) * len(actions[0])) * 1e6


if __name__ == "__main__":
    main()
