"""Another compiler behind the same classes: the toy, which needs nothing but its worker."""

from __future__ import annotations

import subprocess
import sys
import warnings
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
from conftest import TOY, index_of, random_actions, rollout, same
from gymnasium.utils.env_checker import check_env

import xla_gym

TEMPTING = next(path for path in TOY if path.endswith("tempting.toy"))
NAMES = ["toy-v0", "toy-shaped-v0", "toy-cost-v0"]


@pytest.mark.parametrize("name", NAMES)
def test_gymnasium_accepts_it(make, name):
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        # That the counts have no bound of their own is meant.
        warnings.filterwarnings("ignore", message=".*(infinity|registered).*")
        check_env(make(name, benchmark_locs=TOY).unwrapped, skip_render_check=False)


def test_it_needs_no_program_and_no_library(python, tmp_path):
    said = python(
        "import gymnasium, xla_gym\n"
        "env = gymnasium.make('toy-v0')\n"
        "start = env.reset(seed=0)[1]['lines']\n"
        "for action in range(5): info = env.step(action)[4]\n"
        "print(start > info['lines'])",
        XLA_GYM_ENGINE_DIR=str(tmp_path),
        XLA_GYM_NO_FETCH="1",
    )
    assert said == "True\n"


def test_info_has_the_compilers_own_names(make):
    env = make("toy-v0", benchmark_locs=TOY)
    assert (env.unwrapped.metric, env.unwrapped.world.costs) == ("lines", ["work"])
    _, info = env.reset(seed=0)
    assert {"lines", "constants", "work"} <= set(info) and "operations" not in info
    assert info["lines"] == env.unwrapped.program().count(b"\n") - 1
    assert env.unwrapped.actions[:2] == ["fold", "simplify"]


def test_the_reward_is_by_the_primary_metric(make):
    env = make("toy-v0", benchmark_locs=TOY[:1])
    _, info = env.reset(seed=0)
    start = info["lines"]
    _, reward, _, _, info = env.step(index_of(env, "dead"))
    assert reward == pytest.approx(-info["lines"] / start, abs=1e-12)


def test_what_is_paid_at_the_end_has_the_compilers_own_names(make):
    env = make("toy-v0", benchmark_locs=TOY[:1], traj_limit=1, at_end="final", reward="nothing")
    env.reset(seed=0)
    _, reward, _, _, info = env.step(0)
    result, default = info["at_end"]
    assert reward == pytest.approx(1 - result / default)
    assert default == env.unwrapped.world.baseline(0)[1]["final"]
    with pytest.raises(xla_gym.ConfigError, match=r"kernels.*lines.*final"):
        make("toy-v0", benchmark_locs=TOY[:1], at_end="kernels")


def test_a_seed_means_the_same_in_a_vector(make, make_vec):
    env = make("toy-v0", benchmark_locs=TOY, sampler="random")
    envs = make_vec(4, "toy-v0", benchmark_locs=TOY, sampler="random")
    rows = np.random.default_rng(0).integers(env.action_space.n, size=(45, 4))

    def run():
        said = [envs.reset(seed=3)]
        return said + [envs.step(row) for row in rows]

    first = run()
    assert all(said[0] in envs.observation_space for said in first)
    assert all(len(said[-1]["lines"]) == 4 for said in first)
    for one, other in zip(first, run(), strict=True):
        assert same(one, other)
    assert first[0][1]["benchmark"][0] == env.reset(seed=3)[1]["benchmark"]


def test_a_pass_that_dies_is_survived(make):
    env = make("toy-v0", benchmark_locs=TOY[:1], passes=["fold", "abort", "dead"])
    expected = rollout(env, [0, 2])
    env.reset(seed=0)
    steps = [env.step(action) for action in (0, 1, 2)]
    assert steps[1][4]["failure"] == "died" and not steps[1][4]["changed"]
    assert same([steps[0][0], steps[2][0]], [said[0] for said in expected[1:]])


def test_a_state_comes_back(make):
    env = make("toy-v0", benchmark_locs=TOY).unwrapped
    rollout(env, random_actions(env, 15))
    state, fingerprint = env.get_state(), env.fingerprint()
    other = make("toy-v0", benchmark_locs=TOY).unwrapped
    other.set_state(state)
    assert other.fingerprint() == fingerprint and other.program() == env.program()


def test_a_start_of_its_own(make):
    env = make("toy-v0", benchmark_locs=TOY[:1], start="lowered").unwrapped
    assert env.world.starts == ["emitted", "lowered"]
    env.reset(seed=0)
    assert b"neg" not in env.program()
    emitted = make("toy-v0", benchmark_locs=TOY[:1]).unwrapped
    emitted.reset(seed=0)
    assert b"neg" in emitted.program()


def test_graphs_are_refused_with_a_reason(make):
    assert "toy-graph-v0" not in gym.registry
    with pytest.raises(xla_gym.ConfigError, match=r"toy.* gives no graphs"):
        make("toy-v0", benchmark_locs=TOY, observation="graph")


def test_a_better_order_is_found_proven_and_applied(tmp_path):
    # Its ending says for which compiler it is.
    found = xla_gym.optimize(TEMPTING, budget=300, trials=2, report=True)
    assert not found.is_default and found.proven
    assert list(found.stages) == ["order", "final"]
    final = found.stages["final"]
    assert final.result < final.default and found.figures["final"] == (final.default, final.result)
    assert found.recipe["engine"].startswith("toy ") and found.recipe["objective"] == "final"
    assert "toy" in found.html and "XLA's own" not in found.html
    recipe = tmp_path / "recipe.json"
    found.save(recipe)
    # The recipe says it, too: bytes have no ending.
    with open(TEMPTING, "rb") as file:
        text = file.read()
    assert xla_gym.apply_recipe(recipe, text) == found.program
    assert found.program.count(b"\n") < text.count(b"\n")
    again = xla_gym.optimize(text, engine="toy", budget=300, trials=2)
    assert again.recipe["passes"] == found.recipe["passes"]


def test_its_objectives_and_policies_have_its_names():
    with pytest.raises(xla_gym.ConfigError, match=r"kernels.*final"):
        xla_gym.optimize(TEMPTING, budget=5, objective="kernels")
    with pytest.raises(xla_gym.ConfigError, match="general"):
        xla_gym.optimize(TEMPTING, budget=5, policy="general")


def test_the_examples_know_no_compiler():
    example = Path(__file__).parent.parent / "examples" / "random_agent.py"
    arguments = ["--env", "toy-v0", "--benchmarks", *TOY[:2], "--episodes", "2", "--traj-limit", "5"]
    done = subprocess.run(
        [sys.executable, str(example), *arguments], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert "lines, at random" in done.stdout and "the compiler's own order" in done.stdout
