"""The basic loop of the paper (its Figure 1), in today's Gymnasium.

    python examples/figure1.py
    python examples/figure1.py --benchmarks 'hlo-v1/mlp/*' --traj-limit 10 --render none

Where a policy would choose, it draws at random.
"""

from __future__ import annotations

import argparse

import gymnasium as gym

import xla_gym  # noqa: F401, because the import registers the environments.

GAMMA = 0.99


def main() -> None:
    """Runs one episode with actions at random, as a stand-in for a policy."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--env", default="xla-v0")
    parser.add_argument("--benchmarks", nargs="+", default=["hlo-v1/gpt2/forward-2l"])
    parser.add_argument("--traj-limit", type=int, default=40, help="steps in an episode")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--render", choices=["human", "none"], default="human")
    arguments = parser.parse_args()

    env = gym.make(
        arguments.env,
        benchmark_locs=arguments.benchmarks,
        traj_limit=arguments.traj_limit,
        render_mode=None if arguments.render == "none" else arguments.render,
    )
    env.action_space.seed(arguments.seed)
    observation, info = env.reset(seed=arguments.seed)
    metric = env.unwrapped.metric
    start = info[metric]
    discounted, factor, over = 0.0, 1.0, False
    while not over:
        action = env.action_space.sample()  # Or: model.predict(observation).
        observation, reward, terminated, truncated, info = env.step(action)
        discounted += factor * reward
        factor *= GAMMA
        over = terminated or truncated
    env.close()
    print(f"{start} {metric} became {info[metric]}; discounted return {discounted:.3f}")


if __name__ == "__main__":
    main()
