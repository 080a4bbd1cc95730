"""How far passes at random come, beside the compiler's own order.

    python examples/random_agent.py --benchmarks 'hlo-v1/mlp/*' --episodes 24
    python examples/random_agent.py --env toy-v0 --benchmarks testdata/toy/*.toy

With ``--masked`` it does not try again what it knows to do nothing.
"""

from __future__ import annotations

import argparse

import gymnasium as gym
import numpy as np

import xla_gym  # noqa: F401, because the import registers the environments.


def main() -> None:
    """Prints one line an episode, and a summary."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--env", default="xla-v0")
    parser.add_argument("--benchmarks", nargs="+", default=["hlo-v1/mlp/*"])
    parser.add_argument("--traj-limit", type=int, default=40, help="steps in an episode")
    parser.add_argument("--episodes", type=int, default=12)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--masked", action="store_true")
    arguments = parser.parse_args()

    env = gym.make(
        arguments.env, benchmark_locs=arguments.benchmarks, traj_limit=arguments.traj_limit
    )
    metric = env.unwrapped.metric
    env.action_space.seed(arguments.seed)
    returns, shares = [], []
    for episode in range(arguments.episodes):
        _, info = env.reset(seed=arguments.seed if episode == 0 else None)
        start, total, over = info[metric], 0.0, False
        while not over:
            # Gymnasium takes masks as 8-bit integers.
            mask = info["action_mask"].astype(np.int8) if arguments.masked else None
            _, reward, terminated, truncated, info = env.step(env.action_space.sample(mask))
            total += reward
            over = terminated or truncated
        name = info["benchmark"]
        _, own = env.unwrapped.world.baseline(env.unwrapped.benchmarks.index(name))
        print(
            f"{name}: {start} {metric}, at random {info[metric]}, "
            f"the compiler's own order {own[metric]}; return {total:.3f}"
        )
        returns.append(total)
        shares.append(info[metric] / start)
    env.close()
    print(
        f"{len(returns)} episodes: mean return {np.mean(returns):.3f}, "
        f"{metric} left {np.mean(shares):.1%}"
    )


if __name__ == "__main__":
    main()
