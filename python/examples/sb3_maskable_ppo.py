"""MaskablePPO of sb3-contrib: never tries again what is known to do nothing.

    pip install sb3-contrib
    python examples/sb3_maskable_ppo.py --steps 5000 --seed 0

The algorithm finds ``action_masks`` of the environment by its name; there is nothing else to do.
"""

from __future__ import annotations

import argparse
from statistics import fmean

import gymnasium as gym
from sb3_contrib import MaskablePPO
from sb3_ppo import BENCHMARKS, Recorder
from stable_baselines3.common.monitor import Monitor

import xla_gym  # noqa: F401, because the import registers the environments.


def main() -> None:
    """Trains one agent and says how the return went."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--benchmarks", nargs="+", default=BENCHMARKS)
    parser.add_argument("--traj-limit", type=int, default=20, help="steps in an episode")
    parser.add_argument("--steps", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--n-steps", type=int, default=250, help="steps between updates")
    parser.add_argument("--batch-size", type=int, default=50)
    arguments = parser.parse_args()

    env = Monitor(
        gym.make("xla-v0", benchmark_locs=arguments.benchmarks, traj_limit=arguments.traj_limit)
    )
    model = MaskablePPO(
        "MlpPolicy",
        env,
        n_steps=arguments.n_steps,
        batch_size=arguments.batch_size,
        seed=arguments.seed,
        device="cpu",
    )
    recorder = Recorder(arguments.seed)
    model.learn(arguments.steps, callback=recorder)
    env.close()
    returns = [episode.episode_return for episode in recorder.episodes]
    print(
        f"{len(returns)} episodes, mean return of the first 10 {fmean(returns[:10]):.3f}, "
        f"of the last 10 {fmean(returns[-10:]):.3f}"
    )


if __name__ == "__main__":
    main()
