"""Families of models that the search tries, from the simplest to the richest, with a few settings each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from hinge.errors import USAGE, UserError, argument
from hinge.models.blend import Blend


@dataclass(frozen=True)
class Shape:
    """Properties of the problem that a setting depends on."""

    task: str
    rows: int
    width: int
    categorical: np.ndarray  # which prepared columns are codes of categories
    seed: int
    median: bool = False  # whether real targets are scored by the absolute error, which medians minimise


@dataclass(frozen=True)
class Setting:
    """One way to fit a family: ``make(shape)`` gives an estimator that is not fitted yet.

    ``encode`` names the preparation of the table if it differs from the family's; ``values`` holds the hyperparameters, from which
    variations are drawn.
    """

    name: str
    make: Callable[[Shape], Any]
    encode: str = ""
    values: tuple[Any, ...] = ()


@dataclass(frozen=True)
class Family:
    """Models of one kind.

    Attributes
    ----------
    name, what : str
        Short name, and a few words.
    rank : int
        How complicated it is; between equally good families the lower rank wins.
    encode : {"onehot", "chars", "codes", "dummies", "means"}
        How the table is prepared: "chars" is "onehot" with runs of characters of texts besides words; "dummies" (one column per
        category) and "means" (the mean target of each category) are for trees.
    settings : tuple of Setting
    max_rows, min_rows : int
        Limits of the training rows it is meant for.
    rounds : bool
        Whether it grows round by round, and the folds say when to stop.
    early : int
        How many settings are tried before slow families have their turn, where rows are many.
    slow : bool
    vary : function of a random generator and the values of the best setting, optional
        Draws a further setting, near the best one or anywhere.
    """

    name: str
    what: str
    rank: int
    encode: str
    settings: tuple[Setting, ...]
    max_rows: int = 10**12
    min_rows: int = 0
    rounds: bool = False
    early: int = 1
    slow: bool = False
    vary: Callable[[np.random.Generator, tuple[Any, ...]], Setting] | None = None


def _hg() -> Any:
    import hinge

    return hinge


# --- trees ---


def _of_trees(kind: str, **options: Any) -> Callable[[Shape], Any]:
    """A tree estimator with its categorical columns set."""

    def make(shape: Shape) -> Any:
        suffix = "Classifier" if shape.task in ("binary", "multiclass") else "Regressor"
        given = dict(options)
        chosen = np.flatnonzero(shape.categorical).tolist() if given.pop("subsets", True) else []
        if "leaf" in given:  # a share of the rows, between limits
            share, least, most = given.pop("leaf")
            given["min_samples_leaf"] = int(np.clip(share * shape.rows, least, most))
        if kind == BOOST:
            given.setdefault("early_stopping", True)
            if shape.task == "count":
                given["loss"] = "poisson"
            elif shape.task == "real" and shape.median:
                given["loss"] = "absolute_error"
            if given.pop("additive", False):
                given["interaction_cst"] = [[0]]
        if kind == "RandomForest":
            given.setdefault("max_features", "sqrt" if suffix == "Classifier" else 0.4)
        return getattr(_hg(), kind + suffix)(categorical_features=chosen or None, random_state=shape.seed, **given)

    return make


# --- linear ---


def loss_of(task: str) -> Any:
    """The loss of a task."""
    hg = _hg()
    return {"binary": hg.Logistic, "multiclass": hg.Softmax, "real": hg.Squared, "count": hg.Poisson}[task]()


def _linear(penalty: str, strength: float) -> Setting:
    def make(shape: Shape) -> Any:
        hg = _hg()
        return scaled(shape.task, hg.Learner(loss=loss_of(shape.task), penalty=getattr(hg, penalty)(strength)))

    return Setting(f"{penalty}({strength:.2g})", make, values=(penalty, strength))


def _other_linear(rng: np.random.Generator, best: tuple[Any, ...]) -> Setting:
    """Draw a strength within a factor of thirty of the best setting's."""
    penalty, strength = best
    return _linear(penalty, float(strength * 30.0 ** rng.uniform(-1, 1)))


def _of_words(strength: float) -> Callable[[Shape], Any]:
    """A ridge penalty on rows of length 1 of many terms: the sum of the losses times ``strength``, plus ‖w‖²/2."""

    def make(shape: Shape) -> Any:
        hg = _hg()
        return scaled(
            shape.task, hg.Learner(loss=loss_of(shape.task), penalty=hg.L2(1 / (strength * shape.rows)), tol=1e-4)
        )

    return make


def _ratio(strength: float) -> Callable[[Shape], Any]:
    def make(shape: Shape) -> Any:
        from hinge.models.linear.log_count_ratio import LogCountRatioClassifier

        return LogCountRatioClassifier(C=strength)

    return make


def scaled(task: str, model: Any) -> Any:
    """Standardise a real target, so that penalty strengths and step sizes do not depend on its unit."""
    if task != "real":
        return model
    from hinge.models.scaled import ScaledTarget

    return ScaledTarget(model)


def _kernel(strength: float, width: float) -> Setting:
    """A kernel e^(−γ‖x−x'‖²) with γ = width / columns, and a ridge penalty."""

    def make(shape: Shape) -> Any:
        hg = _hg()
        gamma = width / max(shape.width, 1)
        if shape.task == "real":
            return scaled("real", hg.KernelRidge(alpha=strength, kernel="rbf", gamma=gamma))
        return hg.KernelLogisticRegression(C=1 / strength, kernel="rbf", gamma=gamma)

    return Setting(f"strength {strength:.2g}, width {width:.2g}", make, values=(strength, width))


def _other_kernel(rng: np.random.Generator, best: tuple[Any, ...]) -> Setting:
    """Draw strength and width within a factor of four of the best setting's."""
    strength, width = (value * 4.0 ** rng.uniform(-1, 1) for value in best)
    return _kernel(float(strength), float(width))


def _network(layers: tuple[int, ...], alpha: float, rate: float = 0.003, seeds: int = 1) -> Setting:
    """Networks with early stopping on a tenth of the rows; the mean over several seeds has a lower variance."""

    def make(shape: Shape) -> Any:
        members = [_one_network(shape, layers, alpha, rate, shape.seed + k) for k in range(seeds)]
        return members[0] if seeds == 1 else Blend(members, [1 / seeds] * seeds)

    named = ", ".join(map(str, layers)) + (f", {seeds} seeds" if seeds > 1 else "")
    return Setting(named, make, values=(layers, alpha, rate, seeds))


def _one_network(shape: Shape, layers: tuple[int, ...], alpha: float, rate: float, seed: int) -> Any:
    hg = _hg()
    options: dict[str, Any] = {
        "hidden_layer_sizes": layers, "alpha": alpha, "random_state": seed, "early_stopping": True,
        "max_iter": 200, "learning_rate_init": rate, "n_iter_no_change": 15,
    }  # fmt: skip
    if shape.task in ("binary", "multiclass"):
        return hg.MLPClassifier(**options)
    return scaled(
        shape.task, hg.MLPRegressor(loss=hg.Poisson() if shape.task == "count" else "squared_error", **options)
    )


def _other_network(rng: np.random.Generator, best: tuple[Any, ...]) -> Setting:
    """Draw the size, penalty and step of several networks near those of the best setting."""
    layers, alpha, rate, _ = best
    width = int(np.clip(layers[0] * 2.0 ** rng.integers(-1, 2), 16, 256))
    deep = int(np.clip(len(layers) + rng.integers(-1, 2), 1, 3))
    return _network(
        (width,) * deep, float(alpha * 10 ** rng.uniform(-1, 1)), float(rate * 3 ** rng.uniform(-1, 1)), SEEDS
    )


def _forest(leaf: int, columns: float | None = None) -> Setting:
    """A forest of 200 trees: at least ``leaf`` rows per leaf, more for many rows; ``columns`` is the share tried per split."""
    given = {} if columns is None else {"max_features": columns}
    make = _of_trees("RandomForest", n_estimators=200, leaf=(0.0002, leaf, 20), **given)
    named = "" if columns is None else f", leaves of {leaf}, {columns:.2g} of the columns"
    return Setting("200 trees" + named, make, values=(leaf, columns))


def _other_forest(rng: np.random.Generator, _: tuple[Any, ...]) -> Setting:
    return _forest(int(rng.choice([1, 2, 3, 5, 10])), float(np.round(rng.uniform(0.15, 0.9), 2)))


def _extra(leaf: int, columns: float) -> Setting:
    """200 trees with random thresholds, grown on all rows."""
    make = _of_trees("ExtraTrees", n_estimators=200, leaf=(0.0002, leaf, 20), max_features=columns)
    return Setting(f"200 trees, leaves of {leaf}, {columns:.2g} of the columns", make, values=(leaf, columns))


def _other_extra(rng: np.random.Generator, _: tuple[Any, ...]) -> Setting:
    return _extra(int(rng.choice([1, 2, 3, 5])), float(np.round(rng.uniform(0.3, 1.0), 2)))


def _constant(shape: Shape) -> Any:
    """A tree of one leaf: the best constant."""
    suffix = "Classifier" if shape.task in ("binary", "multiclass") else "Regressor"
    given = {"criterion": "absolute_error"} if shape.task == "real" and shape.median else {}
    return getattr(_hg(), "DecisionTree" + suffix)(min_impurity_decrease=np.finfo(float).max, **given)


BOOST = "HistGradientBoosting"
LEAF = (0.02, 5, 20)
SEEDS = 4  # networks in a mean


def _boosting(
    rate: float, leaves: int, columns: float, leaf: tuple[float, int, int] = LEAF, l2: float = 1.0, rows: float = 0.8,
    encode: str = "codes",
) -> Setting:  # fmt: skip
    """Boosting with a small learning rate, each tree on a sample of the rows and columns.

    Splits by subsets of categories follow the noise of few rows most closely; "dummies" and "means" are the alternatives.
    """
    options = {"learning_rate": rate, "max_leaf_nodes": leaves, "max_features": columns, "leaf": leaf}
    options |= {"subsets": encode == "codes", "n_iter_no_change": max(round(2 / rate), 30)}
    make = _of_trees(BOOST, max_iter=3000, l2_regularization=l2, subsample=rows, **options)
    named = {"codes": "", "dummies": ", dummies", "means": ", means of categories"}[encode]
    return Setting(
        f"rate {rate:g}, {leaves} leaves{named}", make, encode, (rate, leaves, columns, leaf[2], l2, rows, encode)
    )


# Learning rate, leaves, share of columns, minimal rows of a leaf, ridge penalty of leaves, share of rows, encoding of categories.
BOOSTING_VALUES: tuple[tuple[Any, ...], ...] = (
    (0.02, 0.03, 0.05, 0.1), (4, 7, 15, 31, 63, 127, 255), (0.2, 0.4, 0.7, 1.0), (2, 5, 10, 20, 50), (0.1, 1.0, 5.0, 20.0), (0.6, 0.8, 1.0),
    ("codes", "dummies", "means"),
)  # fmt: skip


def _other_boosting(rng: np.random.Generator, best: tuple[Any, ...]) -> Setting:
    """The best setting with some of its values redrawn; occasionally all of them."""
    again = rng.uniform(size=len(BOOSTING_VALUES)) < (0.4 if best and rng.uniform() < 0.7 else 1.1)
    drawn = [choices[rng.integers(len(choices))] for choices in BOOSTING_VALUES]
    mixed = [new if change else old for new, change, old in zip(drawn, again, best or drawn, strict=True)]
    rate, leaves, columns, least, l2, rows, encode = mixed
    return _boosting(rate, leaves, columns, (0.05, min(least, 5), least), l2, rows, encode)


# In the order of the search: families that are quick or often best come first.
FAMILIES = (
    Family("baseline", "the best constant", 0, "codes", (Setting("constant", _constant),)),
    Family(
        "linear", "linear, ridge penalty", 2, "onehot",
        tuple(_linear("L2", strength) for strength in (1e-3, 1e-2, 1e-4, 1e-1, 1e-6)), vary=_other_linear,
    ),
    Family(
        "sparse", "linear, lasso penalty", 1, "onehot", tuple(_linear("L1", strength) for strength in (1e-3, 1e-2, 1e-4)),
        max_rows=200_000, vary=_other_linear,
    ),
    Family("tree", "one decision tree", 3, "codes", tuple(
        Setting(f"{leaves} leaves", _of_trees("DecisionTree", max_leaf_nodes=leaves, leaf=(0.002, 20, 500)))
        for leaves in (16, 64)
    )),
    Family("boosting", "boosted trees", 8, "codes", (
        Setting("rate 0.1, 31 leaves", _of_trees(BOOST, max_iter=1000, n_iter_no_change=20, leaf=LEAF)),
        _boosting(0.03, 31, 0.5),
        _boosting(0.1, 63, 1.0, rows=1.0),
        _boosting(0.05, 7, 0.5, (0.03, 5, 20), 5.0, encode="means"),
        _boosting(0.03, 63, 0.5),
        _boosting(0.1, 31, 1.0, rows=1.0, encode="dummies"),
        _boosting(0.03, 15, 0.3, encode="dummies"),
        _boosting(0.05, 15, 0.7, encode="means"),
        _boosting(0.05, 7, 0.5, (0.03, 5, 20), 5.0),
    ), rounds=True, early=3, vary=_other_boosting),
    Family("additive", "boosted, one column at a time", 4, "codes", (
        Setting("rate 0.1", _of_trees(
            BOOST, additive=True, max_iter=1000, max_leaf_nodes=4, n_iter_no_change=20, leaf=(0.002, 5, 100))),
    ), rounds=True),
    Family("forest", "random forest", 6, "codes", (_forest(3),), max_rows=1_000_000, slow=True, vary=_other_forest),
    Family("extra", "extremely randomised trees", 6, "codes", (_extra(2, 0.5),), max_rows=300_000, slow=True, vary=_other_extra),
    Family("kernel", "kernel machine, RBF", 5, "onehot", tuple(
        _kernel(s, w) for s, w in ((0.1, 0.5), (0.1, 0.1), (0.01, 0.5))
    ), max_rows=6000, slow=True, vary=_other_kernel),
    Family("network", "two hidden layers", 7, "onehot", (
        _network((64, 64), 1e-3),
        _network((128, 128), 1e-4),
        _network((64, 64), 1e-3, seeds=SEEDS),
    ), max_rows=500_000, min_rows=500, slow=True, vary=_other_network),
)  # fmt: skip
# Tables with free text: linear models of very many terms come first; kernels and networks are for few outputs.
TEXT_FAMILIES = (
    FAMILIES[0],
    Family("linear", "linear, ridge penalty", 2, "onehot", (
        Setting("words, C 10", _of_words(10.0)),
        Setting("words, C 100", _of_words(100.0)),
        Setting("words and characters, C 10", _of_words(10.0), "chars"),
        Setting("words, C 1", _of_words(1.0)),
        Setting("words and characters, C 100", _of_words(100.0), "chars"),
    ), early=3),
    Family("ratio", "linear, naive Bayes log-count ratios", 2, "onehot", (
        Setting("words, C 10", _ratio(10.0)),
        Setting("words and characters, C 10", _ratio(10.0), "chars"),
        Setting("words, C 1", _ratio(1.0)),
    ), early=2),
    *(f for f in FAMILIES if f.name in ("boosting", "additive", "tree", "forest")),
    Family("sparse", "linear, lasso penalty", 1, "onehot", tuple(
        _linear("L1", strength) for strength in (3e-4, 1e-3)
    ), max_rows=200_000, slow=True),
)  # fmt: skip
NAMES = (*(f.name for f in FAMILIES), "ratio")


def named(models: str | None) -> list[str]:
    """The names of families in a list with commas, or a UserError."""
    wanted = [name.strip() for name in (models or "").split(",") if name.strip()]
    unknown = [name for name in wanted if name not in NAMES]
    if unknown:
        raise UserError(f"{argument('models', ','.join(unknown))}: not known; choose from {', '.join(NAMES)}.", USAGE)
    return wanted


def families(models: str | None, task: str, rows: int, text: bool = False) -> list[Family]:
    """The families to try: all that suit the data, or those named, with the baseline always first.

    ``text`` is True for tables with free text.
    """
    wanted = named(models)
    suited = [f for f in (TEXT_FAMILIES if text else FAMILIES) if f.name != "ratio" or task in ("binary", "multiclass")]
    if wanted:
        suited += [f for f in FAMILIES if f.name not in {g.name for g in suited}]
        return [f for f in suited if f.name in wanted or f.name == "baseline"]
    suited = [f for f in suited if f.min_rows <= rows <= f.max_rows]
    return [f for f in suited if not (f.name == "kernel" and task == "count")]
