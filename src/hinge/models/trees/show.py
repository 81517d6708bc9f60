"""Trees as text and as drawings."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn import config_context
from sklearn.utils.validation import check_is_fitted


def export_text(
    decision_tree: Any, *, feature_names: Any = None, class_names: Any = None, max_depth: int = 10, spacing: int = 3,
    decimals: int = 2, show_weights: bool = False,
) -> str:  # fmt: skip
    """A tree as text, in the format of scikit-learn's function of this name; see also the tree's own ``rules``.

    Parameters
    ----------
    decision_tree : fitted tree
        A classifier or regressor of one tree.
    feature_names : list of str, optional
        What to call the columns; ``feature_0``, … by default.
    class_names : list of str, optional
        What to call the classes; their labels by default.
    max_depth : int
        Branches below are only mentioned.
    spacing : int
        The width of an indent.
    decimals : int
        Digits after the point.
    show_weights : bool
        Show how much of every class there is in a leaf.

    Examples
    --------
    >>> import numpy as np, hinge as hg
    >>> tree = hg.DecisionTreeClassifier().fit(np.arange(4.0)[:, None], ["a", "a", "b", "b"])
    >>> print(hg.export_text(tree, feature_names=["size"]))
    |--- size <= 1.50
    |   |--- class: a
    |--- size >  1.50
    |   |--- class: b
    <BLANKLINE>
    """
    check_is_fitted(decision_tree)
    shown, t = decision_tree.tree_, decision_tree.trees_
    names = [f"feature_{j}" for j in range(shown.n_features)] if feature_names is None else list(feature_names)
    classes = getattr(decision_tree, "classes_", None) if class_names is None else class_names
    for what, given, needed in (
        ("feature_names", names, shown.n_features),
        ("class_names", classes, shown.n_classes[0]),
    ):
        if given is not None and shown.n_outputs == 1 and len(given) != needed:
            raise ValueError(f"{what} has {len(given)} entries; the tree has {needed}.")
    lines: list[str] = []

    def leaf(node: int) -> str:
        value = shown.value[node][0] if shown.n_outputs == 1 else shown.value[node][:, 0]
        if classes is None:
            return f" value: [{', '.join(f'{v:.{decimals}f}' for v in value)}]"
        chosen = np.argmax(value)
        label = f" class: {classes[chosen] if shown.n_outputs == 1 else chosen}"
        if not show_weights:
            return label
        weights = value * shown.weighted_n_node_samples[node]
        return f" weights: [{', '.join(f'{v:.{decimals}f}' for v in weights)}]{label}"

    def depth_below(node: int) -> int:
        left = shown.children_left[node]
        return 1 if left < 0 else 1 + max(depth_below(left), depth_below(left + 1))

    def visit(node: int, depth: int) -> None:
        indent = ("|" + " " * spacing) * (depth - 1) + "|" + "-" * spacing
        below = 1 if depth <= max_depth + 1 else depth_below(node)
        if below > 1:
            lines.append(f"{indent} truncated branch of depth {below}")
        elif shown.children_left[node] < 0 or depth > max_depth + 1:
            lines.append(indent + leaf(node))
        else:
            name, threshold = names[shown.feature[node]], f"{shown.threshold[node]:.{decimals}f}"
            for left, sign in ((True, "<="), (False, "> ")):
                of_set = t.set[node] >= 0
                test = _test(decision_tree, node, names, decimals, left) if of_set else f"{name} {sign} {threshold}"
                lines.append(f"{indent} {test}")
                visit(int(shown.children_left[node]) + (not left), depth + 1)

    visit(0, 1)
    return "\n".join([*lines, ""])


def plot_tree(decision_tree: Any, **options: Any) -> list[Any]:
    """Draw a tree with scikit-learn's function of this name, which accepts only scikit-learn's trees.

    Parameters
    ----------
    decision_tree : a fitted tree of numbers; :meth:`DecisionTreeClassifier.plot` also draws categories and the trees of
        forests, which keep no counts
    **options
        As in scikit-learn: feature_names, class_names, filled, rounded, max_depth, impurity, ax, fontsize, …
    """
    from sklearn.tree import plot_tree as drawn

    check_is_fitted(decision_tree)
    if np.any(decision_tree.trees_.set >= 0):
        raise ValueError("The tree divides categories, which this function cannot draw; use the tree's plot().")
    with config_context(skip_parameter_validation=True):
        return drawn(decision_tree, **options)


def _names(tree: Any, feature_names: Any) -> list[str]:
    if feature_names is not None:
        return list(feature_names)
    if hasattr(tree, "feature_names_in_"):
        return list(tree.feature_names_in_)
    return [f"x{j}" for j in range(tree.n_features_in_)]


def _number(value: float, decimals: int) -> str:
    """With this many decimals; below one, with this many significant digits."""
    if abs(value) < 1 or abs(value) >= 1e15:
        return f"{value:.{max(decimals, 1)}g}"
    text = f"{value:.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _test(tree: Any, node: int, names: list[str], decimals: int, left: bool) -> str:
    """The condition under which a row goes left (or right) at a node."""
    t = tree.trees_
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
    value = tree.trees_.value[[node]]
    answers = tree._labels(value) if hasattr(tree, "classes_") else value
    label = ", ".join(str(a) if hasattr(tree, "classes_") else _number(a, decimals) for a in np.ravel(answers))
    if tree.trees_.count is None:  # a tree of a forest
        return label
    count = int(tree.trees_.count[node])
    return f"{label}  ({count} row{'s' if count != 1 else ''})"


def rules(tree: Any, feature_names: Any, decimals: int) -> str:
    """The tree as indented tests and outcomes."""
    names, t = _names(tree, feature_names), tree.trees_
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
    """x and depth of every node: leaves are evenly spaced, parents are above the midpoint of their children."""
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

    names, t = _names(tree, feature_names), tree.trees_
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
