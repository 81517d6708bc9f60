"""Trees for people: rules as text, and a drawing."""

from __future__ import annotations

from typing import Any

import numpy as np


def _names(tree: Any, feature_names: Any) -> list[str]:
    if feature_names is not None:
        return list(feature_names)
    if hasattr(tree, "feature_names_in_"):
        return list(tree.feature_names_in_)
    return [f"x{j}" for j in range(tree.n_features_in_)]


def _number(value: float, decimals: int) -> str:
    """With so many decimals; below one, with so many digits that count."""
    if abs(value) < 1 or abs(value) >= 1e15:
        return f"{value:.{max(decimals, 1)}g}"
    text = f"{value:.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _test(tree: Any, node: int, names: list[str], decimals: int, left: bool) -> str:
    """What a row must satisfy to go left (or right) at a node."""
    t = tree.tree_
    j = int(t.feature[node])
    missing = " or missing" if bool(t.missing_left[node]) == left and tree.missing_features_[j] else ""
    if t.set[node] >= 0:
        k = tree._coder.columns.index(j)
        inside = t.categories(node)
        all_names, codes = tree._coder.categories[k], tree._coder.codes[k]
        chosen = all_names[np.isin(codes, inside) == left]
        return f"{names[j]} in {{{', '.join(str(c) for c in chosen)}}}{missing}"
    if np.isinf(t.threshold[node]):
        return f"{names[j]} is {'known' if left else 'missing'}"
    return f"{names[j]} {'<=' if left else '>'} {_number(t.threshold[node], decimals)}{missing}"


def _outcome(tree: Any, node: int, decimals: int) -> str:
    value, count = tree.tree_.value[node], int(tree.tree_.count[node])
    said = str(tree.classes_[np.argmax(value)]) if hasattr(tree, "classes_") else _number(value[0], decimals)
    return f"{said}  ({count} row{'s' if count != 1 else ''})"


def rules(tree: Any, feature_names: Any, decimals: int) -> str:
    """The tree as indented tests and outcomes."""
    names, t = _names(tree, feature_names), tree.tree_
    if t.feature[0] < 0:
        return _outcome(tree, 0, decimals)
    lines: list[str] = []

    def visit(node: int, depth: int) -> None:
        if t.feature[node] < 0:
            lines.append("  " * depth + _outcome(tree, node, decimals))
            return
        for left, child in ((True, int(t.left[node])), (False, int(t.left[node]) + 1)):
            lines.append("  " * depth + _test(tree, node, names, decimals, left))
            visit(child, depth + 1)

    visit(0, 0)
    return "\n".join(lines)


def _positions(t: Any) -> dict[int, tuple[float, int]]:
    """x and depth of every node: leaves side by side, parents above the middle of their children."""
    place: dict[int, tuple[float, int]] = {}
    order = list(t.walk())
    leaves = [node for node, _ in order if t.feature[node] < 0]
    across = {node: float(k) for k, node in enumerate(leaves)}
    for node, depth in reversed(order):
        if t.feature[node] >= 0:
            left = int(t.left[node])
            across[node] = 0.5 * (across[left] + across[left + 1])
        place[node] = (across[node], depth)
    return place


def draw(tree: Any, ax: Any = None, *, feature_names: Any = None, decimals: int = 3, fontsize: float = 8.0) -> Any:
    """Draw the tree with matplotlib: tests in inner nodes, outcomes in leaves, yes to the left."""
    import matplotlib.pyplot as plt

    names, t = _names(tree, feature_names), tree.tree_
    place = _positions(t)
    depth = max(d for _, d in place.values())
    if ax is None:
        leaves = int(np.sum(t.feature < 0))
        _, ax = plt.subplots(figsize=(max(4.0, 1.6 * leaves), 1.2 * (depth + 1)))
    for node, (x, d) in place.items():
        if t.feature[node] >= 0:
            for side, child in (("yes", int(t.left[node])), ("no", int(t.left[node]) + 1)):
                cx, cd = place[child]
                ax.plot([x, cx], [-d, -cd], color="0.6", zorder=1)
                ax.text(0.5 * (x + cx), -0.5 * (d + cd), side, fontsize=0.8 * fontsize, color="0.4", ha="center")
            text, colour = _test(tree, node, names, decimals, True), "white"
        else:
            text, colour = _outcome(tree, node, decimals), "0.93"
        ax.text(x, -d, text, ha="center", va="center", fontsize=fontsize, zorder=2,
                bbox={"boxstyle": "round", "facecolor": colour, "edgecolor": "0.5"})  # fmt: skip
    ax.set_xlim(-0.7, max(x for x, _ in place.values()) + 0.7)
    ax.set_ylim(-depth - 0.5, 0.5)
    ax.set_axis_off()
    return ax
