"""Programs that are run in turn, so that their times can be compared."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Series:
    """A series of measurements, in seconds."""

    count: int
    median: float
    lower_quartile: float
    upper_quartile: float


@dataclass(frozen=True)
class Comparison:
    """Times of the plain and the optimised program, measured in turn."""

    plain: Series
    optimised: Series
    speedup: float
    """Plain over optimised, of the medians."""
    interval: tuple[float, float]
    """Its 95% bootstrap interval."""
    control: float
    """The same with a second plain program for the optimised one: what no change looks like."""
    control_interval: tuple[float, float]
    within_noise: bool
    """Whether the interval holds 1, or the speed-up is no further from 1 than the control's interval."""

    def __str__(self) -> str:
        noise = ", within noise" if self.within_noise else ""
        return (
            f"{1e3 * self.plain.median:.3f} ms plain, {1e3 * self.optimised.median:.3f} ms optimised: "
            f"{self.speedup:.3f} ({self.interval[0]:.3f} to {self.interval[1]:.3f}; control "
            f"{self.control:.3f}, {self.control_interval[0]:.3f} to {self.control_interval[1]:.3f}){noise}"
        )


def compare(measure: Sequence[Callable[[], float]], rounds: int) -> Comparison:
    """Measures plain, optimised and control in turn, in an order that changes."""
    if rounds < 1:
        raise ValueError(f"rounds must be at least 1, not {rounds}")
    luck = np.random.default_rng(0)
    times = np.empty((3, rounds))
    for i in range(rounds):
        for which in luck.permutation(3):
            times[which, i] = measure[which]()
    plain, optimised, control = times

    def ratio(other: np.ndarray) -> tuple[float, tuple[float, float]]:
        # Rounds are drawn whole, because what disturbs one measurement disturbs its neighbours.
        drawn = luck.integers(rounds, size=(2000, rounds))
        ratios = np.median(plain[drawn], axis=1) / np.median(other[drawn], axis=1)
        low, high = np.quantile(ratios, [0.025, 0.975])
        return float(np.median(plain) / np.median(other)), (float(low), float(high))

    speedup, interval = ratio(optimised)
    beside, beside_interval = ratio(control)
    noise = max(abs(np.log(end)) for end in beside_interval)
    within = bool(interval[0] <= 1 <= interval[1] or abs(np.log(speedup)) <= noise)
    return Comparison(_series(plain), _series(optimised), speedup, interval, beside, beside_interval, within)


def _series(times: np.ndarray) -> Series:
    lower, middle, upper = (float(x) for x in np.quantile(times, [0.25, 0.5, 0.75]))
    return Series(len(times), middle, lower, upper)
