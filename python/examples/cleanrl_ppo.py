"""PPO in one file, in the manner of CleanRL, on the vector environment, which uses all cores.

    pip install torch
    python examples/cleanrl_ppo.py --steps 20000 --num-envs 8 --seed 0

It reads from top to bottom: options, network, rollout, update. What it does beyond the formula:

1. Orthogonal initialisation, small for the policy's last layer, so that it begins nearly uniform.
2. Generalised advantage estimation; the last state's value stands for what a time limit cut off.
3. Advantages are normalised in each minibatch; the gradient's norm is clipped.
4. The step at which an environment begins anew takes no action and is left out of the update.
5. Known useless actions are masked in rollout and update alike; ``--no-mask`` turns it off.
"""

from __future__ import annotations

import argparse
from statistics import fmean

import gymnasium as gym
import numpy as np
import torch
from torch import nn
from torch.distributions import Categorical

import xla_gym  # noqa: F401, because the import registers the environments.


def options() -> argparse.Namespace:
    """What can be chosen on the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--benchmarks", nargs="+", default=["hlo-v1:gpt2/train"])
    parser.add_argument("--traj-limit", type=int, default=20, help="steps in an episode")
    parser.add_argument("--steps", type=int, default=20_000, help="steps of all environments")
    parser.add_argument("--num-envs", type=int, default=8)
    parser.add_argument("--rollout", type=int, default=64, help="steps of each between updates")
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--minibatches", type=int, default=4)
    parser.add_argument("--learning-rate", type=float, default=1e-3)
    parser.add_argument("--gamma", type=float, default=0.99)
    parser.add_argument("--gae-lambda", type=float, default=0.95)
    parser.add_argument("--clip", type=float, default=0.2)
    parser.add_argument("--entropy", type=float, default=0.01)
    parser.add_argument("--value", type=float, default=0.5)
    parser.add_argument("--no-mask", action="store_true")
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


def layer(inputs: int, outputs: int, scale: float = np.sqrt(2)) -> nn.Linear:
    """A linear layer with orthogonal weights."""
    linear = nn.Linear(inputs, outputs)
    nn.init.orthogonal_(linear.weight, scale)
    nn.init.zeros_(linear.bias)
    return linear


class Agent(nn.Module):
    """A policy and a value function."""

    def __init__(self, inputs: int, actions: int) -> None:
        super().__init__()
        self.policy = nn.Sequential(
            layer(inputs, 64), nn.Tanh(), layer(64, 64), nn.Tanh(), layer(64, actions, 0.01)
        )
        self.critic = nn.Sequential(
            layer(inputs, 64), nn.Tanh(), layer(64, 64), nn.Tanh(), layer(64, 1, 1.0)
        )

    def actions(self, observations: torch.Tensor, masks: torch.Tensor) -> Categorical:
        """How likely each action is."""
        return Categorical(logits=self.policy(observations).masked_fill(~masks, -1e9))

    def values(self, observations: torch.Tensor) -> torch.Tensor:
        """What is still to come."""
        return self.critic(observations).squeeze(-1)


def main() -> None:
    """Trains an agent, printing one line an update."""
    args = options()
    torch.manual_seed(args.seed)
    generator = np.random.default_rng(args.seed)
    envs = gym.make_vec(
        "xla-v0",
        num_envs=args.num_envs,
        vectorization_mode="vector_entry_point",
        benchmark_locs=args.benchmarks,
        traj_limit=args.traj_limit,
        sampler="random",
    )
    inputs = envs.single_observation_space.shape[0]
    agent = Agent(inputs, envs.single_action_space.n)
    optimiser = torch.optim.Adam(agent.parameters(), lr=args.learning_rate, eps=1e-5)

    shape = (args.rollout, args.num_envs)
    seen = torch.zeros(*shape, inputs)
    masks = torch.ones(*shape, int(envs.single_action_space.n), dtype=torch.bool)
    taken = torch.zeros(shape, dtype=torch.int64)
    likely, rewards, values, over, real = (torch.zeros(shape) for _ in range(5))

    def current_masks() -> torch.Tensor:
        known = envs.unwrapped.action_masks()
        return torch.from_numpy(np.ones_like(known) if args.no_mask else known.copy())

    observation = torch.from_numpy(envs.reset(seed=args.seed)[0])
    beginning = np.zeros(args.num_envs, dtype=bool)
    running, returns = np.zeros(args.num_envs), []
    updates = max(args.steps // (args.rollout * args.num_envs), 1)
    for update in range(updates):
        # Rollout.
        for step in range(args.rollout):
            seen[step], masks[step] = observation, current_masks()
            with torch.no_grad():
                distribution = agent.actions(seen[step], masks[step])
                taken[step] = distribution.sample()
                likely[step] = distribution.log_prob(taken[step])
                values[step] = agent.values(seen[step])
            result, reward, terminated, truncated, _ = envs.step(taken[step].numpy())
            # After its end, the next step of an environment begins its next episode.
            real[step] = torch.from_numpy(~beginning).float()
            rewards[step] = torch.from_numpy(reward).float()
            over[step] = torch.from_numpy(terminated).float()
            running += reward
            beginning = terminated | truncated
            returns += running[beginning].tolist()
            running[beginning] = 0.0
            observation = torch.from_numpy(result)

        # Advantages. The row after the last step of an episode is not real, but its observation is
        # that episode's last state: its value is what a time limit cut off.
        advantages = torch.zeros(shape)
        with torch.no_grad():
            next_values, later = agent.values(observation), torch.zeros(args.num_envs)
        for step in reversed(range(args.rollout)):
            delta = rewards[step] + args.gamma * next_values * (1 - over[step]) - values[step]
            later = delta + args.gamma * args.gae_lambda * (1 - over[step]) * later
            later = later * real[step]
            advantages[step], next_values = later, values[step]
        targets = advantages + values

        # Update.
        rows = real.flatten().nonzero().squeeze(-1).numpy()
        flat = [x.flatten(0, 1) for x in (seen, masks, taken, likely, advantages, targets)]
        for _ in range(args.epochs):
            for batch in np.array_split(generator.permutation(rows), args.minibatches):
                if len(batch) < 2:
                    continue
                b_seen, b_masks, b_taken, b_likely, b_advantages, b_targets = (
                    x[batch] for x in flat
                )
                distribution = agent.actions(b_seen, b_masks)
                ratio = (distribution.log_prob(b_taken) - b_likely).exp()
                scaled = (b_advantages - b_advantages.mean()) / (b_advantages.std() + 1e-8)
                clipped = ratio.clamp(1 - args.clip, 1 + args.clip)
                policy_loss = -torch.min(ratio * scaled, clipped * scaled).mean()
                value_loss = 0.5 * (agent.values(b_seen) - b_targets).pow(2).mean()
                entropy = distribution.entropy().mean()
                loss = policy_loss + args.value * value_loss - args.entropy * entropy
                optimiser.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
                optimiser.step()
        if returns:
            steps = (update + 1) * args.rollout * args.num_envs
            print(f"step {steps}: mean return of the last episodes {fmean(returns[-50:]):.3f}")
    envs.close()


if __name__ == "__main__":
    main()
