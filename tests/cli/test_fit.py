"""``hinge fit`` as a user sees it."""

from __future__ import annotations

import json
import time

import numpy as np
import pytest

import hinge as hg
from hinge.learning.candidates import FAMILIES
from hinge.learning.fits import common_rounds, fit_model
from hinge.learning.refit import Refit
from hinge.learning.run import REPORT_FITS, REPORT_SECONDS, after_search, last_fits
from hinge.learning.scores import measure_for
from hinge.learning.search import Search
from hinge.learning.trials import Trial, split
from kit.command import dirty, table

pl = pytest.importorskip("polars", reason="tables need the [cli] extra")

# Time enough: what is tried must not depend on how busy the machine is.
QUICK = ("--time", "600", "--models", "linear,tree")


def test_a_dirty_file_gives_a_model_and_remarks_on_it(hinge, tmp_path):
    data = dirty(tmp_path / "dirty.csv")
    code, out, err = hinge("fit", data, "--target", "target", "--out", tmp_path / "out", *QUICK)
    assert code == 0, err
    for remark in ("D01 constant", "D02 id", "D03 copy of age", "D04 leak", "D06", "D07 age", "D12"):
        assert remark in out
    for file in ("model.hinge", "report.html", "predictions.csv"):
        assert (tmp_path / "out" / file).stat().st_size > 0
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "東京" in page
    assert "Leaked target" in page
    # The file that was learned from can be predicted, dirt and all.
    code, out, err = hinge("predict", tmp_path / "out" / "model.hinge", data)
    assert code == 0
    assert out.count("\n") == 601
    assert "unknown" in err or "not a number" in err


def test_the_clock_starts_with_the_command(fit, tmp_path):
    began = time.perf_counter()
    printed = fit(table(tmp_path / "data.csv"), "--target", "y", *QUICK, "--out", tmp_path / "out")
    assert 0 < printed["seconds"] < time.perf_counter() - began


@pytest.mark.parametrize("rows", [None, 300])
def test_predictions_carry_the_row_numbers_of_the_file(fit, tmp_path, rows):
    data = dirty(tmp_path / "dirty.csv")
    some = () if rows is None else ("--rows", str(rows))
    card = fit(data, "-t", "target", "-o", tmp_path / "out", "--time", "600", "--models", "linear", *some)
    held = pl.read_csv(tmp_path / "out" / "predictions.csv")
    lines = data.read_text(encoding="utf-8").splitlines()  # line 0 is the header; one line is blank
    assert held.height == card["rows"] < (rows or 600)
    assert held["target"].to_list() == [lines[row].rpartition(",")[2] for row in held["row"].to_list()]


def test_a_row_is_explained_by_its_number_in_the_file(hinge, tmp_path):
    data = table(tmp_path / "t.csv", n=120)
    lines = data.read_text().splitlines()
    lines.insert(40, ",,,")
    data.write_text("\n".join(lines) + "\n")
    assert hinge("fit", data, "-t", "y", "-o", tmp_path / "out", *QUICK)[0] == 0
    model = tmp_path / "out" / "model.hinge"
    printed = json.loads(hinge("explain", model, data, "--row", "41", "--json")[1])
    assert {c["column"]: c["value"] for c in printed["contributions"]}["c"] == lines[41].split(",")[2]
    code, _, err = hinge("explain", model, data, "--row", "40")
    assert code == 2
    assert "not there" in err


def test_doubtful_targets_are_named_by_their_row_in_the_file(fit, tmp_path):
    data = table(tmp_path / "t.csv")
    lines = data.read_text().splitlines()
    lines[61] = "9.0,9.0,red,no"  # as clear a yes as there is
    lines.insert(40, ",,,")  # a row without values is left out, but counts
    data.write_text("\n".join(lines) + "\n")
    card = fit(data, "-t", "y", "-o", tmp_path / "out", "--models", "linear", "--time", "600")
    seen = next(text for code, text, _ in card["advice"] if code == "H508")
    assert "rows 62, " in seen or "rows 62." in seen


@pytest.mark.parametrize("task", ["binary", "multiclass", "real", "count"])
def test_every_task_beats_the_constant_and_writes_the_scored_predictions(fit, tmp_path, task):
    card = fit(table(tmp_path / "t.csv", n=1200, task=task), "-t", "y", "-o", tmp_path / "out", *QUICK)
    assert card["task"] == task
    assert card["explained"] > 0.2
    assert next(row["name"] for row in card["board"]) == "baseline"
    held = pl.read_csv(tmp_path / "out" / "predictions.csv")
    assert held.height == 240
    # The score in the card is that of the predictions in the file.
    if task in ("real", "count"):
        y, p = held["y"].to_numpy().astype(float), held["predicted y"].to_numpy()
    else:
        classes = card["classes"]
        y = np.array([classes.index(v) for v in held["y"].to_list()], dtype=float)
        p = np.column_stack([held[f"probability {c}"].to_numpy() for c in classes])
        assert np.allclose(p.sum(axis=1), 1.0)
    mean = pl.read_csv(tmp_path / "t.csv")["y"].mean() if task == "count" else 1.0
    measure = measure_for(task, card["classes"] or None, mean)
    loss = measure.pointwise(y if task in ("real", "count") else y.astype(int), p)
    assert measure.estimate(loss).value == pytest.approx(card["score"], rel=1e-6)


def test_held_out_rows_are_not_learned_from(fit, tmp_path):
    data = table(tmp_path / "t.csv", n=1200, task="real")
    fit(data, "-t", "y", "-o", tmp_path / "out", *QUICK)
    held = pl.read_csv(tmp_path / "out" / "predictions.csv")
    whole = pl.read_csv(data)
    rows = held["row"].to_numpy() - 1
    assert np.array_equal(whole["y"].to_numpy()[rows], held["y"].to_numpy())
    final = hg.load(tmp_path / "out" / "model.hinge").predict(whole.drop("y"))
    # The final model has seen these rows and the model that was scored has not: they differ.
    assert not np.allclose(final[rows], held["predicted y"].to_numpy())


def test_a_seed_makes_it_repeatable(fit, tmp_path):
    data = table(tmp_path / "t.csv")
    cards = [
        fit(data, "-t", "y", "-o", tmp_path / f"o{k}", "--seed", seed, "--models", "linear", "--time", 600)
        for k, seed in enumerate((3, 3, 4))
    ]
    first, again, other = ((tmp_path / f"o{k}" / "predictions.csv").read_bytes() for k in range(3))
    assert first == again
    assert first != other
    assert cards[0]["score"] == cards[1]["score"]


def test_a_hundred_rows_are_enough(fit, tmp_path):
    card = fit(
        table(tmp_path / "t.csv", n=100),
        "-t",
        "y",
        "-o",
        tmp_path / "out",
        "--time",
        "600",
        "--models",
        "linear,boosting",
    )
    assert "each predicted by a model fitted without it" in card["held_out"]
    assert any(code == "D11" for code, _, _ in card["notes"])


def test_noise_is_called_noise(fit, tmp_path):
    rng = np.random.default_rng(0)
    data = tmp_path / "noise.csv"
    pl.DataFrame({"a": rng.normal(size=400), "b": rng.normal(size=400), "y": rng.normal(size=400)}).write_csv(data)
    card = fit(data, "-t", "y", "-o", tmp_path / "out", *QUICK)
    assert any(code == "D15" for code, _, _ in card["notes"])
    assert card["chosen"] == "baseline"


def test_an_embedded_set_needs_no_file(hinge, tmp_path):
    code, out, _ = hinge("fit", "heart", "--out", tmp_path / "out", "--models", "linear", "--time", "600")
    assert code == 0
    assert "gap" in out


def test_a_folder_may_bear_the_name_of_an_embedded_set(hinge, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "heart").mkdir()
    code, out, err = hinge("fit", "heart", "-o", "heart", "--models", "baseline", "--time", "600")
    assert code == 0, err
    assert "Cross-validated: log loss" in out


@pytest.mark.parametrize(
    ("args", "code", "message"),
    [
        (("nowhere.csv", "-t", "y"), 3, "does not exist"),
        (("{data}", "-t", "z"), 3, "no column 'z'"),
        (("{data}",), 3, "--target"),
        (("{data}", "-t", "y", "--task", "rank"), 2, "--task rank"),
        (("{data}", "-t", "y", "--models", "magic"), 2, "--models magic"),
        (("{data}", "-t", "y", "--time", "0"), 2, "--time"),
        (("{data}", "-t", "y", "--out", "{data}"), 2, "not a folder"),
        (("{data}", "-t", "c", "--task", "real"), 3, "holds text"),
    ],
)
def test_mistakes_are_answered_in_one_line(hinge, tmp_path, args, code, message):
    data = table(tmp_path / "t.csv")
    got, out, err = hinge("fit", *(a.format(data=data) for a in args))
    assert got == code
    assert message in err
    assert err.startswith("hinge: ")
    assert err.count("\n") == 1
    assert "Traceback" not in out + err


def test_a_folder_that_cannot_be_written_in_the_end_is_reported(hinge, tmp_path, monkeypatch):
    monkeypatch.setattr("hinge.cli.app.check_place", lambda out, folder=False: None)  # it could be, in the beginning
    data = table(tmp_path / "t.csv")
    blocked = tmp_path / "file"
    blocked.write_text("")
    code, _, err = hinge("fit", data, "-t", "y", "-o", blocked / "sub", "--models", "linear", "--time", "600")
    assert code == 3
    assert "Traceback" not in err


def test_version_help_and_completion(hinge):
    assert hinge("--version")[1].strip() == f"hinge {hg.__version__}"
    code, out, _ = hinge("--help")
    assert code == 0
    for command in ("fit", "predict", "report", "compare", "explain", "inspect", "verify", "export", "datasets", "tag"):
        assert command in out
    assert "Exit codes" in out
    assert "--show-completion" in out
    code, _, err = hinge("fitt")
    assert code == 2
    assert "Traceback" not in err


def test_without_its_packages_the_command_names_what_to_install(hinge, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "hinge.cli.app", None)
    code, _, err = hinge("fit", "heart")
    assert code == 2
    assert "pip install 'hinge-learn[cli]'" in err


def test_datasets_are_listed_and_written(hinge, tmp_path):
    code, out, _ = hinge("datasets", "--json")
    assert code == 0
    assert json.loads(out)["heart"]["target"] == "num"
    code, _, _ = hinge("datasets", "insurance", "--out", tmp_path / "i.csv")
    assert code == 0
    assert pl.read_csv(tmp_path / "i.csv").height == 1338
    assert hinge("datasets", "iris")[0] == 2


# --- time ---


def test_no_time_at_all_still_gives_a_model(fit, tmp_path):
    card = fit(table(tmp_path / "t.csv", n=1200), "-t", "y", "-o", tmp_path / "out", "--time", "0.01")
    assert card["board"][0]["state"] == "done"
    assert hg.load(tmp_path / "out" / "model.hinge") is not None


def fitting(n, fit_seconds, rounds=None, sampled=True):
    """A setting that took so long on a tenth of the rows."""
    rng = np.random.default_rng(0)
    frame = pl.DataFrame({"a": rng.normal(size=n), "b": rng.normal(size=n)})
    y = frame["a"].to_numpy() + 0.1 * rng.normal(size=n)
    sample = np.arange(0, n, 10)
    search = Search.over(frame[sample], y[sample], None, "real", {"a": "number", "b": "number"}, 0)
    family = next(f for f in FAMILIES if f.name == ("boosting" if rounds else "linear"))
    chosen = Trial(family, family.settings[0], "done", train_rows=len(sample), fit_seconds=fit_seconds, rounds=rounds)
    return Refit(frame, y, search, chosen, sampled)


def test_the_model_that_is_scored_makes_do_with_fewer_rows_if_time_is_short():
    whole = fitting(4000, fit_seconds=1.0)
    train, test = np.arange(3000), np.arange(3000, 4000)
    _, plenty, _ = last_fits(whole, train, test, 100.0)
    assert len(plenty) == 3000
    _, rows, final = last_fits(
        whole, train, test, 10.0
    )  # five seconds for it; the training rows would take seven and a half
    assert len(rows) == 2000
    assert set(rows) <= set(train)
    assert final.named_steps["prep"].n_features_in_ == 2


def test_boosting_keeps_to_the_time_by_its_rounds():
    whole = fitting(6000, fit_seconds=1.0, rounds=100)
    quick = whole.fit(np.arange(6000), seconds=5.0)  # a tenth took 1 s for 120 rounds, so 5 s are for 60 rounds of all
    assert quick.named_steps["model"].n_iter_ <= 60
    assert whole.cut is None or whole.cut == (60, 110)  # reported only if early stopping had gone on
    assert whole.rounds is not None  # what early stopping found on many rows …
    again = whole.fit(np.arange(6000))
    assert again.named_steps["model"].n_iter_ == whole.rounds  # … is what the last fit uses, with no row set aside
    whole.fit(np.arange(6000), seconds=1.7)  # 20 rounds
    assert whole.cut == (20, whole.rounds)


def test_what_would_take_too_long_on_all_rows_is_not_chosen():
    by_name = {f.name: f for f in FAMILIES}
    search = Search(None, np.zeros(100), None, "real", {}, 0, [])
    for name, loss, seconds in (("baseline", 2.0, 0.01), ("linear", 1.0, 0.1), ("forest", 0.5, 9.0)):
        result = Trial(by_name[name], by_name[name].settings[0], "done", np.full(100, loss))
        result.train_rows, result.fit_seconds = 80, seconds
        search.results.append(result)
    assert search.choose().family.name == "forest"
    search.leave_out_slow(1000, 60.0)
    assert search.choose().family.name == "linear"
    assert "would take about 1" in search.results[2].why
    search.leave_out_slow(1000, 0.1)  # late, but the last one that learns anything
    assert search.choose().family.name == "linear"


# --- the parts of the search ---


@pytest.mark.parametrize("rows", [500, 5000])
def test_where_rows_are_few_every_family_has_its_turn_early(rows, monkeypatch):
    order = []
    monkeypatch.setattr(Search, "_try", lambda self, family, setting, *_: order.append(family.name))
    monkeypatch.setattr(Search, "_look", lambda self, family, seconds: None)
    monkeypatch.setattr(Search, "_distance", lambda self, family: 0.0)
    Search(None, np.zeros(rows), None, "real", {}, 0, []).run(list(FAMILIES), 60.0)
    assert len(order) == sum(len(f.settings) for f in FAMILIES)
    second = [k for k, name in enumerate(order) if name == "boosting"][1]
    assert (order.index("forest") < second) == (rows == 500)
    linear = [k for k, name in enumerate(order) if name == "linear"]
    assert (linear[-1] < order.index("forest")) == (rows == 500)


def test_time_is_reserved_for_the_steps_after_the_search():
    slow = Trial(FAMILIES[3], FAMILIES[3].settings[0], "done", np.ones(3), train_rows=1000, fit_seconds=1.0)
    assert after_search(None, 1000, 1200, 60.0) == pytest.approx(0.12 * 60)  # nothing is known: the least for a report
    assert after_search(slow, 1000, 1200, 60.0) == pytest.approx(1.0 + 1.2 + REPORT_SECONDS + REPORT_FITS * 1.0)
    assert after_search(slow, 100_000, 120_000, 60.0) == 30.0  # never more than half
    search = Search(None, np.zeros(3), None, "real", {}, 0, [], afterwards=lambda best: 50.0)
    began = time.perf_counter()
    assert search._until(began, 60.0) == pytest.approx(18.0, abs=1.0)  # with nothing found it goes on nevertheless
    search.results = [slow, slow]
    assert search._until(began, 60.0) == pytest.approx(10.0)


def test_boosting_takes_the_rounds_that_are_best_over_all_folds(rng):
    X, noise = rng.normal(size=(400, 3)), rng.normal(size=400)
    y = np.digitize(X[:, 0] + 0.5 * noise, [-0.5, 0.5])
    models = [
        hg.HistGradientBoostingClassifier(max_iter=60, n_iter_no_change=5, early_stopping=True).fit(
            X[rows], y[rows], X_val=X[~rows], y_val=y[~rows]
        )
        for rows in (np.arange(400) % 2 == 0, np.arange(400) % 2 == 1)
    ]
    rounds = common_rounds(models)
    curves = [m.validation_score_[: min(m.n_iter_ for m in models)] for m in models]
    assert rounds == np.argmin(np.mean(curves, axis=0)) + 1
    staged = list(models[0].staged_predict_proba(X))
    short = models[0].first_rounds(rounds)
    np.testing.assert_allclose(short.predict_proba(X), staged[rounds - 1], rtol=1e-12)
    assert models[0].n_iter_ == len(staged)  # the model itself is as it was


def test_folds_of_boosting_do_not_choose_their_own_rounds(rng):
    frame = pl.DataFrame({f"x{j}": rng.normal(size=300) for j in range(3)})
    y = (frame["x0"].to_numpy() + rng.normal(size=300) > 0).astype(float)
    family = next(f for f in FAMILIES if f.name == "additive")
    search = Search.over(frame, y, np.array(["no", "yes"]), "binary", dict.fromkeys(frame.columns, "number"), 0)
    search.run([FAMILIES[0], family], 600.0)
    result = search.results[1]
    assert result.state == "done"
    # Every fold was predicted by a model of the same number of rounds.
    for fold in search.folds:
        prep, X, Z, _ = search.prepare(fold, "codes")
        changes = {"early_stopping": False, "max_iter": result.rounds}
        model = fit_model(result.setting, search, prep, X, search.labels(y[fold.train]), **changes)
        np.testing.assert_allclose(search.measure.output(model, Z), result.predictions[fold.test], rtol=1e-9)


def test_folds_partition_the_rows_and_keep_the_classes_together(rng):
    y = np.sort(rng.choice([0.0, 1.0, 2.0], 300, p=[0.8, 0.17, 0.03]))
    folds = split(y, "multiclass", 5, 0)
    assert np.array_equal(np.sort(np.concatenate([f.test for f in folds])), np.arange(300))
    for fold in folds:
        assert not set(fold.train) & set(fold.test)
        for c in range(3):
            assert abs(np.sum(y[fold.test] == c) - np.sum(y == c) / 5) <= 1


@pytest.mark.mission("V2")
def test_the_one_standard_error_rule_takes_the_simplest_that_is_not_clearly_worse(rng):
    by_name = {f.name: f for f in FAMILIES}
    for _ in range(50):
        n = 200
        names = rng.permutation(["baseline", "sparse", "linear", "tree", "additive", "boosting"])
        search = Search(None, np.zeros(n), None, "real", {}, 0, [])
        for name in names:
            loss = rng.gamma(2.0, size=n) * rng.uniform(0.9, 1.2)
            search.results.append(Trial(by_name[name], by_name[name].settings[0], "done", loss))
        chosen = search.choose()
        best = min(search.results, key=lambda r: r.loss.mean())

        def behind(r, best=best, n=n):
            difference = r.loss - best.loss
            return difference.mean() > difference.std(ddof=1) / np.sqrt(n)

        allowed = [r for r in search.results if not behind(r)]
        assert chosen.family.rank == min(r.family.rank for r in allowed)


@pytest.mark.parametrize("task", ["real", "count", "binary", "multiclass"])
def test_losses_are_those_of_scikit_learn(rng, task):
    from sklearn import metrics

    n = 200
    if task == "real":
        y, p = rng.normal(size=n), rng.normal(size=n)
        expected = metrics.root_mean_squared_error(y, p)
    elif task == "count":
        y, p = rng.poisson(2, n).astype(float), rng.gamma(2.0, size=n)
        expected = metrics.mean_poisson_deviance(y, p)
    else:
        k = 2 if task == "binary" else 4
        y, p = rng.integers(0, k, n).astype(float), rng.dirichlet(np.ones(k), n)
        expected = metrics.log_loss(y, p, labels=range(k))
    measure = measure_for(task, None if task in ("real", "count") else np.arange(k))
    loss = measure.pointwise(y if task in ("real", "count") else y.astype(int), p)
    assert measure.estimate(loss).value == pytest.approx(expected, rel=1e-9)
