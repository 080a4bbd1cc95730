"""What the environments do beyond Gymnasium's promises: masks, failures, errors, caches."""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time

import numpy as np
import pytest
from conftest import ABORTING, SMALL, index_of, random_actions, rollout, same

import xla_gym

# The mask.


def test_the_mask_knows_what_did_nothing(make):
    env = make(benchmark_locs=["hlo-v1/gpt2/forward-1l"], traj_limit=200)
    _, info = env.reset(seed=0)
    assert info["action_mask"].all() and info["action_mask"].dtype == bool
    useless, most = set(), 0
    for action in range(env.action_space.n):
        info = env.step(action)[4]
        # What was found belongs to one state only.
        useless = set() if info["changed"] else useless | {action}
        most = max(most, len(useless))
        assert set(np.flatnonzero(~info["action_mask"])) == useless
        assert same(env.unwrapped.action_masks(), info["action_mask"])
    assert most > 3, "every pass did something: this shows nothing"


def test_a_seed_clears_what_the_mask_knows(make):
    env = make()
    env.reset(seed=0)
    while env.step(random.randrange(env.action_space.n))[4]["changed"]:
        pass
    assert env.reset(seed=0)[1]["action_mask"].all()


@pytest.mark.parametrize("graph", [*SMALL[:2], ABORTING])
def test_an_exact_mask_is_exact(make, graph):
    _, info = make(benchmark_locs=[graph], mask="exact").reset(seed=0)
    env = make(benchmark_locs=[graph]).unwrapped
    env.reset(seed=0)
    does = []
    for action in range(env.action_space.n):
        does.append(env.step(action)[4]["changed"])
        env.undo()
    assert same(info["action_mask"], np.array(does))
    assert 0 < sum(does) < len(does)


def test_a_shared_mask_knows_what_others_tried(make):
    env = make(benchmark_locs=SMALL[:1], mask="shared").unwrapped
    env.reset(seed=0)
    other = env.fork()
    useless = next(action for action in range(19) if not env.step(action)[4]["changed"])
    if env.fingerprint() == other.fingerprint():
        assert not other.action_masks()[useless]
    assert not env.action_masks()[useless]


# Failures.


@pytest.mark.parametrize("cost", [0.0, 0.25])
def test_a_failing_pass_changes_nothing_and_costs(make, cost):
    env = make(benchmark_locs=[ABORTING], failure_cost=cost)
    observation, start = env.reset(seed=0)
    action = index_of(env, "scatter_simplifier")
    fingerprint = env.unwrapped.fingerprint()
    for _ in range(2):
        # The second time it is remembered, which must not be visible.
        after, reward, terminated, truncated, info = env.step(action)
        assert same(after, observation)
        assert info["operations"] == start["operations"]
        assert info["failure"] == "died" and info["failure_message"]
        assert info["pass"] == "scatter_simplifier" and not info["changed"]
        assert reward == pytest.approx(-1.0 - cost, abs=1e-12)
        assert not terminated and not truncated
        assert not info["action_mask"][action]
    assert env.unwrapped.last_step[0]
    assert env.unwrapped.fingerprint() == fingerprint
    # And the episode goes on.
    assert env.step(index_of(env, "algsimp"))[4]["changed"]


# How episodes begin and end.


@pytest.mark.parametrize("limit", [1, 7])
def test_an_episode_has_traj_limit_steps(make, limit):
    env = make(traj_limit=limit)
    env.reset(seed=0)
    assert [env.step(0)[2:4] for _ in range(limit)] == [(False, False)] * (limit - 1) + [
        (False, True)
    ]
    with pytest.raises(xla_gym.NotRunningError, match="call reset"):
        env.step(0)


def test_the_stop_action_ends_an_episode(make):
    env = make(stop_action=True)
    assert env.unwrapped.actions[-1] == "stop"
    assert env.action_space.n == make().action_space.n + 1
    _, start = env.reset(seed=0)
    _, reward, terminated, truncated, info = env.step(env.action_space.n - 1)
    assert (terminated, truncated, info["pass"]) == (True, False, "stop")
    assert reward == -1.0 and info["operations"] == start["operations"]
    # In the last step allowed it is an end of its own will.
    env.reset()
    for _ in range(19):
        env.step(0)
    assert env.step(env.action_space.n - 1)[2:4] == (True, False)


def benchmarks(env, episodes):
    names = [env.reset(seed=0)[1]["benchmark"]]
    return names + [env.reset()[1]["benchmark"] for _ in range(episodes - 1)]


def test_cycle_takes_one_after_the_other(make):
    assert benchmarks(make(sampler="cycle"), 9) == [*SMALL, *SMALL, SMALL[0]]


def test_random_takes_all(make):
    names = benchmarks(make(sampler="random"), 60)
    assert set(names) == set(SMALL) and names[:4] != SMALL


def test_weights_are_kept(make):
    names = benchmarks(make(sampler={"weighted": [0, 1, 0, 3]}), 200)
    assert set(names) == {SMALL[1], SMALL[3]}
    assert 110 < names.count(SMALL[3]) < 190


def test_a_curriculum_begins_with_the_smallest(make):
    sizes = {graph: xla_gym.data.describe(graph)["counts"]["instructions"] for graph in SMALL}
    smallest = min(sizes, key=sizes.get)
    names = benchmarks(make(sampler={"curriculum": {"episodes": 40}}), 120)
    assert set(names[:10]) == {smallest}
    by_size = sorted(sizes, key=sizes.get)
    assert set(names[:20]) <= set(by_size[:2])
    assert set(names[40:]) == set(SMALL)


@pytest.mark.parametrize("choice", [2, SMALL[2]])
def test_reset_takes_a_benchmark(make, choice):
    env = make()
    assert env.reset(options={"benchmark": choice})[1]["benchmark"] == SMALL[2]


# Rewards.


def test_rewards_are_what_they_are_said_to_be(make):
    graph = "hlo-v1/gpt2/forward-1l"
    by_kind = {}
    for kind in ("paper", "difference", "over-default", "nothing"):
        env = make(benchmark_locs=[graph], reward=kind)
        operations = [env.reset(seed=0)[1]["operations"]]
        rewards = []
        for action in random_actions(env, 20):
            _, reward, _, _, info = env.step(action)
            rewards.append(reward)
            operations.append(info["operations"])
        by_kind[kind] = np.array(rewards)
    initial, default = env.unwrapped.world.baseline(0)
    start, by_xla = initial["operations"], default["operations"]
    assert env.unwrapped.world.defaults(0) == (
        start,
        by_xla,
        default["legal"],
        default["kernels"],
    )
    counts = np.array(operations, dtype=float)
    removed = counts[:-1] - counts[1:]
    assert removed.any()
    expected = {
        "paper": -counts[1:] / start,
        "difference": removed / start,
        "over-default": removed / (start - by_xla),
        "nothing": np.zeros(20),
    }
    for kind, rewards in by_kind.items():
        np.testing.assert_allclose(rewards, expected[kind], rtol=0, atol=1e-12, err_msg=kind)


def test_what_is_paid_at_the_end_is_told(make):
    env = make(traj_limit=2, at_end="legal", reward="nothing")
    env.reset(seed=0)
    _, reward, _, _, info = env.step(0)
    assert reward == 0.0 and "at_end" not in info
    _, reward, _, truncated, info = env.step(0)
    result, default = info["at_end"]
    assert truncated and reward == pytest.approx(1 - result / default)


# Rendering.


def test_human_prints(make, capfd):
    env = make(render_mode="human")
    env.reset(seed=0)
    env.step(0)
    lines = capfd.readouterr().out.splitlines()
    assert len(lines) == 2
    assert "step 0/20" in lines[0] and "step 1/20" in lines[1]
    assert all(line.startswith(SMALL[0]) for line in lines)


def test_ansi_returns_a_line(make, capfd):
    env = make(render_mode="ansi")
    _, info = env.reset(seed=0)
    line = env.render()
    assert f"{info['operations']} operations of {info['operations']} (+0.0%)" in line
    assert "\n" not in line and capfd.readouterr().out == ""


def test_rgb_array_is_a_plot(make):
    env = make(render_mode="rgb_array", benchmark_locs=["hlo-v1/gpt2/forward-1l"])
    env.reset(seed=0)
    before = env.render()
    env.step(index_of(env, "algsimp"))
    after = env.render()
    for picture in (before, after):
        assert picture.shape == (400, 640, 3) and picture.dtype == np.uint8
        assert len(np.unique(picture.reshape(-1, 3), axis=0)) > 1
    assert not np.array_equal(before, after)


# Errors.


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"passes": ["algsimq"]}, xla_gym.UnknownPassError, 'no pass "algsimq"'),
        ({"benchmark_locs": "hlo-v1/none"}, xla_gym.BenchmarkNotFoundError, "hlo-v1/none"),
        ({"benchmark_locs": "none.hlo"}, xla_gym.BenchmarkNotFoundError, "none.hlo"),
        ({"benchmark_locs": []}, xla_gym.ConfigError, "at least one benchmark"),
        ({"traj_limit": 0}, xla_gym.ConfigError, "at least 1"),
        ({"reward": "much"}, xla_gym.ConfigError, "much.*paper.*difference"),
        ({"observation": "smell"}, xla_gym.ConfigError, "smell.*counts.*graph"),
        ({"sampler": "dice"}, xla_gym.ConfigError, "dice.*cycle.*random"),
        ({"sampler": {"weighted": [1]}}, xla_gym.ConfigError, "1 weights for 4 benchmarks"),
        ({"sampler": {"weighted": [0] * 4}}, xla_gym.ConfigError, "weights"),
        ({"mask": "all"}, xla_gym.ConfigError, "all.*own.*shared.*exact"),
        ({"at_end": "cake"}, xla_gym.ConfigError, "cake.*legal.*kernels"),
        ({"weights": {"cake": 1}}, xla_gym.ConfigError, "cake.*flops.*bytes_accessed"),
        ({"start": "cake"}, xla_gym.ConfigError, "cake.*emitted.*normalized.*legal"),
        ({"engine": "cake"}, xla_gym.ConfigError, "cake.*xla, llvm, toy"),
        ({"failure_cost": float("inf")}, xla_gym.ConfigError, None),
        ({"shaped": True, "gamma": float("nan")}, xla_gym.ConfigError, None),
        ({"render_mode": "smoke"}, xla_gym.ConfigError, "smoke.*human, ansi and rgb_array"),
    ],
)
def test_bad_arguments_are_named(make, arguments, error, text):
    with pytest.raises(error, match=text):
        make(**arguments)


def test_a_program_that_is_none_is_named(make):
    env = make(benchmark_locs=xla_gym.data.Program("mine", b"HloModule x\n\nthis is not HLO"))
    with pytest.raises(xla_gym.ProgramError, match="mine"):
        env.reset()


def test_a_cache_must_be_a_file(make, tmp_path):
    with pytest.raises(xla_gym.CacheError, match="is not a file"):
        make(cache=tmp_path)


def test_a_broken_cache_is_moved_aside(make, tmp_path):
    file, rubbish = tmp_path / "cache.sqlite", "This is no database. " * 100
    file.write_text(rubbish)
    env = make(cache=file)
    env.reset(seed=0)
    env.step(0)
    env.unwrapped.world.flush()
    assert [path.read_text() for path in tmp_path.glob("*.broken-*")] == [rubbish]
    assert file.read_bytes().startswith(b"SQLite")


def test_a_bad_action_is_named(make):
    env = make().unwrapped
    env.reset(seed=0)
    with pytest.raises(ValueError, match="no action 1000; there are 115"):
        env.step(1000)
    env.step(0)


def test_a_negative_action_is_named(make):
    env = make().unwrapped
    env.reset(seed=0)
    with pytest.raises(ValueError, match="no action -1"):
        env.step(-1)


@pytest.mark.parametrize("argument", ["pass_limit", "memory_limit"])
def test_limits_must_be_above_zero(make, argument):
    with pytest.raises(xla_gym.ConfigError, match=argument):
        make(**{argument: -1.0})


@pytest.mark.parametrize("choice", [99, "hlo-v1/none"])
def test_a_bad_benchmark_is_named(make, choice):
    env = make()
    with pytest.raises(xla_gym.XlaGymError, match=str(choice)):
        env.reset(options={"benchmark": choice})


def test_a_step_before_reset_is_refused(make):
    with pytest.raises(xla_gym.NotRunningError, match="call reset first"):
        make().unwrapped.step(0)


def test_a_closed_environment_says_so(make):
    env = make()
    env.reset(seed=0)
    env.close()
    env.close()
    for use in (lambda: env.unwrapped.step(0), env.unwrapped.reset, env.unwrapped.get_state):
        with pytest.raises(xla_gym.NotRunningError, match="closed"):
            use()


def test_undo_takes_the_return_back(make):
    env = make(render_mode="ansi").unwrapped
    env.reset(seed=0)
    before = env.render()
    env.step(0)
    env.undo()
    assert env.render() == before


# Programs that ask for too much.

HOSTILE = """
import resource, sys
import gymnasium, xla_gym

name, text = sys.argv[1], open(sys.argv[1]).read().encode()

def episode(**arguments):
    env = gymnasium.make("xla-v0", benchmark_locs=[name], traj_limit=1, **arguments)
    env.reset(seed=0)
    env.step(0)

def vector():
    arguments = {"benchmark_locs": [name], "traj_limit": 1, "at_end": "run-time"}
    envs = gymnasium.make_vec("xla-v0", 2, vectorization_mode="vector_entry_point", **arguments)
    envs.reset(seed=0)

for use in (
    lambda: xla_gym.optimize(name, budget=5),
    lambda: xla_gym.optimize(text, budget=5, unproven=True, objective="run-time"),
    lambda: episode(at_end="run-time"),
    vector,
    lambda: episode(at_end="kernels"),
    lambda: episode(),
):
    try:
        use()
        print("done")
    except xla_gym.ProgramError as error:
        print(error)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 20)
"""


def test_a_program_that_asks_for_too_much_is_an_exception(python, tmp_path):
    file = tmp_path / "hostile.hlo"
    file.write_text("HloModule m\nENTRY e { ROOT p = f32[1000000000000] parameter(0) }\n")
    *refused, kernels, plain, memory = python(HOSTILE, str(file)).splitlines()
    assert len(refused) == 4
    for said in refused:
        assert "its inputs take 3725.3 GiB" in said and "at most 6 GiB" in said
    # What runs nothing needs no inputs.
    assert (kernels, plain) == ("done", "done")
    assert int(memory) < 2, "GiB"


def test_results_that_are_too_large_end_no_process(python, tmp_path):
    file = tmp_path / "hostile.hlo"
    file.write_text(
        "HloModule m\nENTRY e { c = f32[] constant(1)\n"
        "ROOT b = f32[1000000000000] broadcast(c), dimensions={} }\n"
    )
    *_, memory = python(HOSTILE, str(file)).splitlines()
    assert int(memory) < 2, "GiB"


# Processes and threads.


def test_a_forked_child_is_refused_and_the_parent_goes_on(make):
    env = make()
    actions = random_actions(env, 10)
    expected = rollout(env, actions)
    env.reset(seed=0)
    child = os.fork()
    if child == 0:
        # No exception and no clean-up of pytest may happen in here.
        try:
            env.unwrapped.step(0)
        except xla_gym.ForkedError as error:
            env.unwrapped.close()
            os._exit(0 if "spawn" in str(error) else 3)
        except BaseException:
            os._exit(2)
        os._exit(1)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert same([env.step(action) for action in actions], expected[1:])


def operations_after(actions):
    import gymnasium

    env = gymnasium.make("xla-v0", benchmark_locs=SMALL, disable_env_checker=True)
    env.reset(seed=0)
    operations = [env.step(action)[4]["operations"] for action in actions]
    env.close()
    return operations


def test_spawned_processes_work(make):
    actions = random_actions(make(), 10)
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        one, two = pool.map(operations_after, [actions, actions])
    assert one == two == operations_after(actions)


INTERRUPT = """
import json, os, signal, sys, threading, time
import gymnasium, numpy, xla_gym

noticed = None

def notice(*_):
    global noticed
    if noticed is None:
        noticed = time.monotonic()
        raise KeyboardInterrupt

# A shell that starts tests in the background leaves Ctrl-C ignored; here it must work.
signal.signal(signal.SIGINT, notice)
kind, locs = sys.argv[1], json.loads(sys.argv[2])
generator = numpy.random.default_rng(0)
arguments = {"benchmark_locs": locs, "traj_limit": 10**6, "cache_memory": 1 << 20}
if kind == "vector":
    env = gymnasium.make_vec("xla-v0", 4, vectorization_mode="vector_entry_point", **arguments)
    sample = lambda: generator.integers(env.single_action_space.n, size=4)
else:
    env = gymnasium.make("xla-v0", mask="exact" if kind == "inside" else "own", **arguments)
    sample = lambda: generator.integers(env.action_space.n)
begun = time.monotonic()
env.reset(seed=0)
whole = time.monotonic() - begun

def interrupt():
    global pressed
    time.sleep(0.2 * whole)
    pressed = time.monotonic()
    # Again and again: a signal between two waits is noticed by neither of them.
    while noticed is None:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.02)

threading.Thread(target=interrupt, daemon=True).start()
try:
    if kind == "inside":
        # To a program that nobody knows, of which every pass has to be tried: as long as before.
        env.step(env.unwrapped.actions.index("algsimp"))
    while True:
        env.step(sample())
except KeyboardInterrupt:
    print(json.dumps([noticed - pressed, whole]))
env.reset(seed=0)
env.step(sample())
env.close()
"""


# `inside` spends seconds in one call, so that only the call itself can notice; how long it would take is
# measured by another such call just before, because who else uses the machine is not known.
@pytest.mark.parametrize("kind", ["plain", "inside", "vector"])
def test_control_c_ends_a_step_and_the_environment_lives(python, kind):
    locs = ["hlo-v1/gpt2/train-2l-adamw"] if kind == "inside" else ["hlo-v1/gpt2/forward-1l"]
    waited, whole = json.loads(python(INTERRUPT, kind, json.dumps(locs)).splitlines()[-1])
    assert waited < (whole / 2 if kind == "inside" else 30)


def test_other_threads_run_during_a_step(make):
    # One call that takes long: every pass of a large program, for the exact mask.
    env = make(benchmark_locs=["hlo-v1/gpt2/train-2l-adamw"], mask="exact")
    ticks, stop = [], threading.Event()

    def tick():
        while not stop.is_set():
            ticks.append(time.monotonic())
            time.sleep(0.002)

    thread = threading.Thread(target=tick)
    thread.start()
    began = time.monotonic()
    env.reset(seed=0)
    ended = time.monotonic()
    stop.set()
    thread.join()
    during = [moment for moment in ticks if began < moment < ended]
    assert ended - began > 0.1, "the call was too short to show anything"
    # However busy the machine is: a call that held Python's lock would leave one gap as long as itself.
    assert np.diff([began, *during, ended]).max() < (ended - began) / 2


# The disk cache.

REMEMBER = """
import json, sys
import gymnasium, numpy, xla_gym
cache, locs, steps = sys.argv[1] or None, json.loads(sys.argv[2]), int(sys.argv[3])
env = gymnasium.make("xla-v0", benchmark_locs=locs, traj_limit=20, cache=cache)
said, remembered = [env.reset(seed=0)[1]["operations"]], 0
actions = numpy.random.default_rng(0).integers(env.action_space.n, size=steps).tolist()
for number, action in enumerate(actions):
    if number == 30:
        env.unwrapped.world.flush()
        print("under way", flush=True)
    _, reward, _, truncated, info = env.step(action)
    said.append((reward, info["operations"], info["failure"]))
    remembered += env.unwrapped.last_step[0]
    if truncated:
        env.reset()
env.unwrapped.world.flush()
print(json.dumps([said, remembered]))
"""


def test_another_process_remembers(python, tmp_path):
    cache, locs = str(tmp_path / "cache.sqlite"), json.dumps([*SMALL, ABORTING])
    (first, before), (second, after) = (
        json.loads(python(REMEMBER, cache, locs, "80").splitlines()[-1]) for _ in range(2)
    )
    assert first == second
    assert after == 80 and before < 40, (before, after)


def test_a_shared_cache_survives_kills(python, tmp_path):
    cache, locs = tmp_path / "cache.sqlite", json.dumps(SMALL)
    command = [sys.executable, "-W", "ignore", "-c", REMEMBER, str(cache), locs, "100000"]

    def start():
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=tempfile.gettempdir()
        )
        # However long it takes to start: what is killed has written before, and is about to write.
        assert process.stdout.readline() == b"under way\n"
        return process

    steady = start()
    chance = random.Random(0)
    try:
        for _ in range(4):
            victim = start()
            time.sleep(chance.uniform(0.0, 0.5))
            assert victim.poll() is None, "it ended before it was killed"
            victim.kill()
            victim.wait()
    finally:
        alive = steady.poll() is None
        steady.kill()
        steady.wait()
    assert alive
    with sqlite3.connect(cache) as database:
        assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    with_cache, remembered = json.loads(python(REMEMBER, str(cache), locs, "80").splitlines()[-1])
    without, _ = json.loads(python(REMEMBER, "", locs, "80").splitlines()[-1])
    assert with_cache == without and remembered > 0


def test_transitions_go_to_parquet(make, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    env = make(benchmark_locs=[ABORTING], cache=tmp_path / "cache.sqlite")
    env.reset(seed=0)
    for name in ("scatter_simplifier", "algsimp", "dce", "algsimp"):
        env.step(index_of(env, name))
    file = tmp_path / "transitions.parquet"
    count = env.unwrapped.world.export_transitions(file)
    table = parquet.read_table(file)
    assert table.num_rows == count >= 3
    words = {value for column in table.columns for value in map(str, column.to_pylist())}
    assert {"scatter_simplifier", "algsimp", "dce"} <= words, table.schema


# Programs.


def test_ids_are_found():
    every = xla_gym.data.ids()
    assert len(every) == len(set(every)) > 500
    assert xla_gym.data.ids(["hlo-v1/sorting/*"]) == [g for g in every if "/sorting/" in g]
    train, test = (set(xla_gym.data.ids(f"hlo-v1:gpt2/{side}")) for side in ("train", "test"))
    assert train and test and not train & test
    with pytest.raises(xla_gym.BenchmarkNotFoundError):
        xla_gym.data.ids("hlo-v1/none/*")


def test_a_graph_is_described(make):
    known = xla_gym.data.describe(SMALL[0])
    _, info = make(benchmark_locs=SMALL[:1]).reset()
    assert known["id"] == SMALL[0] == info["benchmark"]
    for count in ("instructions", "operations", "inlined", "computations"):
        assert known["counts"][count] == info[count]
    with pytest.raises(xla_gym.BenchmarkNotFoundError, match="hlo-v1/none"):
        xla_gym.data.describe("hlo-v1/none")


def test_the_text_of_a_graph_is_a_program(make, tmp_path):
    text = xla_gym.data.text(SMALL[0])
    assert text.startswith("HloModule")
    file = tmp_path / "mine.hlo"
    file.write_text(text)
    program = xla_gym.data.Program("mine", text.encode())
    prints = set()
    for loc in (SMALL[0], str(file), file, program):
        env = make(benchmark_locs=[loc]).unwrapped
        env.reset()
        prints.add(env.fingerprint())
    assert len(prints) == 1


def test_every_form_of_a_program_can_be_written(make):
    env = make(benchmark_locs=["hlo-v1/mlp/nerf-forward"]).unwrapped
    env.reset()
    assert env.program().startswith(b"HloModule")
    assert b"stablehlo" in env.program("mlir")
    again = make(benchmark_locs=xla_gym.data.Program("again.pb", env.program("pb"))).unwrapped
    again.reset()
    assert again.fingerprint() == env.fingerprint()
    assert env.world.forms == ["hlo", "pb", "mlir", "mlirbc"]
    with pytest.raises(ValueError, match="hlo, pb, mlir, mlirbc"):
        env.program("punched cards")


def test_jax_functions_are_programs(make):
    jax = pytest.importorskip("jax")

    def twice(x):
        return jax.numpy.tanh(x) + jax.numpy.tanh(x)

    program = xla_gym.data.from_jax(twice, jax.ShapeDtypeStruct((8,), "float32"))
    env = make(benchmark_locs=program)
    _, info = env.reset()
    assert info["benchmark"] == "jax:twice" and info["transcendentals"] == 16
    assert env.step(index_of(env, "cse"))[4]["transcendentals"] == 8


def test_multistep_is_the_same_as_steps(make):
    env, other = make().unwrapped, make().unwrapped
    actions = random_actions(env, 20)
    env.reset(seed=0)
    other.reset(seed=0)
    single = [other.step(action) for action in actions]
    observation, reward, terminated, truncated, info = env.multistep([*actions, 0])
    assert same((observation, terminated, truncated, info), (single[-1][0], *single[-1][2:]))
    assert reward == pytest.approx(sum(step[1] for step in single), abs=1e-12)


def test_killing_every_worker_from_outside_is_not_noticed(make):
    """The kernel's out-of-memory killer asks nobody, either."""
    env = make()
    actions = random_actions(env, 20, seed=3)
    expected = rollout(env, actions)
    fresh = make(cache_memory=1 << 20)
    got = [fresh.reset(seed=0)]
    for number, action in enumerate(actions):
        if number % 5 == 1:
            for child in children_of(os.getpid()):
                os.kill(child, signal.SIGKILL)
        got.append(fresh.step(action))
    assert same(got, expected[: len(got)])


def children_of(process: int) -> list[int]:
    """The compiler processes below a process."""
    found, todo = [], [process]
    while todo:
        for entry in os.listdir("/proc"):
            try:
                with open(f"/proc/{entry}/stat") as file:
                    name, rest = file.read().split("(", 1)[1].rsplit(")", 1)
            except (OSError, IndexError):
                continue
            if int(rest.split()[1]) == todo[0] and "xla-gym" in name:
                found.append(int(entry))
                todo.append(int(entry))
        todo.pop(0)
    return found
