#!/usr/bin/env python3
"""Times one update of an actor and a critic: `crates/nn` beside PyTorch, by turns in one run.

    python3 tools/bench_learner.py

The first time it makes an environment of its own in .learner-env (some GB: the default wheel of
PyTorch brings CUDA along; nothing of that is used). To use wheels for the CPU only, or another
index, set pip's own variables (PIP_INDEX_URL, PIP_EXTRA_INDEX_URL). It can be deleted at any time.

Compared are, on the same networks, batch and number of threads:

* torch: the update as `crates/nn/examples/update.rs` does it, with torch.optim.Adam;
* fused: the same with Adam(fused=True), PyTorch's fastest;
* sb3: one minibatch of Stable-Baselines3's own `PPO.train()`;
* infer: the actor's answer to one observation and to 8.

A round runs each of them for a while; a ratio is taken within a round, so that what else the machine
does hits all alike. Below 1, ours is faster. Printed are the median over rounds, its spread, and
the ratio of the fastest single runs, which says most on a machine that is busy with other things.
There PyTorch's threads would also waste their time waiting for one another, and the ratio would
flatter us; so they are told to sleep instead, unless OMP_WAIT_POLICY says otherwise. On an idle
machine `active` is faster for small networks, and `--threads 1` takes waiting out altogether.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
ENVIRONMENT = ROOT / ".learner-env"
REQUIREMENTS = ["torch==2.15.0", "stable-baselines3==2.9.2"]
NETWORKS = {"wide": (150, [2048, 2048], 60), "narrow": (600, [256, 256], 116)}
BATCH = 256


def enter_environment():
    """Goes on in the environment, which is made if it is not there."""
    python = ENVIRONMENT / "bin" / "python"
    if pathlib.Path(sys.prefix) == ENVIRONMENT:
        return
    ready = ENVIRONMENT / "ready"
    if not ready.exists():
        subprocess.run([sys.executable, "-m", "venv", "--clear", ENVIRONMENT], check=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *REQUIREMENTS], check=True)
        (ENVIRONMENT / ".gitignore").write_text("*\n")
        ready.touch()
    os.execv(python, [str(python), *sys.argv])


def build():
    """Builds the example and returns where it is."""
    command = ["cargo", "build", "--release", "-p", "xla-gym-nn", "--example", "update"]
    command += ["--message-format", "json"]
    built = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
    messages = [json.loads(line) for line in built.stdout.splitlines()]
    return [m["executable"] for m in messages if m.get("executable")][-1]


def timed(run, times, warm=1):
    """Milliseconds of each of so many runs."""
    for _ in range(warm):
        run()
    result = []
    for _ in range(times):
        begin = time.perf_counter()
        run()
        result.append((time.perf_counter() - begin) * 1e3)
    return result


class Torch:
    """An actor and a critic, and a minibatch."""

    def __init__(self, inputs, hidden, outputs, fused):
        import torch

        self.torch = torch

        def network(outputs):
            widths = [inputs, *hidden]
            layers = []
            for before, after in zip(widths, widths[1:]):
                layers += [torch.nn.Linear(before, after), torch.nn.Tanh()]
            return torch.nn.Sequential(*layers, torch.nn.Linear(widths[-1], outputs))

        torch.manual_seed(1)
        self.actor, self.critic = network(outputs), network(1)
        self.parameters = [*self.actor.parameters(), *self.critic.parameters()]
        self.adam = torch.optim.Adam(self.parameters, lr=3e-4, eps=1e-5, fused=fused or None)
        self.inputs = torch.rand(BATCH, inputs) * 2 - 1
        self.advantages = torch.rand(BATCH) * 2 - 1
        self.actions = torch.arange(BATCH) * 7 % outputs
        self.old = None

    def update(self):
        torch = self.torch
        logits, values = self.actor(self.inputs), self.critic(self.inputs)[:, 0]
        logs = torch.log_softmax(logits, 1).gather(1, self.actions[:, None])[:, 0]
        if self.old is None:
            self.old = logs.detach()
        ratio = torch.exp(logs - self.old)
        clipped = torch.clamp(ratio, 0.8, 1.2)
        policy = -torch.min(ratio * self.advantages, clipped * self.advantages).mean()
        loss = policy + 0.5 * torch.nn.functional.mse_loss(values, self.advantages)
        self.adam.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.parameters, 0.5)
        self.adam.step()

    def infer(self, rows):
        with self.torch.inference_mode():
            return self.actor(self.inputs[:rows])


class StableBaselines:
    """Its PPO, with a filled buffer of 8 minibatches."""

    MINIBATCHES = 8

    def __init__(self, inputs, hidden, outputs):
        import gymnasium
        import numpy
        from stable_baselines3 import PPO
        from stable_baselines3.common.logger import Logger

        class Nowhere(gymnasium.Env):
            observation_space = gymnasium.spaces.Box(-1, 1, (inputs,), numpy.float32)
            action_space = gymnasium.spaces.Discrete(outputs)

        steps = self.MINIBATCHES * BATCH
        arch = {"pi": hidden, "vf": hidden}
        self.model = PPO(
            "MlpPolicy",
            Nowhere(),
            n_steps=steps,
            batch_size=BATCH,
            n_epochs=1,
            seed=1,
            device="cpu",
            policy_kwargs={"net_arch": arch},
        )
        self.model.set_logger(Logger(None, []))
        random = numpy.random.default_rng(1)
        buffer = self.model.rollout_buffer
        buffer.observations[:] = random.uniform(-1, 1, buffer.observations.shape)
        buffer.actions[:] = random.integers(0, outputs, buffer.actions.shape)
        buffer.log_probs[:] = -numpy.log(outputs)
        for numbers in (buffer.values, buffer.advantages, buffer.returns):
            numbers[:] = random.uniform(-1, 1, numbers.shape)
        buffer.full = True

    def update(self, times):
        """Milliseconds of a minibatch."""
        rounds = max(1, times // self.MINIBATCHES)
        return [ms / self.MINIBATCHES for ms in timed(self.model.train, rounds, warm=0)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--updates", type=int, default=10, help="updates in a round")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # Before PyTorch is loaded.
    enter_environment()

    import torch

    torch.set_num_threads(arguments.threads)
    ours = build()
    command = [ours, "--json", "--updates", str(arguments.updates)]
    command += ["--threads", str(arguments.threads)]
    plain = {name: Torch(*network, fused=False) for name, network in NETWORKS.items()}
    fused = {name: Torch(*network, fused=True) for name, network in NETWORKS.items()}
    sb3 = {name: StableBaselines(*network) for name, network in NETWORKS.items()}
    rounds = {}  # (network, what, peer): [(our median, its median), ...]
    best = {}  # (network, what, peer): our fastest run and its fastest
    for _ in range(arguments.rounds):
        measured = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
        mine = {(m["network"], m["what"]): m["ms"] for m in measured}
        for name in NETWORKS:
            count = arguments.updates
            peers = {
                ("update", "torch"): timed(plain[name].update, count),
                ("update", "fused"): timed(fused[name].update, count),
                ("update", "sb3"): sb3[name].update(count),
                ("infer 1", "torch"): timed(lambda: plain[name].infer(1), 10 * count, warm=3),
                ("forward 8", "torch"): timed(lambda: plain[name].infer(8), 4 * count, warm=3),
            }
            for (what, peer), times in peers.items():
                key, both = (name, what, peer), (mine[name, what], times)
                rounds.setdefault(key, []).append([statistics.median(side) for side in both])
                fastest = best.get(key, [float("inf")] * 2)
                best[key] = [min(old, *side) for old, side in zip(fastest, both)]
    if arguments.json:
        print(json.dumps([[*key, pairs, best[key]] for key, pairs in rounds.items()]))
        return
    print(f"{'network':8} {'what':10} {'peer':6} {'ours ms':>8} {'peer ms':>8}  ratio (spread), best")
    for key, pairs in rounds.items():
        name, what, peer = key
        our, its = (statistics.median(side) for side in zip(*pairs))
        ratios = sorted(a / b for a, b in pairs)
        spread = f"({ratios[0]:.2f} to {ratios[-1]:.2f})"
        line = f"{name:8} {what:10} {peer:6} {our:8.3f} {its:8.3f}  "
        fastest = best[key][0] / best[key][1]
        print(f"{line}{statistics.median(ratios):.2f} {spread:16} {fastest:.2f}")


if __name__ == "__main__":
    main()
