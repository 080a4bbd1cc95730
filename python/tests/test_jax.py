"""``xla_gym.jit`` does what ``jax.jit`` does, with another program inside.

Most tests run a fixed recipe with the environment's own passes, because what they ask is whether the
program comes back into JAX whole; the last ones search.
"""

from __future__ import annotations

import json
import warnings
from unittest.mock import Mock

import numpy as np
import pytest

jax = pytest.importorskip("jax", reason="the integration of JAX needs jax")

import gymnasium as gym  # noqa: E402
import jax.numpy as jnp  # noqa: E402

import xla_gym  # noqa: E402
import xla_gym.jax as integration  # noqa: E402
from xla_gym import _jax_programs  # noqa: E402
from xla_gym.data import Program  # noqa: E402

PASSES = (
    "batched_gather_scatter_normalizer dot_decomposer call-inliner dce algsimp reshape-mover cse "
    "transpose-folding constant_folding dce"
).split()
DISABLED = (
    "algsimp batch-dot-simplification constant_folding cse reshape-mover simplify-conditional "
    "simplify-sorts simplify-while-loops transpose-folding tree_reduction_rewriter tuple-simplifier "
    "while-loop-constant-sinking while-loop-invariant-code-motion zero_sized_hlo_elimination"
).split()


@pytest.fixture
def programs(monkeypatch):
    """A fixed recipe for the search; the programs that it was asked for, before and after."""
    seen: list[tuple[bytes, bytes]] = []

    def optimize(program: bytes, settings: object) -> tuple[dict, bytes]:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*out of date.*")
            env = gym.make("xla-v0", benchmark_locs=Program("jax", program), traj_limit=99).unwrapped
        env.reset(seed=0)
        for name in PASSES:
            env.step(env.actions.index(name))
        seen.append((program, env.program("pb")))
        env.close()
        return {"passes": PASSES, "disabled_passes": DISABLED}, seen[-1][1]

    monkeypatch.setattr(integration, "_optimize", optimize)
    return seen


@pytest.fixture(autouse=True)
def no_silent_fallback():
    """Whoever expects a warning says so."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", xla_gym.XlaGymWarning)
        yield


def close(one: object, other: object) -> None:
    """Asserts that results agree: trees, types and values."""
    assert jax.tree.structure(one) == jax.tree.structure(other)
    for left, right in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        assert (left.shape, left.dtype, left.weak_type) == (right.shape, right.dtype, right.weak_type)
        if jnp.issubdtype(left.dtype, jnp.inexact):
            scale = float(jnp.max(jnp.abs(left)))
            np.testing.assert_allclose(np.asarray(left), np.asarray(right), rtol=0, atol=1e-4 * scale)
        else:
            np.testing.assert_array_equal(np.asarray(left), np.asarray(right))


def loss(params, batch):
    x, y = batch
    for layer in params["hidden"]:
        x = jax.nn.relu(x @ layer["w"] + layer["b"])
    return jnp.mean((x @ params["out"] - y) ** 2)


def train(params, batch, *, rate=0.1):
    value, gradient = jax.value_and_grad(loss)(params, batch)
    return jax.tree.map(lambda p, g: p - rate * g, params, gradient), {"loss": value}


def state(rows: int = 8):
    keys = jax.random.split(jax.random.key(0), 5)
    hidden = [{"w": jax.random.normal(keys[i], (16, 16)) / 4, "b": jnp.zeros(16)} for i in range(2)]
    params = {"hidden": hidden, "out": jax.random.normal(keys[2], (16, 3))}
    return params, (jax.random.normal(keys[3], (rows, 16)), jax.random.normal(keys[4], (rows, 3)))


def only(jitted: integration.Jitted) -> integration.Stats:
    (stats,) = jitted.stats
    return stats


def test_a_training_step_with_donated_parameters(programs):
    params, batch = state()
    expected = jax.jit(train)(params, batch)
    step = xla_gym.jit(train, donate_argnums=0)
    close(expected, step(params, batch))
    assert only(step).chosen == "optimised" and only(step).difference <= 1
    assert all(leaf.is_deleted() for leaf in jax.tree.leaves(params)), "the parameters were donated"
    assert not batch[0].is_deleted()
    alias = "input_output_alias={ {0}: (0, {}, "
    (compiled,) = step._known.values()
    assert alias in compiled.plain.as_text() and alias in compiled.optimised.as_text()


def test_steps_follow_each_other_like_plain_ones(programs):
    step, plain = xla_gym.jit(train, donate_argnums=0), jax.jit(train)
    mine, theirs = state()[0], state()[0]
    for _ in range(5):
        mine, said = step(mine, state()[1])
        theirs, expected = plain(theirs, state()[1])
        close(expected, said)
    assert len(programs) == 1, "one search for one signature"


def test_the_optimised_program_is_the_one_that_runs(programs):
    params, batch = state()
    compiled = xla_gym.jax.compile(train, params, batch)
    assert compiled.hlo == programs[0][1] and compiled.stats.chosen == "optimised"
    # The pass that fuses is the test's witness that jaxlib listens to the list.
    unfused = {"passes": PASSES, "disabled_passes": [*DISABLED, "fusion"]}
    compiled.recipe = unfused
    text = compiled._optimised_lowered.compile(compiled._compiler_options()).as_text()
    assert text.count(" fusion(") != compiled.optimised.as_text().count(" fusion(")


def test_static_arguments(programs):
    def power(x, n, *, times=1):
        return times * x**n

    x = jnp.arange(4.0)
    jitted = xla_gym.jit(power, static_argnums=1, static_argnames="times")
    close(power(x, 2), jitted(x, 2))
    close(power(x, 3), jitted(x, 3))
    close(power(x, 3, times=2), jitted(x, 3, times=2))
    close(power(x, 3), jitted(x, 3))
    assert len(programs) == 3
    by_number = xla_gym.jit(lambda x, n: x**n, static_argnums=1)
    close(x**2, by_number(x, n=2))
    close(x**2, by_number(x, 2))
    close(x**2, xla_gym.jit(lambda x, n: x**n, static_argnums=-1)(x, 2))
    by_name = xla_gym.jit(lambda x, n: x**n, static_argnames=["n"])
    close(x**2, by_name(x, 2))


def test_keyword_arguments_and_python_numbers(programs):
    params, batch = state()
    step = xla_gym.jit(train)
    close(jax.jit(train)(params, batch, rate=0.5), step(params, batch, rate=0.5))
    close(jax.jit(train)(params, batch=batch, rate=1), step(params, batch=batch, rate=1))
    assert [stats.chosen for stats in step.stats] == ["optimised"] * 2


def test_weak_types_are_signatures_of_their_own(programs):
    def double(x):
        return x * jnp.ones(2, jnp.bfloat16)

    jitted = xla_gym.jit(double)
    for x in (2.0, jnp.float32(2.0), np.float32(2.0), 2, jnp.asarray(2.0)):
        close(jax.jit(double)(x), jitted(x))
    assert jitted(2.0).dtype == jnp.bfloat16 and jitted(jnp.float32(2.0)).dtype == jnp.float32


def test_integer_boolean_and_complex_results(programs):
    def several(x):
        return jnp.argsort(x), x > 0, (x * 10).astype(jnp.int8), jnp.fft.fft(x), x.astype(jnp.bfloat16)

    x = jax.random.normal(jax.random.key(1), (33,))
    jitted = xla_gym.jit(several)
    ours, theirs = jitted(x), jax.jit(several)(x)
    close(theirs, ours)
    assert only(jitted).chosen == "optimised"


def test_an_argument_that_is_not_used_and_a_result_that_is_an_argument(programs):
    def first(x, unused, y):
        return y, x + 1, y

    jitted = xla_gym.jit(first)
    arguments = jnp.arange(3), jnp.ones((5, 5)), jnp.arange(7.0)
    close(jax.jit(first)(*arguments), jitted(*arguments))
    kept = xla_gym.jit(first, keep_unused=True)
    close(jax.jit(first)(*arguments), kept(*arguments))
    assert only(jitted).chosen == only(kept).chosen == "optimised"


def test_random_keys_old_and_new(programs):
    def draw(key):
        return jax.random.split(key), jax.random.normal(key, (4,))

    jitted = xla_gym.jit(draw)
    close(jax.jit(draw)(jax.random.PRNGKey(3)), jitted(jax.random.PRNGKey(3)))
    ours, theirs = jitted(jax.random.key(3)), jax.jit(draw)(jax.random.key(3))
    assert ours[0].dtype == theirs[0].dtype
    np.testing.assert_array_equal(jax.random.key_data(ours[0]), jax.random.key_data(theirs[0]))
    assert [stats.chosen for stats in jitted.stats] == ["optimised"] * 2


def test_loops_and_conditions(programs):
    def scan(x, flag):
        total, each = jax.lax.scan(lambda c, a: (c + a, c * a), 0.0, x)
        return jax.lax.cond(flag, jnp.sin, jnp.cos, total), each

    jitted = xla_gym.jit(scan)
    x = jnp.linspace(0, 1, 9)
    close(jax.jit(scan)(x, True), jitted(x, True))
    close(jax.jit(scan)(x, False), jitted(x, False))
    assert len(programs) == 1


def test_other_shapes_are_compiled_again(programs):
    jitted = xla_gym.jit(lambda x: jnp.sum(x * 2))
    close(jnp.float32(6.0), jitted(jnp.ones(3)))
    close(jnp.float32(8.0), jitted(jnp.ones(4)))
    close(jnp.float32(6.0), jitted(np.ones(3, np.float32)))
    assert len(programs) == 2
    with jax.default_matmul_precision("float32"):
        jitted(jnp.ones(3))
    assert len(programs) == 3, "settings of JAX are part of the signature"


def test_inside_transformations_it_is_plain(programs):
    f = xla_gym.jit(lambda x: jnp.sin(x) * x)
    x = jnp.arange(3.0)
    close(jax.vmap(jax.grad(lambda v: jnp.sin(v) * v))(x), jax.vmap(jax.grad(f))(x))
    close(jnp.sin(x) * x + 1, jax.jit(lambda v: f(v) + 1)(x))
    close(jnp.sin(x) * x + x, jax.jit(lambda v: f(jnp.arange(3.0)) + v)(x))
    close(jnp.sin(x) * x, jax.lax.map(f, x))
    with jax.disable_jit():
        f(x)
    assert programs == [] and f.stats == []
    outer = xla_gym.jit(jax.grad(lambda v: f(v).sum()))
    close(jax.jit(jax.grad(lambda v: jnp.sum(jnp.sin(v) * v)))(x), outer(x))
    assert len(programs) == 1


@pytest.mark.parametrize("kind", ["pure_callback", "io_callback", "debug_print"])
def test_a_callback_falls_back_with_one_warning(programs, kind):
    from jax.experimental import io_callback

    def calls(x):
        if kind == "debug_print":
            jax.debug.print("{}", x[0])
            return x + 1
        call = {"pure_callback": jax.pure_callback, "io_callback": io_callback}[kind]
        return call(lambda a: np.asarray(a) + 1, jax.ShapeDtypeStruct(x.shape, x.dtype), x)

    jitted = xla_gym.jit(calls)
    with pytest.warns(xla_gym.XlaGymWarning, match="calls runs as plain jax.jit") as caught:
        for size in (3, 3, 4):
            close(jnp.ones(size) + 1, jitted(jnp.ones(size)))
    assert len(caught) == 1 and caught[0].filename == __file__
    assert programs == [] and {stats.chosen for stats in jitted.stats} == {"plain"}


def changed(monkeypatch, change):
    """Lets the optimiser answer with the program of another function."""

    def optimize(program: bytes, settings: object) -> tuple[dict, bytes]:
        return {"passes": ["dce"], "disabled_passes": []}, xla_gym.data.from_jax(*change).content

    monkeypatch.setattr(integration, "_optimize", optimize)


@pytest.mark.parametrize(
    ("function", "other", "argument", "why"),
    [
        (lambda x: x + 1, lambda x: x + 1.01, jnp.ones(3), r"3 of 3 elements.*: 2\.01 instead of 2\.0"),
        (lambda x: x + 1, lambda x: x + 2, jnp.arange(3), r"result differs.*: 2 instead of 1"),
        (lambda x: {"a": x / x}, lambda x: {"a": x * 0 + 1}, jnp.zeros(3), r"result\['a'\] .* not finite"),
        (lambda x: x * 1, lambda x: x / x * x, jnp.arange(3.0), "nan instead of 0.0: not finite"),
        (lambda x: x * 1, lambda x: x + 1e-9, jnp.zeros(3), "1e-09 instead of 0.0"),
        (lambda x: x + 1, lambda x: (x + 1)[:2], jnp.ones(3), "its type became"),
        (lambda x: x + 1, lambda x: (x + 1, x), jnp.ones(3), "its type became"),
    ],
)
def test_a_program_that_computes_something_else_is_not_used(monkeypatch, function, other, argument, why):
    changed(monkeypatch, (other, argument))
    jitted = xla_gym.jit(function)
    with pytest.warns(xla_gym.XlaGymWarning, match=why) as caught:
        np.testing.assert_array_equal(
            jax.tree.leaves(jitted(argument)), jax.tree.leaves(jax.jit(function)(argument))
        )
        jitted(argument)
    assert len(caught) == 1
    assert only(jitted).chosen == "plain"


def test_rounding_and_numbers_that_are_none_are_no_difference(monkeypatch):
    x = jnp.asarray([1.0, np.nan, np.inf, -np.inf, 0.0])
    changed(monkeypatch, (lambda x: x * (1 + 2e-6), x))
    jitted = xla_gym.jit(lambda x: x * 1)
    jitted(x)
    assert only(jitted).chosen == "optimised"
    assert 0.1 < only(jitted).difference < 1


def test_a_step_that_is_a_thousandth_too_large_is_not_used(monkeypatch):
    # In the parameters that is less than a ten thousandth of the largest.
    changed(monkeypatch, (lambda params, batch: train(params, batch, rate=0.1001), *state()))
    step = xla_gym.jit(train)
    with pytest.warns(xla_gym.XlaGymWarning, match="times what is rounding"):
        close(jax.jit(train)(*state()), step(*state()))


def test_results_that_agree_on_nothing_but_zero_prove_nothing(monkeypatch):
    changed(monkeypatch, (lambda x: x * x * x, jnp.ones(3)))
    square = xla_gym.jit(lambda x: x * x)
    for x in (jnp.zeros(3), jnp.full(3, np.nan, jnp.float32), jnp.ones(3), jnp.zeros(3)):
        np.testing.assert_array_equal(square(x), x * x)
        assert only(square).status == "unverified" and only(square).chosen == "plain"
    assert not square.verified and "proves nothing" in square.report()
    with pytest.warns(xla_gym.XlaGymWarning, match=r"result differs in 1 of 3 elements, most at \[2\]: 8.0"):
        np.testing.assert_array_equal(square(jnp.arange(3.0)), [0, 1, 4])
    np.testing.assert_array_equal(square(jnp.arange(3.0)), [0, 1, 4])
    assert only(square).status == "plain"


def test_every_result_has_to_prove_something_and_flags_need_not(programs):
    def several(x, y, done):
        return x * 2, {"y": y + 0}, done & True

    jitted = xla_gym.jit(several)
    one, none, done = jnp.arange(3.0), jnp.zeros(3), jnp.asarray(False)
    close(several(one, none, done), jitted(one, none, done))
    assert only(jitted).status == "unverified" and only(jitted).reason.startswith("result[1]['y']: zero")
    close(several(one, none, done), jitted(one, none, done))
    assert only(jitted).checks == 1, "nothing new was to be learnt"
    close(several(none, one, done), jitted(none, one, done))
    assert jitted.verified and only(jitted).checks == 2 and only(jitted).chosen == "optimised"


def test_unverified_calls_donate_like_others(programs):
    step, plain = xla_gym.jit(lambda x, y: x + y, donate_argnums=0), jax.jit(lambda x, y: x + y)
    for start in (jnp.zeros(3), jnp.zeros(3), jnp.arange(3.0), jnp.arange(3.0)):
        given = jnp.copy(start)
        close(plain(start, start), step(given, start))
        assert given.is_deleted()
    assert step.verified


def test_measuring_what_is_rounding_uses_up_no_argument(programs, monkeypatch):
    ran = []

    def check(plain, optimised, rerun):
        ran.extend(jax.tree.map(np.asarray, rerun(seed)) for seed in range(4))
        return checked(plain, optimised, rerun)

    checked = integration.check
    monkeypatch.setattr(integration, "check", check)
    step = xla_gym.jit(lambda x, n: (x * 2, n + 1), donate_argnums=(0, 1))
    x, n = jnp.arange(1.0, 4.0), jnp.int32(1)
    ours = step(x, n)
    assert x.is_deleted() and n.is_deleted() and step.verified
    assert len(ran) == 4 and all(moved[1] == 2 for moved in ran)
    off = np.abs(ran[0][0] / np.asarray(ours[0]) - 1)
    assert (0 < off).all() and (off < 2e-7).all()


def test_somebody_is_told_after_many_calls_without_proof(programs):
    def constant(x):
        return x * 2, jnp.ones(3)

    jitted = xla_gym.jit(constant)
    with pytest.warns(xla_gym.XlaGymWarning, match=r"constant .* after 100 calls: result\[1\]") as caught:
        for _ in range(150):
            jitted(jnp.arange(3.0))
    assert len(caught) == 1 and "unproven=True" in str(caught[0].message)
    trusting = xla_gym.jit(constant, unproven=True)
    trusting(jnp.zeros(3))
    assert not trusting.verified, "no result at all proved anything"
    trusting(jnp.arange(3.0))
    assert trusting.verified


def rare(x):
    """The same as ``x + 1`` for what is small."""
    return jnp.where(x > 100, x + 2, x + 1)


@pytest.mark.parametrize("donate", [None, 0])
def test_a_later_check_finds_what_the_first_could_not(monkeypatch, donate):
    changed(monkeypatch, (rare, jnp.ones(3)))

    def more(x):
        return x + 1

    jitted = xla_gym.jit(more, recheck=0.25, donate_argnums=donate)
    for _ in range(3):
        np.testing.assert_array_equal(jitted(jnp.arange(3.0)), [1, 2, 3])
    assert jitted.verified and only(jitted).checks == 1
    words = r"more runs as plain jax.jit .*: result differs in 1 of 3 elements, most at \[2\]: 202.0 "
    with pytest.warns(xla_gym.XlaGymWarning, match=words):
        np.testing.assert_array_equal(jitted(jnp.array([0.0, 100.0, 200.0])), [1, 101, 201])
    np.testing.assert_array_equal(jitted(jnp.array([0.0, 100.0, 200.0])), [1, 101, 201])
    assert not jitted.verified and only(jitted).status == "plain"


def test_later_checks_come_by_the_count_of_calls(programs):
    x = jnp.arange(3.0)
    for share, checks in [(0, 1), (0.5, 6), (1, 10), (1e-3, 1)]:
        jitted = xla_gym.jit(lambda x: x * 2, recheck=share)
        for _ in range(10):
            jitted(x)
        assert only(jitted).checks == checks
    with pytest.raises(ValueError, match="recheck"):
        xla_gym.jit(lambda x: x, recheck=2)


def test_a_program_that_uses_up_other_arguments_is_refused(programs, monkeypatch):
    def greedy(lowered, hlo):
        return jax.jit(lambda x: x + x, donate_argnums=0).lower(jnp.arange(3.0))

    monkeypatch.setattr(integration, "replaced", greedy)
    x = jnp.arange(3.0)
    with pytest.warns(xla_gym.XlaGymWarning, match="donates other arguments"):
        xla_gym.jit(lambda x: x + x)(x)
    assert not x.is_deleted()


def test_an_optimiser_that_fails_leaves_the_plain_function(monkeypatch):
    def broken(program: bytes, settings: object) -> tuple[dict, bytes]:
        raise xla_gym.CompilerError("no engine today")

    monkeypatch.setattr(integration, "_optimize", broken)
    jitted = xla_gym.jit(lambda x: x + 1)
    with pytest.warns(xla_gym.XlaGymWarning, match="CompilerError: no engine today"):
        close(jnp.float32(2.0), jitted(jnp.float32(1.0)))
    assert "no engine today" in jitted.report()


def test_another_version_of_jax_falls_back_and_is_named(programs, monkeypatch):
    def renamed(lowered, module):
        raise AttributeError("_hlo")

    monkeypatch.setattr(_jax_programs, "with_module", renamed)
    jitted = xla_gym.jit(lambda x: x + 1)
    with pytest.warns(xla_gym.XlaGymWarning, match=rf"jax {jax.__version__}\): .* elsewhere \(_hlo\)"):
        close(jnp.float32(2.0), jitted(jnp.float32(1.0)))


def test_another_platform_falls_back():
    device = Mock(platform="gpu")
    compiled = Mock(input_shardings=[Mock(device_set={device})], output_shardings=[])
    with pytest.raises(integration.Refused, match="it runs on gpu"):
        integration.refuse_devices(compiled)


def test_errors_of_the_function_are_its_own(programs):
    def bad(x):
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        xla_gym.jit(bad)(1.0)
    with pytest.raises(TypeError, match="abstract array"):
        xla_gym.jit(lambda x: x)("text")
    with pytest.raises(ValueError, match="hash"):
        xla_gym.jit(lambda x, y: x, static_argnums=1)(1.0, [2])
    with pytest.raises(ValueError, match="nothing to search for"):
        xla_gym.jit(bad, recipe={}, budget=3)


def test_several_devices_fall_back(python):
    said = python(
        """
import warnings, jax, jax.numpy as jnp, xla_gym
from jax.sharding import Mesh, NamedSharding, PartitionSpec
mesh = Mesh(jax.devices(), ("i",))
x = jax.device_put(jnp.arange(4.0), NamedSharding(mesh, PartitionSpec("i")))
f = xla_gym.jit(lambda x: x * 2)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    print(f(x).tolist(), [str(w.message) for w in caught])
""",
        XLA_FLAGS="--xla_force_host_platform_device_count=2",
    )
    assert "[0.0, 2.0, 4.0, 6.0]" in said and "it runs on 2 devices" in said


def test_compile_ahead_of_time(programs):
    params, batch = state()
    shapes = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype), (params, batch))
    step = xla_gym.jax.compile(train, *shapes, kwargs={"rate": 0.5}, donate_argnums=0)
    assert step.stats.verify is None and step.stats.chosen == "plain"
    expected = jax.jit(train)(params, batch, rate=0.5)
    close(expected, step(params, batch, rate=0.5))
    assert step.stats.chosen == "optimised" and len(programs) == 1
    assert step.stats.compile_plain > 0 and step.stats.compile_optimised > 0
    with pytest.raises(TypeError, match="another signature"):
        step(*state(rows=4), rate=0.5)


def test_methods_and_decorators(programs):
    class Model:
        @xla_gym.jit(static_argnums=0)
        def double(self, x):
            """Twice as much."""
            return 2 * x

    close(jnp.float32(6.0), Model().double(jnp.float32(3.0)))
    assert Model.double.__doc__ == "Twice as much." and only(Model.double).chosen == "optimised"


def test_benchmarks_compare_in_turn_and_have_a_control(programs):
    params, batch = state()
    step = xla_gym.jit(train, donate_argnums=0, rounds=3)
    timing = step.benchmark(params, batch, rounds=4)
    assert timing.plain.count == 4 and timing.plain.lower_quartile <= timing.plain.upper_quartile
    assert timing.interval[0] <= timing.speedup <= timing.interval[1]
    assert timing.control_interval[0] <= timing.control <= timing.control_interval[1]
    assert not params["out"].is_deleted(), "copies were donated"
    compiling = step.compiled(params, batch).benchmark_compile(rounds=2)
    assert compiling.plain.median > 1e-3, "nothing that JAX remembered"


def test_noise_is_called_noise():
    def series(values):
        values = iter(values)
        return lambda: next(values)

    steady = np.tile([1.0, 1.01, 0.99], 10)
    faster = integration.compare([series(steady), series(steady / 2), series(steady)], 30)
    assert faster.speedup == pytest.approx(2) and not faster.within_noise
    same = integration.compare([series(steady), series(steady[::-1]), series(steady)], 30)
    assert same.within_noise
    # Half a percent in every round, where a second plain program is off by two.
    shaky = integration.compare([series(steady), series(steady / 1.005), series(steady / 1.02)], 30)
    assert shaky.interval[0] <= 1.005 <= shaky.interval[1] and shaky.within_noise


def test_slower_programs_are_not_used(programs, monkeypatch):
    once = integration.Series(3, 1.0, 1.0, 1.0)
    slow = integration.Comparison(once, once, 0.5, (0.4, 0.6), 1.0, (0.99, 1.01), False)
    monkeypatch.setattr(integration, "compare", lambda measure, rounds: slow)
    jitted = xla_gym.jit(lambda x: x + 1, rounds=3)
    with pytest.warns(xla_gym.XlaGymWarning, match="slower here"):
        close(jnp.float32(2.0), jitted(jnp.float32(1.0)))
    assert only(jitted).timing is slow


def test_without_jax_the_package_still_imports(python):
    said = python(
        """
import sys
sys.modules["jax"] = None
import xla_gym
try:
    xla_gym.jit
except ImportError as error:
    print(error)
"""
    )
    assert "pip install 'xla-gym[jax]'" in said


def test_a_search_and_its_recipe(tmp_path):
    params, batch = state()
    step = xla_gym.jit(train, budget=60, seed=1)
    expected = jax.jit(train)(params, batch)
    close(expected, step(params, batch))
    (compiled,) = (step.compiled(params, batch),)
    assert compiled.recipe["version"] == 2
    file = tmp_path / "recipe.json"
    file.write_text(json.dumps(compiled.recipe))
    again = xla_gym.jit(train, recipe=file)
    close(expected, again(params, batch))
    with pytest.warns(xla_gym.XlaGymWarning, match="RecipeMismatch") as caught:
        other, rows = state(rows=4)
        close(jax.jit(train)(other, rows), again(other, rows))
    assert len(caught) == 1
    forced = xla_gym.jit(train, recipe=file, force=True)
    close(jax.jit(train)(other, rows), forced(other, rows))


def test_a_recipe_of_another_program_falls_back(monkeypatch):
    class RecipeMismatch(xla_gym.XlaGymError):
        pass

    def refuses(recipe, program, *, force=False):
        raise RecipeMismatch("made for another program")

    monkeypatch.setattr(xla_gym, "apply_recipe", refuses, raising=False)
    jitted = xla_gym.jit(lambda x: x + 1, recipe={"passes": ["dce"], "disabled_passes": []})
    with pytest.warns(xla_gym.XlaGymWarning, match="RecipeMismatch: made for another program") as caught:
        for _ in range(3):
            close(jnp.float32(2.0), jitted(jnp.float32(1.0)))
    assert len(caught) == 1


def test_a_recipe_that_nobody_proved_is_used_by_request_alone(monkeypatch):
    x = jnp.arange(3.0)
    program = xla_gym.data.from_jax(lambda x: x + 1, x).content
    monkeypatch.setattr(xla_gym, "apply_recipe", lambda recipe, given, force: program)
    recipe = {"passes": ["dce"], "disabled_passes": []}
    recipe["evidence"] = {"outputs": {"verdict": "not-comparable"}}
    with pytest.warns(xla_gym.XlaGymWarning, match=r"not proven \(not-comparable\); unproven=True"):
        refused = xla_gym.jit(lambda x: x + 1, recipe=recipe)
        close(x + 1, refused(x))
    used = xla_gym.jit(lambda x: x + 1, recipe=recipe, unproven=True)
    close(x + 1, used(x))
    assert only(refused).status == "plain" and used.verified
