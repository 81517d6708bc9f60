"""Gradient boosting in its classic form against scikit-learn's."""

import inspect

import numpy as np
import pytest
from sklearn import ensemble, neighbors

import hinge as hg

NAMES = [
    "GradientBoostingClassifier", "GradientBoostingRegressor", "HistGradientBoostingClassifier",
    "HistGradientBoostingRegressor",
]  # fmt: skip
OURS = {"random_state", "criterion", "max_iter", "n_iter_no_change"}  # seeded by default; one more name of a setting


@pytest.mark.parametrize("name", NAMES)
def test_defaults_are_those_of_the_same_name(name):
    theirs = inspect.signature(getattr(ensemble, name)).parameters
    ours = inspect.signature(getattr(hg, name)).parameters
    shared = set(theirs) - OURS
    assert {k: ours[k].default for k in shared} == {k: theirs[k].default for k in shared}


@pytest.mark.parametrize(
    "given",
    [{}, {"max_depth": 5, "min_samples_leaf": 4}, {"min_samples_split": 9}, {"init": "zero"}, {"learning_rate": 1.0}],
    ids=str,
)
def test_squared_error_is_fitted_as_scikit_learn_does(given, rng):
    """Values are continuous and few: no two cuts are as good as each other, and all of them are tried."""
    X, y = rng.normal(size=(150, 3)), rng.normal(size=150)
    given = {"n_estimators": 20} | given
    ours = hg.GradientBoostingRegressor(**given).fit(X, y)
    theirs = ensemble.GradientBoostingRegressor(random_state=0, **given).fit(X, y)
    np.testing.assert_allclose(ours.train_score_, theirs.train_score_, rtol=1e-7)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("rows", [4, 8, 12])
def test_few_rows_are_fitted(rows):
    X = np.arange(float(rows))[:, None]
    y = np.arange(rows) // 2 % 2
    np.testing.assert_array_equal(hg.GradientBoostingClassifier().fit(X, y).predict(X), y)
    np.testing.assert_allclose(hg.GradientBoostingRegressor().fit(X, y).predict(X), y, atol=0.01)


@pytest.mark.parametrize("classes", [0, 2, 3])
def test_boosting_starts_from_an_estimator(classes, rng):
    """The stages are those of boosting from the estimator's scores, which predictions contain."""
    X = rng.normal(size=(200, 4))
    y = X[:, 0] - X[:, 1] + 0.3 * rng.normal(size=200)
    if classes:
        y = np.digitize(y, [-0.5, 0.5] if classes == 3 else [0.0])
    start = hg.LogisticRegression() if classes else hg.Ridge()
    cls = hg.GradientBoostingClassifier if classes else hg.GradientBoostingRegressor
    model = cls(n_estimators=5, init=start).fit(X, y)
    if not classes:
        given = start.fit(X, y).predict(X)
    else:
        tiny = np.finfo(np.float32).eps  # probabilities are kept this far from 0 and 1
        log_p = np.log(np.clip(start.fit(X, y).predict_proba(X), tiny, 1 - tiny))
        given = (
            log_p[:, 1] - np.log1p(-np.exp(log_p[:, 1])) if classes == 2 else log_p - log_p.mean(axis=1, keepdims=True)
        )
    same = cls(n_estimators=5).fit(X, y, init_score=given)
    ours, theirs = (m.decision_function(X) if classes else m.predict(X) for m in (model, same))
    np.testing.assert_allclose(ours, theirs + given, atol=1e-5)
    longer = cls(n_estimators=2, init=start, warm_start=True).fit(X, y).set_params(n_estimators=5).fit(X, y)
    np.testing.assert_allclose(longer.decision_function(X) if classes else longer.predict(X), ours, atol=1e-5)
    weight = np.ones(200) * 0.5
    with pytest.raises(ValueError, match="does not support sample weights"):
        cls(init=neighbors.KNeighborsClassifier() if classes else neighbors.KNeighborsRegressor()).fit(
            X, y, sample_weight=weight
        )


def test_a_monitor_ends_the_fit(rng):
    X, y = rng.normal(size=(50, 2)), rng.normal(size=50)
    rounds = []
    model = hg.GradientBoostingRegressor(subsample=0.5)
    model.fit(X, y, monitor=lambda i, estimator, seen: rounds.append(i) or (estimator is model and i == 4))
    assert rounds == [0, 1, 2, 3, 4]
    assert model.n_estimators_ == len(model.train_score_) == len(model.oob_scores_) == 5
    assert model.oob_score_ == model.oob_scores_[-1]


@pytest.mark.parametrize("name", NAMES)
def test_the_unit_of_the_weights_does_not_matter(name, rng):
    X, y = rng.normal(size=(200, 3)), rng.normal(size=200)
    y = y > 0 if "Classifier" in name else y
    weight = rng.uniform(0.5, 2.0, 200)
    a, b = (getattr(hg, name)(random_state=0).fit(X, y, sample_weight=unit * weight) for unit in (1.0, 2.0**-14))
    # Sums are kept in fixed point with whole weights: what is left is their rounding.
    np.testing.assert_allclose(b.predict(X), a.predict(X), atol=1e-4)


@pytest.mark.parametrize("name", ["GradientBoostingClassifier", "GradientBoostingRegressor"])
@pytest.mark.parametrize("subsample", [1.0, 0.7])
@pytest.mark.parametrize("verbose", [1, 2])
def test_progress_is_printed_as_scikit_learn_prints_it(name, subsample, verbose, rng, capsys):
    """The same header, the same rounds, columns of the same width, on the standard output."""
    X, y = rng.normal(size=(60, 2)), rng.integers(2, size=60)
    texts = []
    for library in (hg, ensemble):
        getattr(library, name)(n_estimators=30, subsample=subsample, verbose=verbose, random_state=0).fit(X, y)
        texts.append(capsys.readouterr().out.splitlines())
    ours, theirs = texts
    assert ours[0].rstrip() == theirs[0].rstrip()
    assert [line.split()[0] for line in ours] == [line.split()[0] for line in theirs]
    assert {len(line.split()) for line in ours[1:]} == {len(line.split()) for line in theirs[1:]}


@pytest.mark.parametrize("name", ["GradientBoostingClassifier", "GradientBoostingRegressor"])
def test_rounds_on_all_rows_have_no_improvement_out_of_the_sample(name, rng):
    X, y = rng.normal(size=(80, 2)), rng.integers(2, size=80)
    model = getattr(hg, name)(n_estimators=5, warm_start=True).fit(X, y)
    model.set_params(n_estimators=9, subsample=0.5).fit(X, y)
    np.testing.assert_array_equal(model.oob_improvement_[:5], 0.0)
    np.testing.assert_array_equal(model.oob_scores_[:5], 0.0)
    assert np.all(model.oob_scores_[5:] != 0.0)
    assert len(model.oob_scores_) == 9


def test_members_name_the_limits_that_they_were_grown_with(rng):
    limits = {"min_impurity_decrease": 0.01, "min_samples_split": 5, "max_depth": 2, "min_samples_leaf": 3}
    X, y = rng.normal(size=(80, 2)), rng.normal(size=80)
    tree = hg.GradientBoostingRegressor(n_estimators=2, **limits).fit(X, y).estimators_[0, 0]
    assert {name: getattr(tree, name) for name in limits} == limits
