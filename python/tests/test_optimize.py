"""Better orders, from Python: the same answers as the command gives, and errors of their own."""

import json

import pytest

import xla_gym

GPT2 = "hlo-v1/gpt2/forward-1l"


@pytest.fixture(scope="module")
def found():
    return xla_gym.optimize(GPT2, budget=200, trials=1)


def test_the_answer_is_better_and_proven(found):
    legal = found.recipe["evidence"]["legal"]
    assert not found.is_default
    assert legal["result"] < legal["default"]
    assert found.recipe["evidence"]["outputs"]["verdict"] == "equal"
    assert found.recipe["evidence"]["search"]["passes"] <= 200


def test_a_seed_gives_the_same_again(found):
    again = xla_gym.optimize(GPT2, budget=200, trials=1)
    assert again.recipe["passes"] == found.recipe["passes"]


def test_a_policy_guides_the_search(found):
    # With 20 passes there is little but the policy's own walk.
    guided = xla_gym.optimize(GPT2, budget=20, trials=1, coreset=False)
    alone = xla_gym.optimize(GPT2, budget=20, trials=1, coreset=False, policy=None)
    legal = [answer.recipe["evidence"]["legal"]["result"] for answer in (guided, alone)]
    assert legal[0] < legal[1]
    with pytest.raises(xla_gym.ConfigError, match="missing.safetensors"):
        xla_gym.optimize(GPT2, budget=20, policy="missing.safetensors")


def test_a_recipe_is_applied_to_its_program_only(found, tmp_path):
    path = tmp_path / "recipe.json"
    found.save(path)
    text = xla_gym.data.text(GPT2).encode()
    # The same program from memory and from the data set.
    applied = xla_gym.apply_recipe(path, text)
    assert len(applied) == len(found.hlo)
    with pytest.raises(xla_gym.RecipeMismatch, match="force=True"):
        xla_gym.apply_recipe(found.recipe, "hlo-v1/mlp/nerf-forward")
    with pytest.warns(UserWarning, match="another program"):
        assert xla_gym.apply_recipe(found.recipe, "hlo-v1/mlp/nerf-forward", force=True)


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
        ({"budget": None}, "budget"),
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
    with pytest.raises(xla_gym.ConfigError, match="no recipe"):
        xla_gym.apply_recipe(broken, GPT2)
