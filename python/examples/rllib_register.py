"""The environments in Ray RLlib.

    pip install "ray[rllib]" torch
    python examples/rllib_register.py --iterations 3

RLlib makes environments in processes of its own, so it is given a function, not an environment.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
from typing import Any


def make(config: dict[str, Any]) -> Any:
    """Makes an environment in whichever process asks."""
    import gymnasium as gym

    import xla_gym  # noqa: F401, because the import registers the environments.

    return gym.make("xla-v0", **config)


def main() -> int:
    """Trains PPO for some iterations and prints the mean return of each."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--benchmarks", nargs="+", default=["hlo-v1/gpt2/forward-2l"])
    parser.add_argument("--traj-limit", type=int, default=20, help="steps in an episode")
    parser.add_argument("--iterations", type=int, default=3)
    parser.add_argument("--steps", type=int, default=1000, help="steps in an iteration")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()

    if importlib.util.find_spec("ray") is None:
        print('this example needs Ray: pip install "ray[rllib]" torch', file=sys.stderr)
        return 1
    from ray.rllib.algorithms.ppo import PPOConfig
    from ray.tune.registry import register_env

    register_env("xla-v0", make)
    config = (
        PPOConfig()
        .environment(
            "xla-v0",
            env_config={
                "benchmark_locs": arguments.benchmarks,
                "traj_limit": arguments.traj_limit,
            },
        )
        .env_runners(num_env_runners=0)
        .training(train_batch_size_per_learner=arguments.steps)
        .debugging(seed=arguments.seed)
    )
    algorithm = config.build_algo()
    for iteration in range(arguments.iterations):
        result = algorithm.train()
        print(f"iteration {iteration}: {result['env_runners']['episode_return_mean']:.3f}")
    algorithm.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
