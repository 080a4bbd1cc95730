"""Better orders, from Python: the same answers as the command gives, and errors of their own."""

import json

import pytest

import xla_gym

GPT2 = "hlo-v1/gpt2/forward-1l"


@pytest.fixture(scope="module")
def found():
    return xla_gym.optimize(GPT2, budget=200, trials=1)


def test_the_answer_is_better_and_proven(found):
    legal = found.stages["legal"]
    assert not found.is_default
    assert legal.result < legal.default < legal.initial
    assert legal.value == (legal.initial - legal.result) / (legal.initial - legal.default) > 1
    assert list(found.stages) == ["order", "legal", "kernels"]
    assert found.figures["legal"] == (legal.default, legal.result)
    assert found.recipe["evidence"]["outputs"]["verdict"] == "equal"
    assert found.recipe["evidence"]["search"]["passes"] <= 200


def test_a_seed_gives_the_same_again(found):
    again = xla_gym.optimize(GPT2, budget=200, trials=1)
    assert again.recipe["passes"] == found.recipe["passes"]


def test_a_policy_guides_the_search(found):
    # With 20 passes there is little but the policy's own walk.
    guided = xla_gym.optimize(GPT2, budget=20, trials=1, coreset=False)
    alone = xla_gym.optimize(GPT2, budget=20, trials=1, coreset=False, policy=None)
    legal = [answer.stages["legal"].result for answer in (guided, alone)]
    assert legal[0] < legal[1]
    with pytest.raises(xla_gym.ConfigError, match="missing.safetensors"):
        xla_gym.optimize(GPT2, budget=20, policy="missing.safetensors")


def test_a_recipe_is_applied_to_its_program_only(found, tmp_path):
    path = tmp_path / "recipe.json"
    found.save(path)
    text = xla_gym.data.text(GPT2).encode()
    # The same program from memory and from the data set.
    applied = xla_gym.apply_recipe(path, text)
    assert len(applied) == len(found.program) and found.hlo is found.program
    with pytest.raises(xla_gym.RecipeMismatch, match="force=True"):
        xla_gym.apply_recipe(found.recipe, "hlo-v1/mlp/nerf-forward")
    with pytest.warns(UserWarning, match="another program"):
        assert xla_gym.apply_recipe(found.recipe, "hlo-v1/mlp/nerf-forward", force=True)


def test_a_recipe_of_the_first_version_is_applied(found):
    old = json.loads(json.dumps(found.recipe))
    old["version"] = 1
    for stage in old["evidence"].pop("stages"):
        name, value = stage.pop("stage"), stage.pop("value")
        old["evidence"] |= {name: stage, f"{name}_ratio": value}
    assert len(xla_gym.apply_recipe(old, GPT2)) == len(found.program)


def test_the_compilers_own_tools_are_told_the_same(found):
    assert found.recipe["disabled_passes"]
    told = "\n".join(found.commands.values())
    assert "hlo-opt" in told and all(name in told for name in found.recipe["disabled_passes"])


def test_where_an_order_begins_is_in_its_recipe():
    with pytest.warns(DeprecationWarning, match="start="):
        found = xla_gym.optimize(GPT2, budget=50, trials=1, normalise=True)
    assert found.recipe["start"] == "normalized" and not found.is_default
    assert len(xla_gym.apply_recipe(found.recipe, GPT2)) == len(found.program)


def test_the_store_is_consulted(tmp_path):
    store = tmp_path / "recipes.db"
    first = xla_gym.optimize(GPT2, budget=200, trials=1, store=store)
    # With next to no budget of its own, it is as good.
    again = xla_gym.optimize(GPT2, budget=2, trials=1, store=store)
    assert again.recipe["gain"] >= first.recipe["gain"] > 1


def test_a_report_is_a_page(tmp_path):
    found = xla_gym.optimize("hlo-v1/mlp/nerf-forward", budget=50, trials=1, report=True)
    assert found.html.startswith("<!") and "http" not in found.html
    assert xla_gym.optimize("hlo-v1/mlp/nerf-forward", budget=50, trials=1).html is None


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"objective": "speed"}, "run-time"),
        ({"method": "luck"}, "evolve"),
        ({"memory_growth": 0}, "memory_growth"),
        ({"seconds": 0}, "seconds"),
    ],
)
def test_wrong_arguments_are_named(arguments, words):
    with pytest.raises(xla_gym.ConfigError, match=words):
        xla_gym.optimize(GPT2, **arguments)


def test_wrong_files_are_named(tmp_path):
    with pytest.raises(xla_gym.BenchmarkNotFoundError, match="none.hlo"):
        xla_gym.optimize(tmp_path / "none.hlo", budget=10)
    with pytest.raises(xla_gym.ProgramError):
        xla_gym.optimize(b"garbage", budget=10)
    with pytest.raises(xla_gym.ConfigError, match="name one"):
        xla_gym.optimize("hlo-v1/mlp/*", budget=10)
    broken = tmp_path / "recipe.json"
    broken.write_text("{")
    with pytest.raises(xla_gym.ConfigError, match=r"recipe\.json"):
        xla_gym.apply_recipe(broken, GPT2)
    broken.write_text(json.dumps({"version": 1}))
    with pytest.raises(xla_gym.ConfigError, match="not a recipe"):
        xla_gym.apply_recipe(broken, GPT2)


# Ctrl-C.

# The search would take days: whatever comes back was stopped. The clock starts once it has begun.
INTERRUPT = """
import os, signal, sys, threading, time, warnings
import xla_gym
from xla_gym import _native

signal.signal(signal.SIGINT, signal.default_int_handler)
begin = _native.optimize_benchmark

def press(after):
    threading.Timer(after, os.kill, (os.getpid(), signal.SIGINT)).start()

def optimize_benchmark(*arguments, **settings):
    press(3.0)
    return begin(*arguments, **settings)

_native.optimize_benchmark = optimize_benchmark
warnings.simplefilter("always")
"""
FOREVER = {"budget": 10**9, "method": "random"}


def test_control_c_ends_a_search_and_keeps_the_best(python):
    said = python(
        f"""{INTERRUPT}
with warnings.catch_warnings(record=True) as caught:
    found = xla_gym.optimize({GPT2!r}, trials=1, **{FOREVER})
time.sleep(0.2)  # No exception is left over.
print(found.interrupted, found.proven, found.is_default, [str(w.message) for w in caught])
"""
    )
    assert said.startswith("True True False") and "best so far" in said, said


def test_a_second_control_c_gives_the_search_up(python):
    said = python(
        f"""{INTERRUPT}
warnings.showwarning = lambda *_: press(0.1)
found = None
try:
    found = xla_gym.optimize("hlo-v1/gpt2/train-4l-adamw", **{FOREVER})
except KeyboardInterrupt:
    print(found)
# The compiler is there for others.
print(xla_gym.optimize("hlo-v1/mlp/nerf-forward", budget=5).interrupted)
""".replace("press(3.0)", "press(3.0) if settings['budget'] > 5 else None")
    )
    assert said == "None\nFalse\n"


def test_other_exceptions_of_signals_are_raised_at_once(python):
    said = python(
        f"""{INTERRUPT}
def late(*_):
    raise TimeoutError("late")

signal.signal(signal.SIGALRM, late)
_native.optimize_benchmark = begin
signal.alarm(3)
try:
    xla_gym.optimize({GPT2!r}, **{FOREVER})
except TimeoutError as error:
    print(error)
"""
    )
    assert said == "late\n"


def test_control_c_during_the_first_call_of_a_function(python):
    pytest.importorskip("jax")
    said = python(
        f"""{INTERRUPT}
import jax, jax.numpy as jnp
def step(x, w):
    y = jnp.tanh(x @ w)
    return y @ w.T + jnp.tanh(x @ w) @ w.T, jnp.sum(y)
x, w = jnp.arange(12.0).reshape(3, 4), jnp.arange(20.0).reshape(4, 5) / 20
f = xla_gym.jit(step, **{FOREVER})
ours, theirs = f(x, w), jax.jit(step)(x, w)
time.sleep(0.2)
print([bool(jnp.allclose(a, b)) for a, b in zip(ours, theirs)], f.stats[0].optimise is not None)
"""
    )
    assert said == "[True, True] True\n"


# What cannot be proven.

# Sinking the slices saves two operations, and no result is ever a number.
NEVER_A_NUMBER = """HloModule m
ENTRY e {
  x = f32[8] parameter(0)
  z = f32[] constant(nan)
  b = f32[8] broadcast(z), dimensions={}
  y = f32[8] add(x, b)
  s = f32[4] slice(y), slice={[0:4]}
  t = f32[4] slice(y), slice={[4:8]}
  a = f32[4] exponential(s)
  c = f32[4] exponential(t)
  d = f32[4] tanh(a)
  f = f32[4] tanh(c)
  ROOT r = (f32[4], f32[4]) tuple(d, f)
}
"""


def test_what_cannot_be_proven_is_not_the_answer(found, tmp_path):
    program = tmp_path / "never-a-number.hlo"
    program.write_text(NEVER_A_NUMBER)
    arguments = {"budget": 200, "objective": "operations"}
    proven = xla_gym.optimize(program, **arguments, report=True)
    assert proven.is_default and proven.proven and proven.recipe["gain"] == 1
    assert "not comparable" in proven.recipe["evidence"]["dropped"][-1]
    for stage in ("order", "legal"):
        assert proven.stages[stage].result == proven.stages[stage].default
    unproven = xla_gym.optimize(program, **arguments, unproven=True)
    assert not unproven.is_default and not unproven.proven and unproven.recipe["gain"] > 1
    assert unproven.recipe["evidence"]["outputs"]["verdict"] == "not-comparable"
    assert found.proven
