"""The search and the ensemble: every family is tried, weights are chosen out of fold, one model comes out."""

from __future__ import annotations

import time

import numpy as np
import pytest
from sklearn.base import clone, is_classifier, is_regressor

import hinge as hg
from hinge.learning.candidates import FAMILIES, Family, Setting, _boosting
from hinge.learning.choosing import MORE_SETTINGS, choose, optimism_of
from hinge.learning.cross_validation import FEWEST_ROUNDS
from hinge.learning.ensemble import FAMILY, add_ensemble, greedy_weights
from hinge.learning.examine import _notes
from hinge.learning.refit import MOST_COPIES, Refit
from hinge.learning.request import Request
from hinge.learning.run import HALVING_WORK, few_rows
from hinge.learning.search import MOST_FAILURES, Search
from hinge.learning.timeout import OutOfTime
from hinge.learning.trials import Trial, split
from hinge.models.blend import Blend
from hinge.select.estimate import Estimate
from kit.command import table

pl = pytest.importorskip("polars", reason="tables need the [cli] extra")

BY_NAME = {f.name: f for f in FAMILIES}


def problem(rng, n=400, classes=None):
    frame = pl.DataFrame({f"x{j}": rng.normal(size=n) for j in range(4)})
    f = frame["x0"].to_numpy() + np.sin(3 * frame["x1"].to_numpy()) + 0.3 * rng.normal(size=n)
    task = "real" if classes is None else "binary"
    y = f if classes is None else (f > 0).astype(float)
    return Search.over(frame, y, classes, task, dict.fromkeys(frame.columns, "number"), 0)


def test_greedy_weights_are_a_convex_combination_no_worse_than_the_best(rng):
    y = rng.normal(size=300)
    predictions = [y + rng.normal(size=300) for _ in range(4)] + [rng.normal(size=300) * 5]
    losses = [(y - p) ** 2 for p in predictions]
    weights = greedy_weights(predictions, losses, lambda s: (y - s) ** 2)
    assert weights.sum() == pytest.approx(1.0)
    assert np.all(weights >= 0)
    assert weights[-1] == 0.0
    together = sum(w * p for w, p in zip(weights, predictions))
    # Four independent errors of equal size: their mean has about a quarter of the variance.
    assert np.mean((y - together) ** 2) < 0.5 * min(loss.mean() for loss in losses)


@pytest.mark.parametrize("classes", [None, np.array(["no", "yes"])])
def test_the_losses_of_the_ensemble_are_those_of_weights_from_other_folds(rng, classes):
    search = problem(rng, classes=classes)
    search.run([BY_NAME[name] for name in ("baseline", "linear", "tree", "kernel")], 600.0)
    add_ensemble(search, 400, 400, 600.0)
    result = search.results[-1]
    assert result.family.name == "ensemble"
    assert sum(share for _, share in result.members) == pytest.approx(1.0)
    assert result.fit_seconds == pytest.approx(sum(trial.fit_seconds for trial, _ in result.members))
    # Changing the targets of one fold changes no prediction that is scored on it.
    fold = search.folds[0]
    again = problem(rng, classes=classes)
    again.frame, again.y, again.folds = search.frame, search.y.copy(), search.folds
    again.results = [
        Trial(t.family, t.setting, t.state, t.loss, t.predictions, train_rows=t.train_rows) for t in search.results[:-1]
    ]
    again.y[fold.test] = again.y[fold.test][::-1]
    for trial in again.results:
        if trial.predictions is not None:
            trial.loss = again.measure.pointwise(again.targets, trial.predictions)
    add_ensemble(again, 400, 400, 600.0)
    if again.results[-1].family.name == "ensemble":
        np.testing.assert_allclose(again.results[-1].predictions[fold.test], result.predictions[fold.test])


def test_members_that_do_not_fit_the_time_are_left_out(rng):
    search = problem(rng)
    y = search.targets
    for name, noise, seconds in (
        ("baseline", 5.0, 0.0),
        ("linear", 1.0, 0.1),
        ("tree", 1.0, 0.1),
        ("forest", 0.9, 50.0),
    ):
        p = y + noise * rng.normal(size=len(y))
        trial = Trial(
            BY_NAME[name], BY_NAME[name].settings[0], "done", (y - p) ** 2, p, train_rows=400, fit_seconds=seconds
        )
        search.results.append(trial)
    add_ensemble(search, 400, 400, 2.0)
    names = {trial.family.name for trial, _ in search.results[-1].members}
    assert names == {"linear", "tree"}


@pytest.mark.parametrize("task", ["binary", "multiclass", "real"])
def test_a_blend_is_the_weighted_mean_and_one_model(rng, task, tmp_path):
    X = rng.normal(size=(150, 3))
    f = X[:, 0] + X[:, 1] ** 2
    y = {"binary": np.where(f > 1, "a", "b"), "multiclass": np.digitize(f, [0, 1]).astype(str), "real": f}[task]
    kind = "Regressor" if task == "real" else "Classifier"
    members = [
        getattr(hg, f"DecisionTree{kind}")(max_depth=2),
        getattr(hg, f"RandomForest{kind}")(n_estimators=5, random_state=0),
    ]
    blend = Blend(members, [0.25, 0.75]).fit(X, y)
    parts = [clone(m).fit(X, y) for m in members]
    if task == "real":
        assert is_regressor(blend)
        assert not hasattr(blend, "predict_proba")
        expected = 0.25 * parts[0].predict(X) + 0.75 * parts[1].predict(X)
        np.testing.assert_allclose(blend.predict(X), expected)
    else:
        assert is_classifier(blend)
        expected = 0.25 * parts[0].predict_proba(X) + 0.75 * parts[1].predict_proba(X)
        np.testing.assert_allclose(blend.predict_proba(X), expected)
        assert (blend.predict(X) == blend.classes_[expected.argmax(axis=1)]).all()
    hg.save(blend, tmp_path / "b.hinge")
    np.testing.assert_array_equal(hg.load(tmp_path / "b.hinge").predict(X), blend.predict(X))


def test_an_ensemble_is_learned_saved_and_reported_as_one_model(rng, tmp_path, hinge):
    n = 500
    a, b, c = rng.normal(size=n), rng.normal(size=n), rng.choice(["u", "v"], n)
    y = 2 * a + np.sin(4 * b) + (c == "u") + 0.3 * rng.normal(size=n)
    frame = pl.DataFrame({"a": a, "b": b, "c": c, "y": y})
    path = tmp_path / "t.csv"
    frame.write_csv(path)
    found = hg.learn(frame, "y", models=["linear", "tree", "kernel", "forest"], seconds=600.0)
    assert "ensemble" in found.leaderboard["name"].to_list()
    if found.chosen.family.name == "ensemble":
        assert set(found.chosen.setting.name.split()) & {"linear", "tree", "kernel", "forest"}
    model = found.save(tmp_path / "m.hinge")
    for args in (
        ("predict", model, path),
        ("explain", model, path, "--row", "2"),
        ("inspect", model),
        ("verify", model, path),
    ):
        code, _, err = hinge(*args)
        assert code == 0, err
    alone = hg.learn(frame, "y", models=["linear", "tree", "kernel", "forest"], seconds=600.0, simple=True)
    assert "ensemble" not in alone.leaderboard["name"].to_list()


def test_simple_keeps_one_model_in_the_command(fit, tmp_path):
    path = table(tmp_path / "t.csv", n=300, task="real")
    card = fit(path, "-t", "y", "--models", "linear,tree", "--time", "600", "--simple", "-o", tmp_path / "out")
    assert [row["name"] for row in card["board"]] == ["baseline", "linear", "tree"]


def test_with_heavy_tails_a_simpler_model_must_be_as_good(rng):
    search = Search(None, np.zeros(400), None, "real", {}, 0, [])
    heavy = np.minimum(rng.pareto(1.1, 400), 500.0)
    for name, loss in (("linear", 3.0 + heavy), ("boosting", 2.0 + rng.permutation(heavy))):
        search.results.append(Trial(BY_NAME[name], BY_NAME[name].settings[0], "done", loss))
    best = min(search.results, key=lambda r: r.loss.mean())
    search.simple = False
    assert search.choose() is best


def test_every_family_has_a_look_before_there_is_no_time(rng, monkeypatch):
    search = problem(rng, 3000)

    def none(self, result, began, seconds):
        if result is not self.results[0]:
            raise OutOfTime
        result.loss, result.state = np.ones(len(self.y)), "done"

    monkeypatch.setattr(Search, "cross_validate", none)
    search.run([BY_NAME[name] for name in ("baseline", "linear", "tree", "forest")], 600.0)
    states = {trial.family.name: trial.state for trial in search.results}
    assert states == {"baseline": "done", "linear": "rough", "tree": "rough", "forest": "rough"}
    assert all("after a fit to" in trial.why for trial in search.results[1:])
    refit = Refit(None, search.y, search, search.results[0], False)
    note = _notes(refit, np.zeros(10))[0].text
    assert "there was no time for forest, linear, tree" in note


def test_settings_that_are_clearly_worse_are_dropped_after_one_fold(rng):
    search = problem(rng, 600)
    search.run([BY_NAME["baseline"], BY_NAME["linear"]], 600.0)
    best = search.best("linear")
    assert best is not None
    weak = next(t for t in search.results if t.setting.name == "L2(0.1)")
    assert weak.state in ("dropped", "done")
    model = type("Bad", (), {"predict": lambda self, X: np.full(X.shape[0], 50.0)})()
    fold = search.folds[0]
    assert search._hopeless(Trial(best.family, best.setting, "running"), fold, model, search.prepare(fold, "onehot")[2])


def test_boosting_is_varied_while_it_helps(rng):
    search = problem(rng, 150)
    search.folds = split(search.y, "real", 3, 0)
    search.simple = False
    search.run([BY_NAME["baseline"], BY_NAME["boosting"]], 600.0)
    names = [t.setting.name for t in search.results if t.family.name == "boosting"]
    assert len(names) > len(BY_NAME["boosting"].settings)


def test_slow_families_that_did_well_on_few_rows_come_before_more_settings(rng, monkeypatch):
    search = problem(rng, 3000)
    order = []
    monkeypatch.setattr(Search, "_try", lambda self, family, setting, *_: order.append(family.name))
    monkeypatch.setattr(Search, "_distance", lambda self, family: np.inf)
    scores = {"linear": 2.0, "boosting": 1.0, "forest": 0.9, "network": 3.0}

    def look(self, family, seconds):
        self.looks[family.name] = 1000, Estimate(scores.get(family.name, 5.0), 0.1)

    monkeypatch.setattr(Search, "_look", look)
    search.run([BY_NAME[name] for name in ("baseline", "linear", "boosting", "forest", "network")], 60.0)
    second = [k for k, name in enumerate(order) if name == "boosting"][1]
    assert order.index("forest") < second < order.index("network")


def attempts(search, monkeypatch, losses, seconds_of):
    """Replace fits by trials of known mean losses and durations; returns the settings in the order of their turns."""
    order, noise = [], np.random.default_rng(0).normal(size=len(search.y))

    def attempt(family, setting, *_):
        order.append((family.name, setting.name))
        loss = losses[family.name] + 0.01 * noise
        search.results.append(Trial(family, setting, "done", loss, fit_seconds=seconds_of[family.name]))

    monkeypatch.setattr(search, "_try", attempt)
    monkeypatch.setattr(search, "_look", lambda family, seconds: None)
    return order


def test_settings_that_take_no_time_come_before_slow_families(rng, monkeypatch):
    """Three hundredths of a second per fit are nothing in a minute; seconds are not."""
    search = problem(rng, 3000)
    names = ("baseline", "linear", "sparse", "forest")
    losses = {"baseline": 1.0, "linear": 0.5, "sparse": 0.5, "forest": 0.6}
    order = attempts(search, monkeypatch, losses, {"baseline": 0.0, "linear": 0.03, "sparse": 2.0, "forest": 1.0})
    search.run([BY_NAME[name] for name in names], 60.0)
    turns = [family for family, _ in order]
    assert turns.count("linear") == len(BY_NAME["linear"].settings)
    assert max(k for k, name in enumerate(turns) if name == "linear") < turns.index("forest")
    assert max(k for k, name in enumerate(turns) if name == "sparse") > turns.index("forest")


def test_a_family_far_behind_gets_no_more_settings(rng, monkeypatch):
    for loss, count in ((0.1, 1), (0.9, 3)):
        search = problem(rng, 3000)
        losses = {"baseline": 2.0, "linear": loss, "boosting": 1.0}
        order = attempts(search, monkeypatch, losses, dict.fromkeys(losses, 5.0))
        search.run([BY_NAME[name] for name in losses], 60.0)
        assert [family for family, _ in order].count("boosting") == count


def test_strengths_below_the_grid_are_found(rng):
    """Without noise the least penalty is the best: the search follows it beyond the last strength of its grid."""
    search = problem(rng)
    search.y = search.frame.to_numpy() @ np.array([1.0, 2.0, -1.0, 0.5])
    search.simple = False
    search.run([BY_NAME["baseline"], BY_NAME["linear"]], 600.0)
    penalty, strength = search.best("linear").setting.values
    assert penalty == "L2"
    assert strength < min(setting.values[1] for setting in BY_NAME["linear"].settings)
    drawn = [BY_NAME["linear"].vary(rng, ("L2", 1e-3)).values for _ in range(50)]
    assert all(name == "L2" and 1e-3 / 30 <= value <= 30e-3 for name, value in drawn)


def test_variations_stay_near_the_best_setting(rng):
    for name in ("boosting", "kernel", "forest", "network"):
        family = BY_NAME[name]
        drawn = [family.vary(rng, family.settings[-1].values) for _ in range(20)]
        assert len({setting.values for setting in drawn}) > 5
        assert all(len(setting.values) == len(family.settings[-1].values) for setting in drawn)
    strength, width = BY_NAME["kernel"].settings[0].values
    for setting in (BY_NAME["kernel"].vary(rng, (strength, width)) for _ in range(20)):
        assert strength / 4 <= setting.values[0] <= 4 * strength
        assert width / 4 <= setting.values[1] <= 4 * width
    kept = [BY_NAME["boosting"].vary(rng, (0.02, 127, 0.2, 50, 20.0, 0.6, "codes")).values for _ in range(3000)]
    # Seven in ten keep about 60 % of the values; the others draw all again.
    assert 0.5 < np.mean([values[1] == 127 for values in kept]) < 0.7


def test_families_in_reach_are_varied_until_nothing_helps(rng, monkeypatch):
    search = problem(rng)
    noise = rng.normal(size=len(search.y))

    def family(name, vary, start):
        make = Family(name, name, 5, "codes", (Setting("first", lambda shape: None, values=(start,)),), vary=vary)
        return make

    tried = []

    def attempt(family, setting, began, seconds, watch):
        # The loss is least at the value 2; "far" is ten standard errors behind.
        (value,) = setting.values
        loss = 1.0 + 0.1 * (value - 2.0) ** 2 + 0.2 * noise + 5.0 * (family.name == "far")
        search.results.append(Trial(family, setting, "done", loss))
        tried.append((family.name, value))

    near = family("near", lambda rng, best: Setting("", lambda shape: None, values=(best[0] + rng.normal(),)), 0.0)
    far = family("far", lambda rng, best: Setting("", lambda shape: None, values=(2.0,)), 2.0)
    monkeypatch.setattr(search, "_try", attempt)
    search.simple = False
    for f in (near, far):
        attempt(f, f.settings[0], 0, 0, None)
    search._vary([near, far], 0.0, 1e12, lambda results: None)
    assert [name for name, _ in tried].count("far") == 1
    assert abs(search.best("near").setting.values[0] - 2.0) < 0.7
    best = min(range(len(tried)), key=lambda k: abs(tried[k][1] - 2.0) + 9 * (tried[k][0] == "far"))
    assert len(tried) - 1 - best <= MOST_FAILURES  # it ended soon after the last that was better
    search.simple, before = True, len(tried)
    search._vary([near, far], 0.0, 1e12, lambda results: None)
    assert len(tried) == before


def test_a_mean_of_networks_takes_weights(rng):
    X, y = rng.normal(size=(60, 2)), rng.normal(size=60)
    weight = np.repeat([0.0, 1.0], 30)
    blend = Blend([hg.Ridge(alpha=1e-6), hg.Ridge(alpha=1.0)], [0.5, 0.5]).fit(X, y, weight)
    alone = Blend([hg.Ridge(alpha=1e-6), hg.Ridge(alpha=1.0)], [0.5, 0.5]).fit(X[30:], y[30:])
    np.testing.assert_allclose(blend.predict(X), alone.predict(X), rtol=1e-6)


@pytest.mark.mission("T9")
def test_the_least_loss_of_many_is_too_good_and_the_ensemble_wins_ties(rng):
    search = problem(rng)
    n = len(search.y)
    noise = rng.normal(size=(40, n))
    families = [BY_NAME["boosting"]] * 40
    search.results = [Trial(BY_NAME["baseline"], BY_NAME["baseline"].settings[0], "done", np.full(n, 3.0))]
    # Forty settings that are equally good but for chance: their least mean is below one, their choice is worth one.
    search.results += [Trial(f, f.settings[0], "done", 1.0 + noise[k]) for k, f in enumerate(families)]
    least = min(float(np.mean(r.loss)) for r in search.results)
    assert least < 0.95
    assert least + optimism_of(search.results, search.folds) == pytest.approx(
        1.0, abs=4.0 / np.sqrt(n)
    )  # a mean of n unit deviations
    together = Trial(
        FAMILY,
        BY_NAME["boosting"].settings[0],
        "done",
        np.full(n, least + 0.5 * optimism_of(search.results, search.folds)),
    )
    together.members = [(search.results[1], 0.5), (search.results[2], 0.5)]
    search.results.append(together)
    search.simple = False
    assert search.choose() is together
    search.simple = True
    assert search.choose() is not together
    # One setting alone is not chosen among many: nothing is too good.
    search.results = search.results[:2]
    assert optimism_of(search.results, search.folds) == 0.0


def test_a_family_that_was_too_slow_is_not_tried_again(rng):
    search = problem(rng)
    family = BY_NAME["forest"]
    search.results = [Trial(BY_NAME["baseline"], BY_NAME["baseline"].settings[0], "done", np.ones(len(search.y)))]
    search.results.append(Trial(family, family.settings[0], "no time"))
    search._try(family, family.settings[0], 0.0, 1e12, lambda results: None)
    assert len(search.results) == 2


def test_importances_of_many_columns_at_once_are_those_of_one_after_the_other(rng):
    from hinge.explain.importance import importance_of_stacked_copies, permutation_importance
    from hinge.learning.effects import importances

    frame = pl.DataFrame({f"x{j}": rng.normal(size=300) for j in range(5)})
    y = 3 * frame["x0"].to_numpy() + frame["x3"].to_numpy()
    model = hg.LinearRegression().fit(frame, y)
    measure = problem(rng).measure
    slow = permutation_importance(model, frame, y, measure=measure, n_repeats=3)
    quick = importance_of_stacked_copies(model, frame, y, measure=measure)
    assert quick.names == slow.names
    assert np.argsort(-quick.importances_mean)[:2].tolist() == [0, 3]
    np.testing.assert_allclose(quick.importances_mean, slow.importances_mean, rtol=0.3, atol=1e-6)
    once = permutation_importance(model, frame, y, measure=measure, n_repeats=1)
    used = [0, 3]
    np.testing.assert_allclose(quick.standard_error[used], once.standard_error[used], rtol=0.4)
    assert importances(model, frame, y, measure, 0, seconds=0.0)[0].name == "x0"


def trial(name, loss, members=()):
    made = Trial(FAMILY if members else BY_NAME[name], BY_NAME["boosting"].settings[0], "done", loss)
    made.members = list(members)
    return made


def test_the_ensemble_is_chosen_unless_one_model_is_clearly_better_or_one_to_read_is_as_good(rng):
    n, noise = 4000, rng.normal(size=4000)
    noise -= noise.mean()
    folds = split(np.zeros(n), "real", 5, 0)
    base, kernel = trial("baseline", 3.0 + noise), trial("kernel", 1.0 + 0.0 * noise)
    linear = trial("linear", 1.1 + 0.0 * noise)
    level = trial("", 1.01 + noise, [(kernel, 0.5), (linear, 0.5)])  # behind the kernel by 0.6 standard errors
    assert choose([base, kernel, linear, level], folds, root=False, simple=False) is level
    behind = trial("", 1.05 + noise, [(kernel, 0.5), (linear, 0.5)])  # by three
    assert choose([base, kernel, linear, behind], folds, root=False, simple=False) is kernel
    readable = trial("linear", 1.001 + 0.0 * noise)
    assert choose([base, kernel, readable, level], folds, root=False, simple=False) is readable


def test_members_that_are_boosted_are_means_of_copies_if_there_is_time(rng):
    frame = pl.DataFrame({"a": rng.normal(size=300), "b": rng.normal(size=300)})
    y = frame["a"].to_numpy() + 0.1 * rng.normal(size=300)
    search = Search.over(frame, y, None, "real", {"a": "number", "b": "number"}, 0)
    boosted = Trial(
        BY_NAME["boosting"], BY_NAME["boosting"].settings[1], "done", train_rows=300, fit_seconds=1.0, rounds=8
    )
    linear = Trial(BY_NAME["linear"], BY_NAME["linear"].settings[0], "done", train_rows=300, fit_seconds=1.0)
    refit = Refit(frame, y, search, trial("", np.zeros(300), [(boosted, 0.6), (linear, 0.4)]), False)
    refit.afford([300], 2.5)
    assert refit.copies == 1
    refit.afford([300], 4.5)  # one of each costs two seconds; a further copy costs one
    assert refit.copies == 3
    refit.afford([300], 1000.0)
    assert refit.copies == MOST_COPIES
    model = refit.fit(np.arange(300))
    blend = model.named_steps["model"]
    assert blend.weights == pytest.approx([0.6 / MOST_COPIES] * MOST_COPIES + [0.4])
    copies = [member.predict(frame) for member in blend.members_[:-1]]
    assert np.ptp(copies, axis=0).max() > 0  # they differ
    lean = refit.lean(model).named_steps["model"]
    np.testing.assert_allclose(lean.predict(frame), 0.6 * copies[0] + 0.4 * blend.members_[-1].predict(frame))
    assert len(refit.single().fit(np.arange(300)).named_steps["model"].members_) == 2


def test_boosting_plans_its_rounds_by_those_before(rng):
    search = problem(rng)
    assert search._rounds_in(10.0, (1000, 5)) is None  # nothing is known
    search._keep_pace(0.01, (1000, 5))
    assert search._rounds_in(10.0, (1000, 5)) == 800
    assert search._rounds_in(10.0, (4000, 5)) == 200
    assert search._rounds_in(0.0, (4000, 5)) == FEWEST_ROUNDS
    search._keep_pace(0.005, (1000, 5))  # the slowest counts …
    assert search._rounds_in(10.0, (1000, 5)) == 800
    search._keep_pace(9.0, (100, 5))  # … and fits to fewer rows do not
    assert search._rounds_in(10.0, (1000, 5)) == 800
    search._keep_pace(0.01, (2000, 5))
    assert search._rounds_in(10.0, (1000, 5)) == 1600


@pytest.mark.parametrize("kind", ["number", "category"])
@pytest.mark.parametrize("encode", ["dummies", "means"])
def test_categories_are_encoded_in_other_ways_for_boosting(rng, kind, encode):
    levels = rng.integers(0, 6, 400)
    frame = pl.DataFrame({"a": [None if v == 5 else f"l{v}" for v in levels] if kind == "category" else levels / 1.0})
    y = np.array([3.0, -1.0, 2.0, 0.0, 1.0, 5.0])[levels]
    search = Search.over(frame, y, None, "real", {"a": kind}, 0)
    boosting = BY_NAME["boosting"]
    setting = _boosting(0.05, 7, 1.0, l2=0.1, encode=encode)
    search._try(BY_NAME["baseline"], BY_NAME["baseline"].settings[0], time.perf_counter(), 600.0, lambda results: None)
    search._try(boosting, setting, time.perf_counter(), 600.0, lambda results: None)
    found = search.results[1]
    assert found.state == "done"
    assert np.mean(found.loss) < 0.05 * np.var(y)
    assert set(search.folds[0].prepared) == {"codes", encode} if kind == "category" else {"codes"}
    model = Refit(frame, y, search, found, False).fit(np.arange(400)).named_steps["model"]
    assert model.categorical_features is None


def test_the_best_settings_go_on_to_more_rows(rng, monkeypatch):
    frame = pl.DataFrame({"a": rng.normal(size=900)})
    y = frame["a"].to_numpy() + 0.5 * rng.normal(size=900)
    few, more = (Search.over(frame[:n], y[:n], None, "real", {"a": "number"}, 0) for n in (300, 900))
    noise = rng.normal(size=300)
    noise -= noise.mean()
    means = {"baseline": 9.0, "linear": 1.0, "boosting": 1.01, "forest": 8.0}
    few.results = [trial(name, mean + noise * (1 + k)) for k, (name, mean) in enumerate(means.items())]
    few.results += [trial("boosting", 1.1 + noise + 0.1 * k) for k in range(9)]
    for k, result in enumerate(few.results):
        result.setting = Setting(f"setting {k}", lambda shape: None)
        result.train_rows, result.rounds = 200, 10 if result.family.name == "boosting" else None
        few.finish(result)
    tried = []

    def attempt(family, setting, began, seconds, watch):
        tried.append((family.name, setting.name))

    monkeypatch.setattr(more, "_try", attempt)
    monkeypatch.setattr(more, "_vary", lambda *_: None)
    more.run_best(few, 100.0)
    assert tried[:3] == [("baseline", "setting 0"), ("linear", "setting 1"), ("boosting", "setting 2")]
    assert len(tried) == 3 + MORE_SETTINGS
    rough = {result.family.name: result.why for result in more.results if result.state == "rough"}
    assert "on 300 rows" in rough["forest"]


def test_large_tables_are_searched_on_few_rows_first(rng):
    n = 30_000
    frame = pl.DataFrame(
        {f"x{j}": rng.normal(size=n) for j in range(5)} | {"y": rng.permutation(np.arange(n) % 10).astype(str)}
    )
    data = hg.profile(frame, "y", task="multiclass")
    every = np.arange(n)
    few = few_rows(data, every, Request(frame, "y", seconds=5.0))
    assert len(few) == pytest.approx(HALVING_WORK * 5.0 / 50, rel=0.01)
    assert set(few) < set(every)
    assert len(few_rows(data, every, Request(frame, "y", seconds=60.0))) == n


@pytest.mark.parametrize(("columns", "folds"), [(20, 10), (1200, 3)])
def test_tables_of_very_many_columns_have_few_folds(columns, folds):
    kinds = {f"x{j}": "number" for j in range(columns)}
    assert len(Search.over(None, np.arange(40.0), None, "real", kinds, 0).folds) == folds
