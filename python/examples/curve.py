"""A small line plot as SVG, so that the examples need no plotting library."""

from __future__ import annotations

from html import escape
from math import ceil, floor, log10
from statistics import fmean

WIDTH, HEIGHT = 640, 360
LEFT, RIGHT, TOP, BOTTOM = 64, 20, 40, 48
COLOURS = ["#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#8c564b", "#e377c2"]

Points = list[tuple[float, float]]


def smooth(points: Points, window: int) -> Points:
    """Each value replaced by the mean of the last ``window``; begins where so many are there."""
    return [
        (points[end - 1][0], fmean(value for _, value in points[end - window : end]))
        for end in range(window, len(points) + 1)
    ]


def ticks(low: float, high: float) -> list[float]:
    """Multiples of 1, 2 or 5 times a power of ten from ``low`` to ``high``, three to eight."""
    power = 10.0 ** floor(log10((high - low) / 3))
    step = max(factor * power for factor in (1, 2, 5) if factor * power <= (high - low) / 3)
    return [number * step for number in range(ceil(low / step), floor(high / step) + 1)]


def plot(title: str, curves: dict[str, Points], window: int = 1) -> str:
    """An SVG of the curves, each smoothed over ``window`` points."""
    drawn = {name: smooth(points, window) for name, points in curves.items()}
    values = [point for points in drawn.values() for point in points]
    if not values:
        raise ValueError(f"no curve has {window} points")
    right = max(x for x, _ in values)
    low, high = min(y for _, y in values), max(y for _, y in values)
    margin = max((high - low) * 0.05, 1e-6)
    low, high = low - margin, high + margin

    def x_of(x: float) -> float:
        return LEFT + x / right * (WIDTH - LEFT - RIGHT)

    def y_of(y: float) -> float:
        return TOP + (high - y) / (high - low) * (HEIGHT - TOP - BOTTOM)

    bottom = HEIGHT - BOTTOM
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'width="{WIDTH}" height="{HEIGHT}" font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        f'<text x="{WIDTH / 2}" y="22" text-anchor="middle" font-size="14">{escape(title)}</text>',
    ]
    for y in ticks(low, high):
        parts.append(
            f'<path d="M{LEFT} {y_of(y):.1f}H{WIDTH - RIGHT}" stroke="#ddd"/>'
            f'<text x="{LEFT - 6}" y="{y_of(y) + 4:.1f}" text-anchor="end">{y:g}</text>'
        )
    for x in ticks(0, right):
        parts.append(f'<text x="{x_of(x):.1f}" y="{bottom + 16}" text-anchor="middle">{x:g}</text>')
    parts.append(f'<path d="M{LEFT} {TOP}V{bottom}H{WIDTH - RIGHT}" fill="none" stroke="black"/>')
    parts.append(
        f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 10}" text-anchor="middle">'
        "environment steps</text>"
        f'<text transform="translate(16 {(TOP + bottom) / 2}) rotate(-90)" text-anchor="middle">'
        "episode return</text>"
    )
    for number, (name, points) in enumerate(drawn.items()):
        colour = COLOURS[number % len(COLOURS)]
        path = " ".join(f"{x_of(x):.1f},{y_of(y):.1f}" for x, y in points)
        parts.append(
            f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.5"/>'
            f'<text x="{WIDTH - RIGHT - 60}" y="{bottom - 12 - 16 * number}" fill="{colour}">'
            f"{escape(name)}</text>"
        )
    return "\n".join([*parts, "</svg>", ""])
