"""The environments keep the promises of Gymnasium, and give the same in every run."""

from __future__ import annotations

import contextlib
import hashlib
import json
import warnings

import gymnasium as gym
import numpy as np
import pytest
from conftest import ABORTING, SLOW, SMALL, index_of, random_actions, rollout, same
from gymnasium.utils.env_checker import check_env
from stable_baselines3.common.env_checker import check_env as sb3_check_env

import xla_gym

IDS = ["xla-v0", "xla-shaped-v0", "xla-cost-v0", "xla-graph-v0"]
# As the paper numbers them.
PAPERS = {"xla-v1": "xla-shaped-v0", "xla-v2": "xla-cost-v0"}


@pytest.mark.parametrize("name", IDS)
def test_gymnasium_accepts_it(make, name):
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        # That observations are bounded by 10⁷ nodes is meant; so are infinite bounds.
        warnings.filterwarnings("ignore", message=".*(infinity|registered).*")
        check_env(make(name).unwrapped, skip_render_check=False)


@pytest.mark.parametrize("name", IDS)
def test_stable_baselines_accepts_it(make, name):
    # As a user calls it. Of graphs it says that it has no networks for them, and looks no further.
    graph = pytest.warns(UserWarning, match="Graph observation space is not supported")
    with graph if name == "xla-graph-v0" else contextlib.nullcontext():
        sb3_check_env(make(name))


@pytest.mark.parametrize("name", IDS)
def test_a_seed_means_the_same_twice_in_a_process(make, name):
    env = make(name, sampler="random")
    actions = random_actions(env, 50)
    first = rollout(env, actions, seed=3)
    assert same(first, rollout(env, actions, seed=3))
    assert same(first, rollout(make(name, sampler="random"), actions, seed=3))


def test_another_seed_means_something_else(make):
    env = make(sampler="random")
    orders = {
        seed: tuple(
            env.reset(seed=seed if episode == 0 else None)[1]["benchmark"] for episode in range(10)
        )
        for seed in range(5)
    }
    assert len(set(orders.values())) > 1, orders


DIGEST = """
import hashlib, json, sys
import gymnasium, numpy, xla_gym
name, locs, arguments = sys.argv[1], json.loads(sys.argv[2]), json.loads(sys.argv[3])
env = gymnasium.make(name, benchmark_locs=locs, traj_limit=20, sampler="random", **arguments)
actions = numpy.random.default_rng(1).integers(env.action_space.n, size=80)
actions[::7] = env.unwrapped.actions.index("scatter_simplifier")
said = [env.reset(seed=5, options={"benchmark": locs[-1]})]
for action in actions.tolist():
    said.append(env.step(action))
    if said[-1][3]:
        said.append(env.reset())
numpy.set_printoptions(threshold=10**9, precision=17)
failures = sum(bool(step[4]["failure"]) for step in said if len(step) == 5)
print(hashlib.sha256(repr(said).encode()).hexdigest(), failures)
"""


@pytest.mark.parametrize("name", IDS)
def test_a_seed_means_the_same_in_two_processes(python, tmp_path, name):
    # The aborting graph is among them: what is said of failures must not differ either.
    locs = json.dumps([*SMALL, ABORTING])
    cold, warm = (
        python(DIGEST, name, locs, "{}", XLA_GYM_STATE_DIR=str(tmp_path)) for _ in range(2)
    )
    elsewhere = python(DIGEST, name, locs, "{}", XLA_GYM_STATE_DIR=str(tmp_path / "other"))
    assert cold == warm == elsewhere
    assert int(cold.split()[1]) > 0, "no pass failed, so that nothing was said of failures"


def test_a_cold_cache_and_a_warm_one_say_the_same(python, tmp_path):
    locs = json.dumps([*SMALL, ABORTING])
    arguments = json.dumps({"cache": str(tmp_path / "cache.sqlite")})
    without = python(DIGEST, "xla-v0", locs, "{}")
    cold = python(DIGEST, "xla-v0", locs, arguments)
    warm = python(DIGEST, "xla-v0", locs, arguments)
    assert without == cold == warm


@pytest.mark.parametrize("sampler", ["cycle", "random"])
def test_one_environment_of_a_vector_is_a_plain_one(make, make_vec, sampler):
    env, envs = make(sampler=sampler), make_vec(1, sampler=sampler)
    actions = random_actions(env, 70)
    expected = rollout(env, actions, seed=9)
    observations, infos = envs.reset(seed=9)
    got = [(observations[0], infos["benchmark"][0], infos["operations"][0])]
    for action in actions:
        observations, rewards, _, truncated, infos = envs.step(np.array([action]))
        got.append((observations[0], infos["benchmark"][0], infos["operations"][0], rewards[0]))
        if truncated[0]:
            # Which action does not matter: this step begins the next episode.
            observations, rewards, _, _, infos = envs.step(np.array([0]))
            assert rewards[0] == 0.0
            got.append((observations[0], infos["benchmark"][0], infos["operations"][0]))
    plain = [
        (said[0], said[-1]["benchmark"], said[-1]["operations"], *said[1:2][: len(said) == 5])
        for said in expected
    ]
    assert same(got, plain)


def test_environment_i_of_four_does_not_depend_on_the_others(make_vec):
    envs = make_vec(4, sampler="random")
    actions = np.random.default_rng(2).integers(envs.single_action_space.n, size=(45, 4))

    def run(actions):
        said = [envs.reset(seed=4)[0]]
        said += [envs.step(row)[0] for row in actions]
        return np.stack(said)

    first = run(actions)
    assert np.array_equal(first, run(actions)), "the same seed and actions"
    changed = actions.copy()
    changed[:, 1:] = changed[::-1, 1:]
    assert np.array_equal(first[:, 0], run(changed)[:, 0]), "others took other actions"


def test_environment_0_of_four_draws_like_a_plain_one(make, make_vec):
    env, envs = make(sampler="random"), make_vec(4, sampler="random")
    expected = [env.reset(seed=6)[1]["benchmark"]] + [env.reset()[1]["benchmark"] for _ in range(8)]
    got = [envs.reset(seed=6)[1]["benchmark"][0]]
    got += [envs.reset()[1]["benchmark"][0] for _ in range(8)]
    assert got == expected


def truncate(env):
    for _ in range(20):
        over = env.step(0)[3]
    assert over


def kill(env):
    env.step(0)
    env.unwrapped._env.kill_worker()


def fail(env):
    env.step(0)
    with pytest.raises(ValueError, match="there is no action"):
        env.unwrapped.step(env.action_space.n)


def ask_for_nonsense(env):
    with pytest.raises(xla_gym.BenchmarkNotFoundError):
        env.reset(options={"benchmark": "hlo-v1/none"})


@pytest.mark.parametrize("name", IDS)
@pytest.mark.parametrize(
    "before", [lambda env: None, lambda env: env.step(0), truncate, kill, fail, ask_for_nonsense]
)
def test_reset_works_after_anything(make, name, before):
    env = make(name)
    actions = random_actions(env, 15)
    expected = rollout(env, actions, seed=1)
    env.reset(seed=8)
    before(env)
    assert same(rollout(env, actions, seed=1), expected)


def test_a_dead_worker_is_not_noticed(make):
    env = make()
    actions = random_actions(env, 20)
    expected = rollout(make(passes=env.unwrapped.actions), actions)
    got = [env.reset(seed=0)]
    for number, action in enumerate(actions):
        if number % 4 == 2:
            env.unwrapped._env.kill_worker()
        got.append(env.step(action))
    assert same(got, expected[: len(got)])


def of_each_family(count: int) -> list[str]:
    """The smallest graph of each family, then the second smallest, up to so many."""
    families: dict[str, list[str]] = {}
    sizes = {graph: xla_gym.data.describe(graph)["counts"] for graph in xla_gym.data.ids()}
    for graph in sorted(sizes, key=lambda graph: sizes[graph]["instructions"]):
        families.setdefault(graph.split("/")[1], []).append(graph)
    by_rank = [
        (rank, sizes[graph]["instructions"], graph)
        for graphs in families.values()
        for rank, graph in enumerate(graphs)
    ]
    return [graph for _, _, graph in sorted(by_rank)[:count]]


@pytest.mark.parametrize("name", IDS)
def test_every_observation_is_in_the_space(make, name):
    graphs = of_each_family(30)
    assert len({graph.split("/")[1] for graph in graphs}) > 20
    steps = 1000 if SLOW else 60
    # Graph spaces check each node in Python, which takes longer than the passes.
    graphs, steps = (graphs, steps) if name != "xla-graph-v0" or SLOW else (graphs[::6], 10)
    env = make(name, benchmark_locs=graphs, traj_limit=steps)
    for episode, graph in enumerate(graphs):
        observation, _ = env.reset(seed=episode, options={"benchmark": graph})
        assert observation in env.observation_space, graph
        for action in random_actions(env, steps, seed=episode):
            observation, reward, _, truncated, _ = env.step(action)
            inside = observation in env.observation_space
            assert inside and np.isfinite(reward), (graph, env.unwrapped.taken)
        assert truncated


@pytest.mark.parametrize(
    "observation", ["raw", "share", "cost", "history", "applied", "latest", "size", "inlined"]
)
def test_other_observations_are_in_their_spaces(make, observation):
    env = make(observation=observation)
    for said in rollout(env, random_actions(env, 60)):
        assert said[0] in env.observation_space


@pytest.mark.parametrize(
    ("gamma", "weights"),
    [(0.99, None), (0.9, None), (1.0, None), (0.9, {"flops": 0.5, "bytes_accessed": 3})],
)
def test_shaping_telescopes(make, gamma, weights):
    plain, shaped = make("xla-v0"), make("xla-shaped-v0", gamma=gamma, weights=weights)
    weights = weights or {"flops": 1, "transcendentals": 2}

    def work(info):
        return sum(weight * info[name] for name, weight in weights.items())

    for episode in range(len(SMALL)):
        _, start = plain.reset(options={"benchmark": episode})
        _, other = shaped.reset(options={"benchmark": episode})
        assert same(start, other)
        whole = work(start)

        def potential(info, whole=whole):
            # Where there is no work at the start there is no share of it.
            return -work(info) / whole if whole else 0.0

        total, info = 0.0, start
        for step, action in enumerate(random_actions(plain, 20, seed=episode)):
            _, reward, _, _, _ = plain.step(action)
            _, shaped_reward, _, _, info = shaped.step(action)
            total += gamma**step * (shaped_reward - reward)
        assert abs(total - (gamma**20 * potential(info) - potential(start))) < 1e-9


RESTORE = """
import sys
import gymnasium, xla_gym
env = gymnasium.make("xla-v0", benchmark_locs=sys.argv[2:], traj_limit=20).unwrapped
env.set_state(sys.argv[1])
print(env.fingerprint())
"""


@pytest.mark.parametrize("graph", [*SMALL, ABORTING])
def test_a_state_comes_back_here_and_in_another_process(make, python, graph):
    env = make(benchmark_locs=[graph])
    rollout(env, random_actions(env, 15))
    if graph == ABORTING:
        env.step(index_of(env, "scatter_simplifier"))
    unwrapped = env.unwrapped
    state, fingerprint = unwrapped.get_state(), unwrapped.fingerprint()
    text = hashlib.sha256(unwrapped.program()).hexdigest()
    observation = unwrapped.set_state(state)
    assert unwrapped.fingerprint() == fingerprint
    assert unwrapped.get_state() == state

    other = make(benchmark_locs=[graph]).unwrapped
    assert same(other.set_state(state), observation)
    assert other.fingerprint() == fingerprint
    assert hashlib.sha256(other.program()).hexdigest() == text
    assert python(RESTORE, state, graph).strip() == fingerprint


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"engine": "another compiler"}, "another compiler"),
        ({"start": "elsewhere"}, "elsewhere"),
        ({"luck": 7}, "luck"),
        ({"benchmark": "hlo-v1/none"}, "hlo-v1/none is not among the benchmarks"),
        ({"actions": ["no-such-pass"]}, "no-such-pass is not among the actions"),
    ],
)
def test_a_state_that_does_not_fit_is_refused(make, change, reason):
    env = make().unwrapped
    env.reset(seed=0)
    state = {**json.loads(env.get_state()), **change}
    with pytest.raises(xla_gym.StateError, match=reason):
        env.set_state(json.dumps(state))


def test_undo_takes_back(make):
    env = make(benchmark_locs=["hlo-v1/gpt2/forward-1l"]).unwrapped
    actions = random_actions(env, 20)
    observation, _ = env.reset(seed=0)
    trail = [(observation, env.fingerprint())]
    for action in actions:
        trail.append((env.step(action)[0], env.fingerprint()))
    for count in (1, 3, 7):
        trail = trail[:-count]
        assert same((env.undo(count), env.fingerprint()), trail[-1])
        assert len(env.taken) == len(trail) - 1
    # It goes on from there as if nothing had been.
    action = actions[len(trail) - 1]
    again = make(benchmark_locs=["hlo-v1/gpt2/forward-1l"]).unwrapped
    again.reset(seed=0)
    for earlier in actions[: len(trail) - 1]:
        again.step(earlier)
    assert same(env.step(action)[:2], again.step(action)[:2])
    # More than there is to take back leads to the start.
    assert same(env.undo(1000), observation)
    assert env.taken == []


def test_a_fork_goes_its_own_way(make):
    env = make(benchmark_locs=["hlo-v1/gpt2/forward-1l"]).unwrapped
    actions = random_actions(env, 20)
    env.reset(seed=0)
    for action in actions[:8]:
        env.step(action)
    before = env.fingerprint()
    fork = env.fork()
    assert fork.fingerprint() == before and fork.taken == env.taken
    forked = [fork.step(action)[:4] for action in actions[8:]]
    assert env.fingerprint() == before, "the original stays where it was"
    assert same([env.step(action)[:4] for action in actions[8:]], forked)
    fork.close()
    env.reset()


def test_a_fork_has_the_same_luck(make):
    env = make(sampler="random").unwrapped
    env.reset(seed=0)
    fork = env.fork()
    assert [env.reset()[1]["benchmark"] for _ in range(10)] == [
        fork.reset()[1]["benchmark"] for _ in range(10)
    ]


@pytest.mark.parametrize("what", ["mask", "cycle"])
def test_a_fork_knows_what_the_original_knew(make, what):
    env = make().unwrapped
    env.reset(seed=0)
    useless = next(action for action in range(19) if not env.step(action)[4]["changed"])
    assert not env.action_masks()[useless]
    fork = env.fork()
    if what == "mask":
        assert same(fork.action_masks(), env.action_masks())
    else:
        assert fork.reset()[1]["benchmark"] == env.reset()[1]["benchmark"]


def test_gymnasium_knows_every_id():
    assert {*IDS, *PAPERS, "toy-v0"} <= set(gym.registry)


@pytest.mark.parametrize("name", [*IDS, *PAPERS, "toy-v0"])
def test_no_id_is_called_out_of_date(name):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gym.make(name, benchmark_locs=None if name == "toy-v0" else SMALL[:1]).close()


@pytest.mark.parametrize("name", PAPERS)
def test_the_papers_ids_are_others_for_ours(make, make_vec, name):
    env, same_env = make(name), make(PAPERS[name])
    assert env.spec.id == PAPERS[name]
    actions = random_actions(env, 10)
    assert same(rollout(env, actions), rollout(same_env, actions))
    assert make_vec(2, name).single_observation_space == env.observation_space


def test_old_words_still_work(make):
    from xla_gym.envs import PassOrderEnv, XlaEnv
    from xla_gym.vector import PassOrderVectorEnv, XlaVectorEnv

    assert XlaEnv is PassOrderEnv and XlaVectorEnv is PassOrderVectorEnv
    with pytest.warns(DeprecationWarning, match="start="):
        old = make(benchmark_locs=[ABORTING], normalise=True)
    new = make(benchmark_locs=[ABORTING], start="normalized")
    assert old.unwrapped.world.start == new.unwrapped.world.start == "normalized"
    _, emitted = make(benchmark_locs=[ABORTING]).reset()
    assert same(old.reset(), new.reset())
    assert new.reset()[1]["instructions"] != emitted["instructions"]


def test_an_episode_begins_where_it_was_asked_to(make):
    env = make(benchmark_locs=[ABORTING], start="legal")
    env.reset()
    assert json.loads(env.unwrapped.get_state())["start"] == "legal"
    initial, default = env.unwrapped.world.baseline(0)
    # What the pipeline does in any case is done: what it leaves without the optional passes is left here.
    assert env.reset()[1]["operations"] == initial["legal"] > default["legal"]
