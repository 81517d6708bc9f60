"""Thresholds: predictions change where the score reaches them, and the tuned one is the best on held-out examples."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn.model_selection as theirs
from sklearn.metrics import balanced_accuracy_score, f1_score, make_scorer

import hinge as hg


@pytest.fixture
def data(rng):
    X = rng.normal(size=(400, 3))
    return X, np.where(X[:, 0] + rng.normal(size=400) > 1.3, "rare", "common")


@pytest.mark.parametrize("pos_label", [None, "rare", "common"])
@pytest.mark.parametrize("method", ["auto", "predict_proba", "decision_function"])
@pytest.mark.parametrize("threshold", ["auto", 0.2])
def test_a_fixed_threshold_is_that_of_scikit_learn(pos_label, method, threshold, data):
    X, y = data
    mine, other = (
        module.FixedThresholdClassifier(
            hg.LogisticRegression(), threshold=threshold, pos_label=pos_label, response_method=method
        ).fit(X, y)
        for module in (hg, theirs)
    )
    np.testing.assert_array_equal(mine.predict(X), other.predict(X))
    np.testing.assert_array_equal(mine.predict_proba(X), other.predict_proba(X))


def test_the_positive_class_begins_at_the_threshold(data):
    X, y = data
    base = hg.LogisticRegression().fit(X, y)
    p = base.predict_proba(X)[:, 1]
    model = hg.FixedThresholdClassifier(hg.LogisticRegression(), threshold=p[7]).fit(X, y)
    np.testing.assert_array_equal(model.predict(X) == "rare", p >= p[7])


@pytest.mark.parametrize("scoring", ["balanced_accuracy", "accuracy", make_scorer(f1_score, pos_label="rare"),
                                     make_scorer(f1_score, pos_label="common")])  # fmt: skip
@pytest.mark.parametrize("settings", [{}, {"thresholds": [0.1, 0.3, 0.5, 0.7]}, {"response_method": "decision_function"},
                                      {"cv": 0.3, "refit": False, "random_state": 0}])  # fmt: skip
def test_a_tuned_threshold_is_that_of_scikit_learn(scoring, settings, data):
    X, y = data
    mine, other = (
        module.TunedThresholdClassifierCV(
            hg.LogisticRegression(), scoring=scoring, store_cv_results=True, **settings
        ).fit(X, y)
        for module in (hg, theirs)
    )  # fmt: skip
    np.testing.assert_allclose(mine.cv_results_["thresholds"], other.cv_results_["thresholds"])
    np.testing.assert_allclose(mine.cv_results_["scores"], other.cv_results_["scores"])
    assert mine.best_threshold_ == pytest.approx(other.best_threshold_)
    assert mine.best_score_ == pytest.approx(other.best_score_)
    np.testing.assert_array_equal(mine.predict(X), other.predict(X))


def test_the_threshold_is_the_best_on_the_held_out_part(data):
    X, y = data
    base = hg.LogisticRegression().fit(X[:200], y[:200])
    tuned = hg.TunedThresholdClassifierCV(base, cv="prefit", refit=False, thresholds=50).fit(X[200:], y[200:])
    p = base.predict_proba(X[200:])[:, 1]
    scores = [
        balanced_accuracy_score(y[200:], np.where(p >= t, "rare", "common"))
        for t in np.linspace(p.min(), p.max(), 50)
    ]  # fmt: skip
    assert tuned.best_score_ == pytest.approx(max(scores))
    assert balanced_accuracy_score(y[200:], tuned.predict(X[200:])) == pytest.approx(max(scores))


def test_errors_name_the_remedy(data):
    X, y = data
    with pytest.raises(ValueError, match="refit cannot be True"):
        hg.TunedThresholdClassifierCV(hg.LogisticRegression(), cv="prefit").fit(X, y)
    with pytest.raises(ValueError, match="refit cannot be False"):
        hg.TunedThresholdClassifierCV(hg.LogisticRegression(), refit=False).fit(X, y)
    with pytest.raises(ValueError, match="constant predictions"):
        hg.TunedThresholdClassifierCV(hg.LogisticRegression()).fit(np.zeros_like(X), y)
    with pytest.raises(ValueError, match="not a label of y"):
        hg.FixedThresholdClassifier(hg.LogisticRegression(), pos_label="odd").fit(X, y)
    with pytest.raises(ValueError, match="binary"):
        hg.FixedThresholdClassifier(hg.LogisticRegression()).fit(X, np.arange(400) % 3)


@pytest.mark.parametrize("labels", [["no", "yes"], [0, 1]])
def test_measures_see_labels_of_python(labels, rng):
    """NumPy loses a KeyboardInterrupt that comes while it compares its own strings; a search is mostly such comparisons."""
    X = rng.normal(size=(60, 2))
    y = np.array(labels)[(X[:, 0] > 0).astype(int)]
    seen: set[type] = set()

    def measure(truth, predicted):
        seen.update(type(label) for label in [*truth, *predicted])
        return float(np.mean(truth == predicted))

    model = hg.TunedThresholdClassifierCV(hg.LogisticRegression(), scoring=make_scorer(measure), cv=3).fit(X, y)
    assert not [kind for kind in seen if issubclass(kind, np.str_)]
    assert model.best_score_ > 0.9
    assert set(model.predict(X)) == set(labels)


@pytest.mark.parametrize("cls", [hg.FixedThresholdClassifier, hg.TunedThresholdClassifierCV])
def test_a_class_without_weight_is_no_class(cls, data):
    X, y = data
    with pytest.raises(ValueError, match="only one class"):
        cls(hg.GaussianNB()).fit(X, y, (y == "common").astype(float))
