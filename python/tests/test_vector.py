"""The native vector environment: Gymnasium's interface, and no trace of what happens to workers."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest
from conftest import ABORTING, SLOW, SMALL, same
from gymnasium.vector import AutoresetMode, VectorEnv

import xla_gym


def run(envs, actions, before_step=lambda step: None):
    """Everything that a vector says, from a reset on."""
    said = [envs.reset(seed=0)]
    for step, row in enumerate(actions):
        before_step(step)
        said.append(envs.step(row))
    return said


def some_actions(envs, steps, seed=0):
    size = (steps, envs.num_envs)
    return np.random.default_rng(seed).integers(envs.single_action_space.n, size=size)


@pytest.mark.parametrize("count", [1, 4])
@pytest.mark.parametrize("name", ["xla-v0", "xla-shaped-v0", "xla-cost-v0"])
def test_make_vec_makes_what_gymnasium_promises(make_vec, name, count):
    envs = make_vec(count, name)
    assert isinstance(envs, VectorEnv) and envs.num_envs == count
    assert envs.metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP
    assert envs.action_space.shape == (count,)
    observations, infos = envs.reset(seed=0)
    assert observations in envs.observation_space
    assert list(infos["benchmark"]) == [SMALL[i % len(SMALL)] for i in range(count)]
    for row in some_actions(envs, 45):
        observations, rewards, terminated, truncated, infos = envs.step(row)
        assert observations in envs.observation_space
        assert rewards.shape == terminated.shape == truncated.shape == (count,)
        assert (rewards.dtype, terminated.dtype) == (np.float64, np.bool_)
        assert infos["action_mask"].shape == envs.unwrapped.action_masks().shape
        assert infos["action_mask"].shape == (count, envs.single_action_space.n)
    assert len(envs.render()) == count


def test_graphs_are_refused_with_a_reason():
    with pytest.raises(gym.error.Error, match="xla-graph-v0"):
        gym.make_vec("xla-graph-v0", 2, vectorization_mode="vector_entry_point")
    with pytest.raises(xla_gym.ConfigError, match="gymnasium.make"):
        gym.make_vec("xla-v0", 2, vectorization_mode="vector_entry_point", observation="graph")


def test_an_episode_that_is_over_begins_anew_at_the_next_step(make_vec):
    envs = make_vec(2, traj_limit=3)
    first, infos = envs.reset(seed=0)
    began = list(infos["benchmark"])
    for step in range(1, 4):
        observations, _, _, truncated, infos = envs.step(np.array([0, 1]))
        assert truncated.tolist() == [step == 3] * 2
        assert list(infos["benchmark"]) == began
        assert infos["_pass"].all()
    # The action of this step is not taken, and there is nothing to pay.
    observations, rewards, terminated, truncated, infos = envs.step(np.array([5, 5]))
    assert rewards.tolist() == [0.0, 0.0] and not truncated.any() and not terminated.any()
    assert "pass" not in infos or not infos["_pass"].any()
    # Two environments take turns: the first has the first and the third graph.
    assert list(infos["benchmark"]) == SMALL[2:4]
    plain = gym.make("xla-v0", benchmark_locs=SMALL)
    assert same(observations[0], plain.reset(options={"benchmark": 2})[0])
    plain.close()


def test_infos_say_for_whom_they_speak(make_vec):
    envs = make_vec(2, stop_action=True, benchmark_locs=[ABORTING])
    scatter = envs.unwrapped.actions.index("scatter_simplifier")
    stop = int(envs.single_action_space.n) - 1
    envs.reset(seed=0)
    _, rewards, terminated, _, infos = envs.step(np.array([scatter, stop]))
    assert terminated.tolist() == [False, True]
    assert list(infos["pass"]) == ["scatter_simplifier", "stop"]
    assert list(infos["failure"]) == ["died", None]
    assert not infos["action_mask"][0, scatter] and infos["action_mask"][1].all()
    _, _, _, _, infos = envs.step(np.array([0, 0]))
    assert infos["_pass"].tolist() == [True, False]
    assert infos["_changed"].tolist() == [True, False]
    assert infos["_operations"].tolist() == [True, True]


def test_some_can_be_reset(make_vec):
    envs = make_vec(3, benchmark_locs=SMALL[:1])
    start, _ = envs.reset(seed=0)
    moved = [action for action in range(20) if action != 5]
    for action in moved[:10]:
        before, _, _, _, _ = envs.step(np.full(3, action))
    assert not np.array_equal(before[0], start[0])
    after, _ = envs.reset(options={"reset_mask": np.array([True, False, True])})
    assert same(after[0], start[0]) and same(after[2], start[2])
    assert same(after[1], before[1])


def test_seeds_can_be_given_one_by_one(make_vec):
    envs = make_vec(3, sampler="random")

    def orders(seed):
        names = [envs.reset(seed=seed)[1]["benchmark"]]
        names += [envs.reset()[1]["benchmark"] for _ in range(6)]
        return np.stack(names, axis=1).tolist()

    assert orders([1, 2, 3]) == orders([1, 2, 3])
    assert orders([1, 2, 3])[0] == orders([1, 5, 6])[0]
    assert orders([1, 2, 3])[0] != orders([4, 2, 3])[0]


@pytest.mark.parametrize(
    ("actions", "error"), [([0], xla_gym.ConfigError), ([0, 1000], ValueError)]
)
def test_bad_actions_are_named_and_do_no_harm(make_vec, actions, error):
    envs = make_vec(2)
    expected = run(envs, some_actions(envs, 5))
    with pytest.raises(error, match="actions for 2|no action 1000"):
        envs.step(np.array(actions))
    assert same(run(envs, some_actions(envs, 5)), expected)


def test_a_vector_needs_environments(make_vec):
    with pytest.raises(xla_gym.ConfigError, match="at least one"):
        make_vec(0)


def test_killed_workers_leave_no_trace(make_vec):
    steps = 20_000 if SLOW else 400
    # So small a memory forgets, or no worker would be needed after a while.
    arguments = {"benchmark_locs": [*SMALL, ABORTING], "sampler": "random"}
    undisturbed = make_vec(4, **arguments)
    actions = some_actions(undisturbed, steps)
    expected = run(undisturbed, actions)
    undisturbed.close()

    disturbed = make_vec(4, cache_memory=1 << 16, **arguments)
    chance, kills = np.random.default_rng(1), 0

    def kill(step):
        nonlocal kills
        if step % 10 == 3:
            disturbed.unwrapped._envs.kill_worker(int(chance.integers(4)))
            kills += 1

    got = run(disturbed, actions, kill)
    assert kills >= steps // 10 - 1
    for step, (one, other) in enumerate(zip(got, expected, strict=True)):
        assert same(one, other), f"step {step} is another one"
