"""One fit: the preparation of the table, and the model of a setting on the prepared rows."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from hinge.learning.candidates import Setting, Shape

MAX_WORDS, CHOSEN_WORDS = 100_000, 300  # terms of a text for linear models, and for trees
MANY_LEVELS = 30  # from so many levels on, trees get a category as means of the target


def preparation(encode: str, kinds: dict[str, str]) -> Any:
    """The preparation of the table for a model."""
    import hinge as hg

    text: dict[str, Any] = {"word_ngrams": (1, 2), "min_df": 2, "sublinear_tf": True}
    if encode == "codes":
        return hg.TablePrep(
            kinds, encode="codes", missing="keep", scale=False, sparse=False, max_categories=200,
            max_words=CHOSEN_WORDS, target_means=MANY_LEVELS, word_choice="target", **text,
        )  # fmt: skip
    if encode in ("dummies", "means"):
        how: dict[str, Any] = {"encode": "onehot", "min_frequency": 3}
        if encode == "means":
            how = {"encode": "codes", "max_categories": 200, "target_means": 2}
        return hg.TablePrep(
            kinds,
            missing="keep",
            scale=False,
            sparse=False,
            max_words=CHOSEN_WORDS,
            word_choice="target",
            **how,
            **text,
        )
    chars = (3, 5) if encode == "chars" else None
    return hg.TablePrep(kinds, min_frequency=5, max_words=MAX_WORDS, char_ngrams=chars, **text)


def common_rounds(models: list[Any]) -> int:
    """The number of boosting rounds with the least validation loss, summed over all models.

    One number serves all folds, so that they score models like that of the final fit, which then needs no validation rows. It is
    chosen on the rows that give the scores, like every other hyperparameter.
    """
    shortest = min(len(model.validation_score_) for model in models)
    return int(np.argmin(np.mean([model.validation_score_[:shortest] for model in models], axis=0))) + 1


def fit_model(
    setting: Setting, search: Any, prep: Any, X: Any, labels: np.ndarray, watch: dict[str, Any] | None = None,
    copy: int = 0, most_rounds: int | None = None, **changes: Any,
) -> Any:  # fmt: skip
    """Fit a model of this setting to prepared rows; ``watch`` may hold weights, and rows for early stopping.

    ``search`` has the task, the seed and the metric; every ``copy`` has other random numbers. Boosting ends after ``most_rounds``.
    """
    categorical = np.asarray(getattr(prep, "categorical_", np.zeros(X.shape[1], bool)), dtype=bool)
    shape = Shape(search.task, X.shape[0], X.shape[1], categorical, search.seed + 1000 * copy, search.metric == "mae")
    model = setting.make(shape)
    if most_rounds is not None and "max_iter" not in changes:
        changes["max_iter"] = min(model.max_iter, most_rounds)
    if changes:
        model.set_params(**changes)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the certificate records what a fit would warn of
        return model.fit(X, labels, **(watch or {}))


def inner(model: Any) -> Any:
    """The model itself, without the scaling of its target."""
    return getattr(model, "regressor_", model)


def certificate_of(model: Any) -> Any:
    return getattr(inner(model), "certificate_", None)


def size_of(model: Any) -> int:
    """Bytes of the arrays of a fitted model."""
    import hinge.files

    return hinge.files.size(model)
