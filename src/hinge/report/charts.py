"""Charts as SVG without a plotting library; every mark has a tooltip."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hinge.tables.number_formats import format_number

WIDTH, HEIGHT = 560, 320
LEFT, RIGHT, TOP, BOTTOM = 78, 14, 14, 46


def ticks(low: float, high: float, count: int = 5) -> list[float]:
    """Round numbers that cover a range."""
    if not high > low:
        return [low]
    raw = (high - low) / count
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(m * power for m in (1, 2, 2.5, 5, 10) if m * power >= raw * 0.999)
    first = math.ceil(low / step - 1e-9)
    return [k * step for k in range(first, math.floor(high / step + 1e-9) + 1)]


def log_ticks(low: float, high: float) -> list[float]:
    """Powers of ten in a range, every second or third if there are many; twos and fives between them if they are few."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    step = max(1, math.ceil((last - first) / 6))
    if high < 200 * low:
        fine = [m * 10.0**k for k in range(first, last + 1) for m in (1, 2, 5)]
        return [v for v in fine if low * 0.999 <= v <= high * 1.001]
    return [10.0**k for k in range(first, last + 1, step) if low * 0.999 <= 10.0**k <= high * 1.001]


@dataclass
class Chart:
    """Axes with lines, points and bars.

    Parameters
    ----------
    x, y : (low, high)
        The ranges.
    labels : (str, str)
        What the axes show.
    log : str
        "", "x", "y" or "xy": which axes are logarithmic.
    names : sequence of str, optional
        Names instead of numbers along x.
    """

    x: tuple[float, float]
    y: tuple[float, float]
    labels: tuple[str, str]
    log: str = ""
    names: Sequence[str] | None = None
    height: int = HEIGHT
    marks: list[str] = field(default_factory=list)
    legend: list[tuple[str, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.x, self.y = self._widened(self.x, "x" in self.log), self._widened(self.y, "y" in self.log)

    @staticmethod
    def _widened(span: tuple[float, float], log: bool) -> tuple[float, float]:
        low, high = map(float, span)
        if log:
            low = max(low, 1e-300)
            return (low, high) if high > low else (low / 2, low * 2)
        if not high > low:
            pad = abs(low) * 0.1 or 1.0
            return low - pad, high + pad
        return low, high

    def at_x(self, value: float) -> float:
        return LEFT + self._share(value, self.x, "x" in self.log) * (WIDTH - LEFT - RIGHT)

    def at_y(self, value: float) -> float:
        return self.height - BOTTOM - self._share(value, self.y, "y" in self.log) * (self.height - TOP - BOTTOM)

    @staticmethod
    def _share(value: float, span: tuple[float, float], log: bool) -> float:
        low, high = span
        if log:
            low, high, value = math.log(low), math.log(high), math.log(max(value, 1e-300))
        return min(max((value - low) / (high - low), -0.02), 1.02)

    def line(self, xs: Any, ys: Any, name: str = "", colour: int = 0, *, dots: bool = False, dash: bool = False,
             hover: Sequence[str] | None = None) -> None:  # fmt: skip
        """A line through points, with optional tooltips."""
        points = [(self.at_x(x), self.at_y(y)) for x, y in zip(xs, ys)]
        path = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
        self.marks.append(f'<path class="line s{colour}{" dash" if dash else ""}" d="{path}"/>')
        hover = hover or [f"{name}: {format_number(x)}, {format_number(y)}" for x, y in zip(xs, ys)] if dots else hover
        if hover:
            radius = 3.5 if dots else 6
            kind = f"dot f{colour}" if dots else "ghost"
            self.marks += [
                f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="{radius}" data-t="{html.escape(text)}"/>'
                for (x, y), text in zip(points, hover)
            ]
        if name and (name, colour) not in self.legend:
            self.legend.append((name, colour))

    def band(self, xs: Any, low: Any, high: Any, colour: int = 0) -> None:
        """The area between two lines."""
        up = [f"{self.at_x(x):.1f} {self.at_y(y):.1f}" for x, y in zip(xs, low)]
        down = [f"{self.at_x(x):.1f} {self.at_y(y):.1f}" for x, y in zip(xs, high)][::-1]
        self.marks.append(f'<path class="band f{colour}" d="M{"L".join(up + down)}Z"/>')

    def points(self, xs: Any, ys: Any, colour: int = 0, hover: Sequence[str] | None = None, size: float = 2.6) -> None:
        """Dots: small ones are translucent, large ones solid."""
        kind = "point" if size < 4 else "mark"
        for k, (x, y) in enumerate(zip(xs, ys)):
            text = f' data-t="{html.escape(hover[k])}"' if hover else ""
            self.marks.append(
                f'<circle class="{kind} f{colour}" cx="{self.at_x(x):.1f}" cy="{self.at_y(y):.1f}" r="{size}"{text}/>'
            )

    def whisker(self, x: float, low: float, high: float) -> None:
        """A vertical interval."""
        self.marks.append(f'<path class="whisker" d="M{self.at_x(x):.1f} {self.at_y(low):.1f}V{self.at_y(high):.1f}"/>')

    def bars(self, edges: Any, heights: Any, colour: int = 0, hover: Sequence[str] | None = None) -> None:
        """Vertical bars between edges."""
        base = self.at_y(max(self.y[0], 0.0))
        for k, value in enumerate(heights):
            if not value:
                continue
            left, right, top = self.at_x(edges[k]), self.at_x(edges[k + 1]), self.at_y(value)
            text = f' data-t="{html.escape(hover[k])}"' if hover else ""
            self.marks.append(
                f'<rect class="bar f{colour}" x="{left + 0.5:.1f}" y="{min(top, base):.1f}" '
                f'width="{max(right - left - 1, 0.5):.1f}" height="{abs(base - top):.1f}"{text}/>'
            )

    def svg(self, title: str) -> str:
        """The chart as SVG."""
        parts = [*self._grid(), *self.marks]
        keys = ""
        if len(self.legend) > 1:
            keys = '<div class="legend">' + "".join(
                f'<span><i class="key f{colour}"></i>{html.escape(name)}</span>' for name, colour in self.legend
            ) + "</div>"  # fmt: skip
        return (
            f"<figure><figcaption>{html.escape(title)}</figcaption>{keys}"
            f'<svg viewBox="0 0 {WIDTH} {self.height}" role="img" aria-label="{html.escape(title)}">'
            f"{''.join(parts)}</svg></figure>"
        )

    def _grid(self) -> list[str]:
        out = []
        foot = self.height - BOTTOM
        for value in log_ticks(*self.y) if "y" in self.log else ticks(*self.y):
            y = self.at_y(value)
            out.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
            out.append(
                f'<text class="tick" x="{LEFT - 7}" y="{y + 4:.1f}" text-anchor="end">{format_number(value)}</text>'
            )
        slant = False
        if self.names is not None:
            shown_names = [name for name in self.names if name]
            slant = max(map(len, shown_names), default=0) * len(shown_names) > 62
            for k, name in enumerate(self.names):
                x, shown = self.at_x(k), html.escape(name if len(name) < 16 else name[:14] + "…")
                how = f'text-anchor="{"end" if x + 3 * len(name) > WIDTH else "middle"}"'
                if slant:
                    how = f'transform="rotate(-28 {x:.1f} {foot + 14})" text-anchor="end"'
                out.append(f'<text class="tick" x="{x:.1f}" y="{foot + 15}" {how}>{shown}</text>')
        else:
            for value in log_ticks(*self.x) if "x" in self.log else ticks(*self.x):
                x = self.at_x(value)
                out.append(f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{foot}"/>')
                out.append(
                    f'<text class="tick" x="{x:.1f}" y="{foot + 16}" text-anchor="middle">{format_number(value)}</text>'
                )
        middle = (TOP + foot) / 2
        if not slant:  # slanted tick labels need the space of the axis label
            out.append(
                f'<text class="label" x="{(LEFT + WIDTH - RIGHT) / 2}" y="{self.height - 7}" text-anchor="middle">'
                f"{html.escape(self.labels[0])}</text>"
            )
        out.append(
            f'<text class="label" transform="translate(12 {middle}) rotate(-90)" text-anchor="middle">'
            f"{html.escape(self.labels[1])}</text>"
        )
        return out


def intervals(title: str, rows: Sequence[tuple[str, float, float, float]], unit: str, colour: int = 0) -> str:
    """Horizontal bars from zero with an interval each: (name, value, low, high)."""
    row, left, right = 25, 190, 64
    height = row * len(rows) + 34
    values = [v for r in rows for v in r[1:] if math.isfinite(v)] + [0.0]
    low, high = min(values), max(values)
    if high <= low:
        high = low + 1.0
    if low < 0:
        low -= 0.03 * (high - low)  # space between the intervals and the names

    def at(value: float) -> float:
        return left + (value - low) / (high - low) * (WIDTH - left - right)

    parts = [
        f'<line class="grid" x1="{at(v):.1f}" x2="{at(v):.1f}" y1="4" y2="{height - 26}"/>'
        f'<text class="tick" x="{at(v):.1f}" y="{height - 12}" text-anchor="middle">{format_number(v)}</text>'
        for v in ticks(low, high, 4)
    ]
    for k, (name, value, lower, upper) in enumerate(rows):
        y = 6 + row * k
        shown = html.escape(name if len(name) < 22 else name[:20] + "…")
        sure = math.isfinite(lower) and math.isfinite(upper)
        span = f" ({format_number(lower)} to {format_number(upper)})" if sure else ""
        parts.append(f'<text class="name" x="{left - 8}" y="{y + 14}" text-anchor="end">{shown}</text>')
        parts.append(
            f'<rect class="bar f{colour if value >= 0 else 1}" x="{min(at(value), at(0)):.1f}" y="{y + 2}" rx="2" '
            f'width="{max(abs(at(value) - at(0)), 1):.1f}" height="{row - 8}" '
            f'data-t="{html.escape(f"{name}: {format_number(value)}{span} {unit}")}"/>'
        )
        if sure:
            middle = y + row / 2 - 2
            parts.append(
                f'<path class="whisker" d="M{at(lower):.1f} {middle}H{at(upper):.1f}M{at(lower):.1f} {middle - 4}v8'
                f'M{at(upper):.1f} {middle - 4}v8"/>'
            )
        parts.append(f'<text class="tick" x="{WIDTH - 4}" y="{y + 14}" text-anchor="end">{format_number(value)}</text>')
    return (
        f"<figure><figcaption>{html.escape(title)}</figcaption>"
        f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{html.escape(title)}">{"".join(parts)}</svg></figure>'
    )


def matrix(title: str, counts: np.ndarray, names: Sequence[str]) -> str:
    """A confusion matrix: rows are the truth, columns the predictions."""
    k = len(names)
    cell = min(54, 400 // k)
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    short = [n if len(n) < 14 else n[:12] + "…" for n in names]
    longest = max(map(len, short))
    turned = cell < 8 * longest
    left, top = 120, 30 + (max(22, 5 * longest) if turned else 22)  # rotated names are below "predicted"
    width, height = left + cell * k + (max(20, 6 * longest - cell // 2) if turned else 20), top + cell * k + 12
    parts = [f'<text class="label" x="{left + cell * k / 2}" y="14" text-anchor="middle">predicted</text>',
             f'<text class="label" transform="translate(12 {top + cell * k / 2}) rotate(-90)" text-anchor="middle">'
             "true</text>"]  # fmt: skip
    for i in range(k):
        parts.append(
            f'<text class="name" x="{left - 6}" y="{top + cell * (i + 0.5) + 4}" text-anchor="end">'
            f"{html.escape(short[i])}</text>"
        )
        x = left + cell * (i + 0.5)
        how = f'transform="rotate(-35 {x} {top - 6})" text-anchor="start"' if turned else 'text-anchor="middle"'
        parts.append(f'<text class="name" x="{x}" y="{top - 6}" {how}>{html.escape(short[i])}</text>')
        for j in range(k):
            share, count = shares[i, j], int(counts[i, j])
            hover = f"true {names[i]}, predicted {names[j]}: {count} ({100 * share:.1f} % of the true {names[i]})"
            parts.append(
                f'<rect class="cell f{0 if i == j else 1}" style="fill-opacity:{0.06 + 0.84 * share:.3f}" '
                f'x="{left + cell * j + 1}" y="{top + cell * i + 1}" width="{cell - 2}" height="{cell - 2}" rx="3" '
                f'data-t="{html.escape(hover)}"/>'
            )
            if cell >= 26:
                dark = " on" if share > 0.55 else ""
                parts.append(
                    f'<text class="count{dark}" x="{left + cell * (j + 0.5)}" y="{top + cell * (i + 0.5) + 4}" '
                    f'text-anchor="middle">{count if count < 100_000 else f"{100 * share:.0f} %"}</text>'
                )
    return (
        f"<figure><figcaption>{html.escape(title)}</figcaption>"
        f'<svg class="table" viewBox="0 0 {width} {height}" style="max-width:{width}px" role="img" aria-label="{html.escape(title)}">'
        f"{''.join(parts)}</svg></figure>"
    )
