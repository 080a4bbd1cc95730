"""Which results of two programs are the same, and which of them prove that the programs are."""

from __future__ import annotations

import numpy as np
import pytest

jax = pytest.importorskip("jax", reason="the integration of JAX needs jax")

import jax.numpy as jnp  # noqa: E402
import ml_dtypes  # noqa: E402

from xla_gym._jax_programs import Refused  # noqa: E402
from xla_gym._jax_results import check, is_flag, moved, tells  # noqa: E402

LUCK = np.random.default_rng(0)


def compared(one, other, rerun=None):
    """How two results compare, of a program whose results no rounding moves unless somebody says so."""
    return check(one, other, lambda seed: one if rerun is None else rerun(seed))


@pytest.mark.parametrize(
    ("values", "told"),
    [
        (np.zeros(3, np.float32), False),
        (np.full(3, 2.5, np.float32), False),
        (np.full(3, np.nan), False),
        (np.array([np.nan, np.inf, -np.inf]), False),
        (np.array([np.nan, 1.0, 1.0]), False),
        (np.array([np.nan, 1.0, 2.0]), True),
        (np.array([1.0, 1.0, 1.5], ml_dtypes.bfloat16), True),
        (np.array([1, 2], ml_dtypes.float8_e4m3fn), True),
        (np.float32(0.0), False),
        (np.float32(np.inf), False),
        (np.float32(0.1), True),
        (np.zeros(2, np.complex64), False),
        (np.array([1 + 1j, 1 - 1j], np.complex64), True),
        (np.zeros(4, np.int32), False),
        (np.full(4, 7, np.uint8), False),
        (np.array([0, 0, 1]), True),
        (np.array([True, True]), False),
        (np.array([True, False]), True),
        (np.int32(0), False),
        (np.int32(3), True),
        (np.zeros((0, 3), np.float32), True),
    ],
)
def test_what_tells_programs_apart(values, told):
    assert tells(np.asarray(values)) is told


def test_a_single_integer_is_a_flag():
    assert is_flag(np.asarray(False)) and is_flag(np.asarray([3]))
    assert not is_flag(np.asarray(0.0)) and not is_flag(np.zeros(2, np.int8))


@pytest.mark.parametrize(
    "dtype", [np.int8, np.uint8, np.int16, np.int32, np.uint32, np.int64, np.uint64, ml_dtypes.int4, bool]
)
def test_integers_agree_to_the_lowest_bit(dtype):
    largest = 1 if dtype is bool else int(ml_dtypes.iinfo(dtype).max)
    one, other = np.array([0, largest], dtype), np.array([0, largest - 1], dtype)
    assert compared(one, one.copy()) == (0.0, [])
    with pytest.raises(Refused, match=r"result differs in 1 of 2 elements, most at \[1\]"):
        compared(one, other)


@pytest.mark.parametrize(
    ("dtype", "within", "beyond"),
    [
        (np.float64, 1e-12, 1e-11),
        (np.float32, 5e-6, 1e-5),
        (np.float16, 4e-3, 1e-2),
        (ml_dtypes.bfloat16, 0.02, 0.05),
        (ml_dtypes.float8_e4m3fn, 0.1, 0.5),
        (ml_dtypes.float8_e5m2, 0.25, 0.6),
    ],
)
def test_floats_agree_by_the_digits_of_their_format(dtype, within, beyond):
    values = np.array([1.0, -2.0, 0.25, 8.0])
    one = values.astype(dtype)
    assert 0 < compared(one, (values * (1 + within)).astype(dtype)).difference <= 1
    with pytest.raises(Refused, match=r"times what is rounding"):
        compared(one, (values * (1 + beyond)).astype(dtype))
    # The bits of neighbours are close, and so are those of 1 and 2 in few bits.
    with pytest.raises(Refused):
        compared(one, (values * 4).astype(dtype))


@pytest.mark.parametrize("mask", [-1e9, np.finfo(np.float32).min, 1e30])
@pytest.mark.parametrize("noisy", [False, True])
def test_a_large_element_hides_nothing(mask, noisy):
    one = LUCK.normal(size=1000).astype(np.float32)
    one[::3] = mask

    def rerun(seed):
        return np.where(one == np.float32(mask), one, one * np.float32(1 + 1e-7)) if noisy else one

    other = one.copy()
    other[1] *= np.float32(1 - 1e-6)
    assert compared(one, other, rerun).difference < 1
    other[1] = -one[1]
    with pytest.raises(Refused, match=r"1 of 1000 elements, most at \[1\]"):
        compared(one, other, rerun)
    zero = np.array([0, mask], np.float32)
    with pytest.raises(Refused, match=r"0\.001 instead of 0\.0"):
        compared(zero, np.array([1e-3, mask], np.float32))


def test_what_is_rounding_is_measured():
    # A sum of which nothing is left but rounding: its size says nothing about what it may differ by.
    one = np.array([1.0, 3e-8, -2e-8, 5e-8], np.float32)
    other = np.array([1.0, -3e-8, 1e-8, 9e-8], np.float32)
    with pytest.raises(Refused):
        compared(one, other, lambda seed: one * np.float32(1 + 1e-7))
    checked = compared(one, other, lambda seed: one + np.float32(6e-8 * (2 * (seed % 2) - 1)))
    assert 0 < checked.difference <= 1 and checked.silent == []


def test_noise_of_one_element_is_not_that_of_others():
    one = LUCK.normal(size=100).astype(np.float32)
    jumps = one.copy()
    jumps[7] += 1  # As where a comparison falls the other way.
    other = one.copy()
    other[7] += 1
    assert compared(one, other, lambda seed: jumps).difference < 1
    other[8:20] += 1e-3
    with pytest.raises(Refused, match=r"12 of 100 elements"):
        compared(one, other, lambda seed: jumps)


def test_as_many_elements_may_jump_as_do_by_noise_alone():
    # Signs of gradients that are nothing but rounding, say: others flip in every run.
    one = LUCK.normal(size=1000).astype(np.float32)

    def flipped(indices, by=0.5):
        other = one.copy()
        other[list(indices)] += by
        return other

    def rerun(seed):
        return flipped(range(10 * seed, 10 * seed + 5))

    assert compared(one, flipped(range(500, 510)), rerun).difference <= 1
    with pytest.raises(Refused, match="300 of 1000"):
        compared(one, flipped(range(500, 800)), rerun)
    with pytest.raises(Refused, match="10 of 1000"):
        compared(one, flipped(range(500, 510), by=5), rerun)


def test_noise_that_drowns_a_result_leaves_it_unproven():
    one = LUCK.normal(size=100).astype(np.float32)
    assert compared(one, -one, lambda seed: -one).silent == ["result"]


def test_numbers_that_are_none_stand_in_the_same_places():
    one = np.array([1.0, np.nan, np.inf, -np.inf, 2.0])
    assert compared(one, one.copy()).difference == 0
    for index, value in [(0, np.nan), (1, 1.0), (2, -np.inf), (3, np.nan), (4, np.inf), (2, 3.0)]:
        other = one.copy()
        other[index] = value
        with pytest.raises(Refused, match=rf"1 of 5 elements, most at \[{index}\].*not finite elsewhere"):
            compared(one, other)


def test_complex_numbers_agree_by_parts():
    one = np.array([1e6 + 1e-3j, 2 + 2j, np.nan + 1j], np.complex64)
    assert compared(one, one.copy()).difference == 0
    for index, value in [(0, 1e6 + 2e-3j), (1, 2 - 2j), (2, 1 + np.nan * 1j)]:
        other = one.copy()
        other[index] = value
        with pytest.raises(Refused, match=rf"1 of 3 elements, most at \[{index}\]"):
            compared(one, other)


def test_trees_shapes_and_types_are_part_of_a_result():
    weak, strong = jax.jit(lambda x: x + 1)(1.0), jnp.float32(2.0)
    for one, other, words in [
        ({"a": strong}, [strong], "instead of PyTreeDef"),
        (np.zeros(2), np.zeros(3), r"float64\(3,\) instead of float64\(2,\)"),
        (np.zeros(2), np.zeros(2, np.float32), r"float32\(2,\) instead of float64\(2,\)"),
        (strong, weak, r"weak float32\(\) instead of float32\(\)"),
    ]:
        with pytest.raises(Refused, match=words):
            compared(one, other)


def test_silent_results_are_named():
    results = {"loss": np.float32(np.nan), "step": np.int32(3), "none": np.zeros((0,)), "mask": np.ones(4)}
    assert compared(results, results).silent == ["result['loss']", "result['mask']"]


def test_arguments_are_moved_by_one_unit_in_the_last_place():
    weak = jax.jit(lambda x: x + 1)(1.0)
    arguments = {
        "f32": jnp.array([1.0, 0.0, np.inf, np.nan, 3e38]),
        "bf16": jnp.array([1.0, -2.0], jnp.bfloat16),
        "f8": np.array([448, 1], ml_dtypes.float8_e4m3fn),
        "complex": np.array([1 + 2j], np.complex64),
        "python": 1.5,
        "weak": weak,
        "int": 3,
        "flag": True,
        "ids": jnp.arange(3),
        "key": jax.random.key(0),
    }
    one, other = moved(arguments, 0), moved(arguments, 0)
    assert jax.tree.structure(one) == jax.tree.structure(arguments)
    for name in ("int", "flag", "ids", "key"):
        assert one[name] is arguments[name]
    f32 = np.asarray(one["f32"])
    assert abs(f32[0] - 1) in (np.float32(2**-23), np.float32(2**-24))
    np.testing.assert_array_equal(f32[1:4], [0.0, np.inf, np.nan])
    assert np.isfinite(f32[4]) and f32[4] != np.float32(3e38)
    assert one["f8"].astype(float)[0] in (448, 416) and one["f8"].dtype == ml_dtypes.float8_e4m3fn
    assert one["bf16"].dtype == jnp.bfloat16 and (one["bf16"] != arguments["bf16"]).all()
    assert type(one["python"]) is float and 0 < abs(one["python"] - 1.5) < 2e-7
    assert one["complex"][0].real != 1 and one["complex"][0].imag != 2
    np.testing.assert_array_equal(f32, np.asarray(other["f32"])), "the same luck for the same seed"
