r"""Stable-Baselines3's PPO, unmodified, on ``xla-v0``; writes its learning curve.

    pip install stable-baselines3
    python examples/sb3_ppo.py --steps 5000 --seed 0 1 2 --out examples/results/sb3_ppo.csv \
        --plot examples/results/sb3_ppo.svg

Nothing of the algorithm is changed: the environment goes into ``PPO("MlpPolicy", env)``, and a
callback writes down the return of each episode. An update comes every 250 steps, not every 2,048 as
by default, because 5,000 steps are to be more than two updates; all else is as by default.
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

import gymnasium as gym
from curve import plot
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.monitor import Monitor

import xla_gym  # noqa: F401, because the import registers the environments.

# Of the training side of the split, five that differ in kind and are small enough for a laptop.
BENCHMARKS = [
    "hlo-v1/gpt2/forward-4l-scan",
    "hlo-v1/gpt2/eval-4l-bf16",
    "hlo-v1/gpt2/generate-greedy-2l",
    "hlo-v1/gpt2/gradient-2l-dropout",
    "hlo-v1/gpt2/train-2l-adamw",
]


class Episode(NamedTuple):
    """One row of the curve."""

    seed: int
    step: int
    episode_return: float
    benchmark: str
    operations: int


class Recorder(BaseCallback):
    """Writes down what ``Monitor`` says at the end of each episode."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.seed = seed
        self.episodes: list[Episode] = []

    def _on_step(self) -> bool:
        for info in self.locals["infos"]:
            if "episode" in info:
                ended = info["episode"]
                self.episodes.append(
                    Episode(
                        self.seed,
                        self.num_timesteps,
                        ended["r"],
                        info["benchmark"],
                        info["operations"],
                    )
                )
        return True


def train(arguments: argparse.Namespace, seed: int) -> list[Episode]:
    """Trains one agent; returns its episodes."""
    env = Monitor(
        gym.make(
            "xla-v0",
            benchmark_locs=arguments.benchmarks,
            traj_limit=arguments.traj_limit,
        )
    )
    model = PPO(
        "MlpPolicy",
        env,
        n_steps=arguments.n_steps,
        batch_size=arguments.batch_size,
        learning_rate=arguments.learning_rate,
        ent_coef=arguments.ent_coef,
        gamma=arguments.gamma,
        seed=seed,
        device="cpu",
    )
    recorder = Recorder(seed)
    model.learn(arguments.steps, callback=recorder)
    env.close()
    return recorder.episodes


def main() -> None:
    """Trains one agent for each seed and says how the return went."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--benchmarks", nargs="+", default=BENCHMARKS)
    parser.add_argument("--traj-limit", type=int, default=20, help="steps in an episode")
    parser.add_argument("--steps", type=int, default=5000)
    parser.add_argument("--seed", type=int, nargs="+", default=[0])
    parser.add_argument("--n-steps", type=int, default=250, help="steps between updates")
    parser.add_argument("--batch-size", type=int, default=50)
    parser.add_argument("--learning-rate", type=float, default=3e-4)
    parser.add_argument("--ent-coef", type=float, default=0.0)
    parser.add_argument("--gamma", type=float, default=0.99)
    parser.add_argument("--out", type=Path, help="CSV file for the curve")
    parser.add_argument("--plot", type=Path, help="SVG file for the same as a picture")
    arguments = parser.parse_args()

    episodes: list[Episode] = []
    for seed in arguments.seed:
        curve = train(arguments, seed)
        episodes += curve
        returns = [episode.episode_return for episode in curve]
        print(
            f"seed {seed}: {len(returns)} episodes, mean return of the first 10 "
            f"{fmean(returns[:10]):.3f}, of the last 10 {fmean(returns[-10:]):.3f}",
            flush=True,
        )
    if arguments.out:
        with arguments.out.open("w", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(Episode._fields)
            writer.writerows(episodes)
    if arguments.plot:
        curves = {
            f"seed {seed}": [
                (episode.step, episode.episode_return)
                for episode in episodes
                if episode.seed == seed
            ]
            for seed in arguments.seed
        }
        arguments.plot.write_text(plot("PPO on xla-v0, mean of 10 episodes", curves, window=10))


if __name__ == "__main__":
    main()
