"""Whether two programs gave the same results but for rounding, and whether that proves anything.

Integers and booleans must agree bit for bit. Of a float, three quarters of the digits must agree. Where
fewer do, the plain program runs again, also compiled in another way, on arguments of which every float is
moved by one unit in the last place: what that moves an element, or elements of about its size, is noise,
and a few times the noise is rounding. A few elements may jump farther (a comparison falls the other way),
if about as many did by noise alone. No element's size counts for one that is much smaller: a mask of -1e9
hides nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np

from xla_gym._jax_programs import Refused

# How many times the noise is rounding, and of how many runs the noise is the largest.
_TIMES, _RUNS = 8, 4
# Which share of elements may differ by so many times more.
_RARE, _TAIL = 1e-3, 4
# How many elements may jump for each that noise alone lets jump, and how much farther.
_MORE, _FARTHER = 4, 2
# Powers of two within which sizes are alike: for noise, and where there is none.
_OCTAVES, _GAP = 8, 10


class Checked(NamedTuple):
    """What a comparison found."""

    difference: float
    """The largest difference, in units of what is rounding: up to 1."""
    silent: list[str]
    """Results that prove nothing, however well they agree."""


def outputs(results: Any) -> dict[str, np.ndarray]:
    """Results by name, as arrays of their own types; random keys as their numbers."""

    def plain(leaf: Any) -> np.ndarray:
        keys = jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key)
        return np.asarray(jax.random.key_data(leaf) if keys else leaf)

    named = jax.tree_util.tree_leaves_with_path(results)
    return {f"result{jax.tree_util.keystr(path)}": plain(leaf) for path, leaf in named}


def tells(values: np.ndarray) -> bool:
    """Whether a result can tell programs apart: some finite number other than the rest of them.

    A single number must not be 0. Zeros, constants and NaN are what programs that have little in common
    agree on. Where there is no element, there is nothing to tell.
    """
    if _is_float(values):
        parts = _decoded(values)
        finite = parts[np.isfinite(parts)]
    else:
        finite = values.ravel()
    if values.size == 1:
        return bool((finite != 0).any())
    return values.size == 0 or (finite.size > 0 and bool((finite != finite[0]).any()))


def is_flag(values: np.ndarray) -> bool:
    """Whether a result is one integer or boolean: nobody waits for a flag that may never be set."""
    return values.size == 1 and not _is_float(values)


def check(plain: Any, optimised: Any, rerun: Callable[[int], Any]) -> Checked:
    """Compares results; refuses what is no rounding.

    ``rerun`` runs the plain program on arguments that are moved a little, by a seed, in several ways.
    """
    _same_types(plain, optimised)
    reruns: list[dict[str, np.ndarray]] = []

    def noise(name: str, values: np.ndarray) -> np.ndarray:
        if not reruns:
            reruns.extend(outputs(rerun(seed)) for seed in range(_RUNS))
        shift = np.max([np.abs(_decoded(run[name]) - values) for run in reruns], axis=0)
        return np.where(np.isfinite(shift), shift, 0.0)

    worst, silent, others = 0.0, [], outputs(optimised)
    for name, values in outputs(plain).items():
        if _is_float(values):
            with np.errstate(all="ignore"):
                difference, heard = _check_floats(name, values, others[name], noise)
            worst = max(worst, difference)
        else:
            _check_bits(name, values, others[name])
            heard = True
        if values.size and not (heard and tells(values)):
            silent.append(name)
    return Checked(worst, silent)


def moved(arguments: Any, seed: int) -> Any:
    """The arguments with every float moved by one unit in the last place, up or down by luck."""
    generator = np.random.default_rng(seed)
    return jax.tree_util.tree_map(lambda leaf: _moved(leaf, generator), arguments)


def _moved(leaf: Any, generator: np.random.Generator) -> Any:
    if isinstance(leaf, bool | int):
        return leaf
    if isinstance(leaf, float | complex) and not isinstance(leaf, np.generic):
        narrow = jax.dtypes.canonicalize_dtype(np.complex128 if isinstance(leaf, complex) else np.float64)
        return type(leaf)(_moved(np.asarray(leaf, narrow), generator)[()])
    if jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        return leaf
    values = np.asarray(leaf)
    if not _is_float(values):
        return leaf
    if np.iscomplexobj(values):
        real = np.ascontiguousarray(values).reshape(-1).view(values.real.dtype)
        changed = _stepped(real, generator).view(values.dtype).reshape(values.shape)
    else:
        changed = _stepped(values, generator)
    return jax.device_put(changed, leaf.sharding) if isinstance(leaf, jax.Array) else changed


def _stepped(values: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    limits = jax.numpy.finfo(values.dtype)
    up = generator.integers(0, 2, values.shape, dtype=np.int8).astype(bool)
    toward = np.where(up, np.asarray(limits.max, values.dtype), np.asarray(limits.min, values.dtype))
    # Zeros stay: they are more often meant than computed, and their neighbours are no rounding of them.
    return np.where(np.isfinite(values) & (values != 0), np.nextafter(values, toward), values)


def _is_float(values: np.ndarray) -> bool:
    return jax.numpy.issubdtype(values.dtype, jax.numpy.inexact)


def _decoded(values: np.ndarray) -> np.ndarray:
    """Floats of any format as doubles, in one row; of complex numbers both parts."""
    if np.iscomplexobj(values):
        return np.concatenate([_decoded(values.real), _decoded(values.imag)])
    return values.astype(np.float64).ravel()


def _same_types(plain: Any, optimised: Any) -> None:
    trees: list[Any] = [jax.tree_util.tree_structure(results) for results in (plain, optimised)]
    if trees[0] != trees[1]:
        raise Refused(f"its results are {trees[1]} instead of {trees[0]}")
    named = jax.tree_util.tree_leaves_with_path(plain)
    for (path, one), other in zip(named, jax.tree_util.tree_leaves(optimised), strict=True):
        types = [
            f"{'weak ' if getattr(x, 'weak_type', False) else ''}{x.dtype}{x.shape}" for x in (other, one)
        ]
        if types[0] != types[1]:
            raise Refused(f"result{jax.tree_util.keystr(path)} is {' instead of '.join(types)}")


def _check_bits(name: str, one: np.ndarray, other: np.ndarray) -> None:
    if one.tobytes() != other.tobytes():
        differs = one.ravel() != other.ravel()
        raise Refused(_sentence(name, one, other, differs, differs))


def _check_floats(
    name: str, one: np.ndarray, other: np.ndarray, noise: Callable[[str, np.ndarray], np.ndarray]
) -> tuple[float, bool]:
    """The largest difference in units of what is rounding, and whether rounding left anything to see."""
    left, right = _decoded(one), _decoded(other)
    finite = np.isfinite(left)
    elsewhere = ~((left == right) | (np.isnan(left) & np.isnan(right))) & ~(finite & np.isfinite(right))
    if elsewhere.any():
        raise Refused(f"{_sentence(name, one, other, elsewhere, elsewhere)}: not finite elsewhere")
    share = min(0.5, float(jax.numpy.finfo(one.dtype).eps) ** 0.75)
    allowed = share * np.abs(left)
    distance = np.where(finite, np.abs(left - right), 0.0)
    if (distance > allowed).any():
        allowed = _allowed(np.where(finite, left, 0.0), distance, noise(name, left), share)
    times = np.divide(distance, allowed, out=np.zeros_like(distance), where=distance > 0)
    if (times > 1).any():
        what = _sentence(name, one, other, distance > allowed, times)
        raise Refused(f"{what}, {times.max():.2g} times what is rounding")
    return float(times.max(initial=0.0)), bool((np.abs(left)[finite] > allowed[finite]).any())


def _allowed(values: np.ndarray, distance: np.ndarray, noise: np.ndarray, share: float) -> np.ndarray:
    """How much each element may differ, given how much all do."""
    size = np.abs(values)
    nonzero = size > 0
    exponent = np.frexp(size)[1]
    if not noise.any():
        # Nothing is known of rounding, for want of arguments that are floats. What is small among larger
        # numbers without a gap between may be their difference.
        present = np.unique(exponent[nonzero])
        largest = np.zeros_like(size)
        for cluster in np.split(present, np.flatnonzero(np.diff(present) > _GAP) + 1):
            if cluster.size:
                members = nonzero & (exponent >= cluster[0]) & (exponent <= cluster[-1])
                largest[members] = size[members].max()
        return share * largest
    # Among zeros, what is usual is that of the smallest numbers beside them.
    group = np.where(nonzero, exponent // _OCTAVES, (exponent[nonzero] // _OCTAVES).min(initial=2**15))
    usual: dict[int, float] = {}
    for key in np.unique(group).tolist():
        members = group == key
        some = members & nonzero
        usual[key] = float(np.quantile(noise[some if some.any() else members], 0.9))
    near = np.zeros_like(size)
    for key in usual:
        # What is larger may differ by as much, and the few that are small by luck have the noise of the
        # next larger.
        near[group == key] = max(value for other, value in usual.items() if other <= key + 1)
    allowed = share * size + _TIMES * np.maximum(noise, near)
    jumps, beyond = noise > share * size + _TIMES * near, distance > allowed
    for key in usual:
        far, known = beyond & (group == key), jumps & (group <= key + 1)
        if far.sum() <= _MORE * known.sum():
            allowed[far] = np.maximum(allowed[far], _FARTHER * noise[known].max(initial=0.0))
    # Rounding has long tails, and so few runs do not show their ends.
    tail = distance > allowed
    if tail.sum() <= max(1, _RARE * size.size):
        allowed[tail] *= _TAIL
    return allowed


def _sentence(name: str, one: np.ndarray, other: np.ndarray, differs: np.ndarray, size: np.ndarray) -> str:
    """How much a result differs, and where most."""
    worst = int(np.argmax(np.where(differs, size, 0))) % max(1, one.size)
    at = [int(i) for i in np.unravel_index(worst, one.shape)]
    count = int(np.any(differs.reshape(-1, one.size), axis=0).sum())
    where = f" at {at}" if at else ""
    return (
        f"{name} differs in {count} of {one.size} elements, most{where}: "
        f"{other.ravel()[worst]!s} instead of {one.ravel()[worst]!s}"
    )
