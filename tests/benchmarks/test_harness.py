"""The benchmark harness on problems small enough to check by hand. Nothing here asserts a time."""

from __future__ import annotations

import importlib
import itertools
import json
import sys

import numpy as np
import pytest
import scipy.optimize
from benchmarks.draws import mark_equal, merged, run_draws
from benchmarks.harness import Contender, Linear, Problem, Score, Settings, Task
from benchmarks.judges import OBJECTIVES, ChainWeights, Expansion
from benchmarks.machine import Ceilings, Work
from benchmarks.measure import Spread, peak_extra_memory, repeats_for
from benchmarks.race import Climb, explore, mark_equal_quality, run_task, settled
from benchmarks.results import Result, Row, Rung, fastest, loosest, ratio, suboptimality

from benchmarks import __main__ as command
from benchmarks import libraries, report

CEILINGS = Ceilings(bandwidth=1e9, dgemm=1e10, sgemm=2e10)


def tiny(kind: str, **params) -> Problem:
    X = np.array([[1.0, 0.0], [0.0, 2.0], [1.0, 1.0]])
    return Problem(kind, X, np.array([1.0, -1.0, 1.0]), params, X, np.array([1.0, -1.0, 1.0]))


ANSWER = Linear(np.array([1.0, -0.5]), 0.5)  # scores 1.5, −0.5, 1.0


@pytest.mark.parametrize(
    ("kind", "params", "expected"),
    [
        ("ridge", {"alpha": 2.0}, 0.25 + 0.25 + 0.0 + 2.0 * 1.25),
        ("lasso", {"alpha": 2.0}, 0.5 / 6 + 2.0 * 1.5),
        ("logistic_l2", {"C": 2.0}, 2.0 * np.log1p(np.exp([-1.5, -0.5, -1.0])).sum() + 0.625),
        ("logistic_l1", {"alpha": 0.1}, np.log1p(np.exp([-1.5, -0.5, -1.0])).mean() + 0.15),
        ("linear_svm", {"C": 2.0, "loss": "hinge"}, 2.0 * 0.5 + 0.625),
        ("linear_svm", {"C": 2.0, "loss": "squared_hinge"}, 2.0 * 0.25 + 0.625),
        ("quantile", {"quantile": 0.7, "alpha": 0.1}, (0.3 * 0.5 + 0.3 * 0.5) / 3 + 0.15),
    ],
)
def test_judges_compute_the_stated_objective(kind, params, expected):
    assert OBJECTIVES[kind](tiny(kind, **params), ANSWER) == pytest.approx(expected, rel=1e-14)


def test_the_path_judge_sums_the_elastic_net_over_the_columns():
    alphas = np.array([0.5, 0.1])
    coefs = np.array([[0.0, 1.0], [0.0, -0.5]])
    problem = tiny("elastic_net_path", alphas=alphas, l1_ratio=0.3)
    one_by_one = sum(
        OBJECTIVES["lasso"](tiny("lasso", alpha=a, l1_ratio=0.3), Linear(w)) for a, w in zip(alphas, coefs.T)
    )
    assert OBJECTIVES["elastic_net_path"](problem, coefs) == pytest.approx(one_by_one, rel=1e-14)


def test_the_multinomial_judge_is_the_softmax_loss():
    X, y = np.array([[1.0], [2.0]]), np.array([0, 2])
    W = np.array([[0.0], [1.0], [2.0]])
    problem = Problem("multinomial_l2", X, y, {"C": 3.0})
    losses = [np.log(np.exp([0, 1, 2]).sum()) - 0, np.log(np.exp([0, 2, 4]).sum()) - 4]
    assert OBJECTIVES["multinomial_l2"](problem, Linear(W)) == pytest.approx(3.0 * sum(losses) + 2.5, rel=1e-14)


def test_the_huber_judge_profiles_out_the_scale():
    rng = np.random.default_rng(0)
    problem = Problem("huber", rng.standard_normal((40, 2)), rng.standard_t(2, 40), {"epsilon": 1.35, "alpha": 0.1})
    residual = np.abs(problem.y - problem.X @ ANSWER.coef - ANSWER.intercept)

    def at(sigma):
        z = residual / sigma
        return (sigma * (1 + np.where(z <= 1.35, z**2, 2 * 1.35 * z - 1.35**2))).sum() + 0.1 * 1.25

    best = scipy.optimize.minimize_scalar(at, bounds=(1e-3, 10), method="bounded", options={"xatol": 1e-10}).fun
    assert OBJECTIVES["huber"](problem, ANSWER) == pytest.approx(best, rel=1e-12)


def test_the_chain_judge_is_the_likelihood_by_enumeration():
    rng = np.random.default_rng(0)
    words, labels = [["a", "b"], ["b"], ["c", "unknown"]], ["x", "y", "x"]
    state, transitions = rng.standard_normal((3, 2)), rng.standard_normal((2, 2))
    answer = ChainWeights({"a": 0, "b": 1, "c": 2}, ["x", "y"], state, transitions)

    def score(path):
        emitted = state[[0, 1]].sum(axis=0)[path[0]] + state[1, path[1]] + state[2, path[2]]
        return emitted + transitions[path[0], path[1]] + transitions[path[1], path[2]]

    everything = np.log(sum(np.exp(score(path)) for path in itertools.product(range(2), repeat=3)))
    penalty = 0.3 * 0.5 * (np.square(state).sum() + np.square(transitions).sum())
    problem = Problem("chain_crf", [words], [labels], {"l2": 0.3})
    expected = everything - score((0, 1, 0)) + penalty
    assert OBJECTIVES["chain_crf"](problem, answer) == pytest.approx(expected, rel=1e-12)


def test_the_dual_judges_refuse_infeasible_answers_and_value_the_others():
    problem = tiny("svc", C=1.0, gamma=0.5)
    K = np.exp(-0.5 * np.square(problem.X[:, None] - problem.X[None]).sum(axis=2))
    beta = np.array([0.25, -0.75, 0.5])
    expected = 0.5 * beta @ K @ beta - 1.5
    for sign in (1.0, -1.0):  # libraries differ in which class is positive
        assert OBJECTIVES["svc"](problem, Expansion(np.arange(3), sign * beta)) == pytest.approx(expected)
    for broken in ([0.25, 0.75, -1.0], [0.5, -0.25, 0.5], [1.5, -2.0, 0.5]):  # signs, sum, box
        assert OBJECTIVES["svc"](problem, Expansion(np.arange(3), np.array(broken))) == np.inf
    problem = tiny("svr", C=1.0, gamma=0.5, epsilon=0.1)
    expected = 0.5 * beta @ K @ beta + 0.1 * 1.5 - problem.y @ beta
    assert OBJECTIVES["svr"](problem, Expansion(np.arange(3), beta)) == pytest.approx(expected)


def test_the_multiclass_judges_by_hand():
    X, y, W = np.array([[1.0], [2.0]]), np.array([0, 1]), np.array([[1.0], [0.5], [0.0]])
    problem = Problem("multiclass_svm", X, y, {"C": 2.0, "loss": "hinge"})
    # scores (1, .5, 0) and (2, 1, 0): violations 0.5 (class 1) and 2 (class 0)
    assert OBJECTIVES["multiclass_svm"](problem, Linear(W)) == pytest.approx(2.0 * 2.5 + 0.625)
    slack = [0.0, 1.5, 1.0, 3.0, 0.0, 1.0]
    assert OBJECTIVES["one_vs_rest_svm"](problem, Linear(W)) == pytest.approx(2.0 * sum(slack) + 0.625)


def quadratic(library: str = "peer", values=(3.0, 2.0, 1.0 + 5e-7, 1.0, 1.0), label: str = "") -> Contender:
    """A contender whose objective at each tolerance is given: ridge with X = 0, so the objective is (y − b)²."""
    by_tolerance = {10.0**-k: value for k, value in enumerate(values)}

    def fit(problem, tol):
        return Linear(np.zeros(1), -np.sqrt(by_tolerance[tol]))

    return Contender(library, label, fit, tuple(by_tolerance), answer=lambda m: m, predict=lambda m, X: X[:, 0])


def flat() -> Problem:
    return Problem("ridge", np.zeros((1, 1)), np.zeros(1), {"alpha": 1.0}, np.zeros((1, 1)), np.zeros(1))


def rungs(*objectives) -> list[Rung]:
    return [Rung(10.0**-k, 0.0, 0, objective) for k, objective in enumerate(objectives)]


def test_the_loosest_rung_within_the_target_is_chosen():
    ladder = rungs(3.0, 1.0 + 2e-6, 1.0 + 9e-7, 1.0)
    assert loosest(ladder, 1.0, 1e-6) is ladder[2]
    assert loosest(ladder, 0.5, 1e-6) is None
    assert loosest(rungs(None, None), 1.0, 1e-6) is None
    assert suboptimality(-0.9, -1.0) == pytest.approx(0.1)  # duals are negative


def test_a_climb_is_settled_when_tightening_changes_nothing():
    assert not settled(rungs(1.0), 1e-6)
    assert not settled(rungs(1.0 + 1e-6, 1.0), 1e-6)
    assert settled(rungs(2.0, 1.0 + 1e-8, 1.0), 1e-6)
    assert not settled(rungs(np.inf, np.inf), 1e-6)


def test_exploration_stops_once_the_best_is_reached_and_resumes_when_it_is_beaten():
    problem, settings = flat(), Settings()
    stalled = Climb(quadratic(values=(4.0, 4.0, 4.0, 2.0, 1.0)), problem, settings)  # looks settled at 4
    good = Climb(quadratic(), problem, settings)
    late = Climb(quadratic(values=(1.0, 1.0, 1.0, 1.0, 1.0)), problem, settings)
    assert explore([stalled, good, late]) == pytest.approx(1.0, abs=1e-12)
    assert len(stalled.row.rungs) == 5  # went on after the others had shown that more could be had
    assert len(late.row.rungs) == 1  # there at once
    assert good.choose(1.0).tolerance == pytest.approx(1e-2)
    assert good.row.reached


def test_a_contender_that_never_arrives_is_reported_with_how_far_it_got():
    task = Task("t", "s", flat, work=lambda p: Work(1e6, 1e7, "all of it"))
    short = quadratic("short", (3.0, 2.0, 1.5))
    result = run_task(task, lambda p, names: ([quadratic("peer"), short], []), Settings(1), CEILINGS)
    arrived, fell_short = result.rows
    assert arrived.reached
    assert not fell_short.reached
    assert fell_short.suboptimality == pytest.approx(0.5)
    assert fell_short.tolerance == pytest.approx(1e-2)
    assert result.best_peer is arrived
    assert result.floor == pytest.approx(1e-3 + 1e-3)
    assert "short of the target" in report.table(result)


def test_a_failure_is_recorded_and_the_others_go_on():
    def explode(problem, tol):
        raise RuntimeError("no such luck\nsecond line")

    entrants = [Contender("broken", "", explode), quadratic("peer")]
    result = run_task(Task("t", "s", flat), lambda p, names: (entrants, []), Settings(1), None)
    assert result.rows[0].note == "failed: RuntimeError: no such luck"
    assert result.rows[0].fit is None
    assert result.best_peer.library == "peer"
    assert "no such luck" in report.table(result)


def test_a_long_fit_ends_the_climb():
    climb = Climb(quadratic(), flat(), Settings(budget=-1.0))  # every fit is over budget
    climb.explore(None)
    assert len(climb.row.rungs) == 1
    assert climb.row.note.startswith("stopped")


def timed(library: str, seconds: float, reached: bool = True, predict: float | None = None) -> Row:
    row = Row(library, "", fit=Spread((seconds,)), reached=reached)
    row.predict = None if predict is None else Spread((predict,))
    return row


def test_ratios_compare_the_best_of_each_that_reached_the_target():
    rows = [
        timed("hinge", 0.5, predict=0.2),
        timed("hinge", 0.1, reached=False),
        timed("a", 2.0, predict=0.1),
        timed("b", 1.5, predict=0.3),
        timed("c", 0.01, reached=False),
    ]
    result = Result(Task("t", "s", flat, goal=2), (1, 1), rows, [], 1.0, 0.25, "")
    assert result.best_peer.library == "b"
    assert result.ratio == pytest.approx(3.0)
    assert result.predict_ratio == pytest.approx(0.5)  # against the quickest to predict, who is another
    assert "3.00×" in report.summary([result])
    assert ratio(None, rows[0], "fit") is None
    assert fastest([]) is None


def test_equal_quality_is_within_the_margin_of_the_best_score():
    rows = [Row("a", "", scores={"q": 0.90}), Row("b", "", scores={"q": 0.895}), Row("c", "", scores={"q": 0.7})]
    mark_equal_quality(rows, Score("q", None), 0.01)
    assert [row.reached for row in rows] == [True, True, False]
    mark_equal_quality(rows, Score("q", None, higher_is_better=False), 0.01)
    assert [row.reached for row in rows] == [False, False, True]


def test_equal_quality_over_draws_allows_for_the_noise_of_paired_differences():
    score = Score("accuracy", lambda problem, outcome: 0.0)

    def rows(*values):
        return [Row("peer", "", scores={"accuracy": v}, fit=Spread((1.0,))) for v in values]

    groups = [rows(0.90, 0.80, 0.70), rows(0.85, 0.83, 0.66), rows(0.88, 0.78, 0.68)]
    whole = [merged(group) for group in groups]
    mark_equal(whole, groups, score, 0.001)
    # The second is behind by (5, −3, 4) hundredths: 2 on average, standard error 2.5. The third by 2 each time.
    assert [row.reached for row in whole] == [True, True, False]
    assert whole[1].scores["accuracy"] == pytest.approx(0.78)
    assert len(whole[1].fit.times) == 3


def test_a_task_with_draws_is_run_on_each():
    seen = []

    def build(draw=0):
        seen.append(draw)
        return Problem("unjudged", np.ones((4, 1)), np.full(4, float(draw)), {}, np.ones((4, 1)), np.full(4, 1.0))

    mean = Contender("peer", "mean", lambda p, tol: p.y.mean(), predict=lambda model, X: np.full(len(X), model))
    error = Score("error", lambda p, outcome: abs(outcome.prediction - p.y_test).mean(), higher_is_better=False)
    task = Task("t", "", build, (error,), draws=3)
    result = run_draws(task, lambda problem, libraries: ([mean], []), Settings(), CEILINGS)
    assert seen == [0, 1, 2]
    assert result.rows[0].reached
    assert result.rows[0].scores["error"] == pytest.approx(2.0 / 3.0)


def test_spread_repeats_and_growth():
    assert Spread((3.0, 1.0, 2.0)).median == 2.0
    assert repeats_for(0.01, 3) == 7
    assert repeats_for(1.0, 3) == 3
    assert repeats_for(11.0, 3) == 1
    results = [
        Result(Task("t", "s", flat, growth=("series", n)), (n,), [timed("hinge", n * 1e-3)], [], None, None, "")
        for n in (1000, 10)
    ]
    assert report.growth(results) == {"series": {"hinge": [(10, 0.01), (1000, 1.0)]}}
    assert report.exponent([(10, 0.01), (1000, 1.0)]) == pytest.approx(1.0)
    assert "1,000" in report.growth_table(results)


def test_memory_counts_what_the_call_added():
    extra, _ = peak_extra_memory(lambda: np.ones(4_000_000).sum())
    assert extra > 20_000_000


def test_a_missing_library_and_a_missing_estimator_are_skipped_by_name(monkeypatch):
    monkeypatch.setitem(sys.modules, "glum", None)
    monkeypatch.delitem(sys.modules, "benchmarks.libraries.glum", raising=False)
    adapter = importlib.import_module("benchmarks.libraries.hinge")

    def offer(problem):
        raise libraries.Missing("hinge.Ridge")

    monkeypatch.setitem(adapter.OFFERS, "ridge", offer)
    contenders, skipped = libraries.enter(flat(), ["hinge", "glum", "scikit-learn"])
    assert {skip.name for skip in skipped} == {"glum", "hinge.Ridge"}
    assert {contender.library for contender in contenders} == {"scikit-learn"}


def test_scikit_learn_reaches_the_common_objective_on_small_problems():
    """Two kinds here; test_libraries.py goes through all kinds and all libraries."""
    rng = np.random.default_rng(0)
    X = np.asfortranarray(rng.standard_normal((60, 5)))
    signs = np.where(X[:, 0] + rng.standard_normal(60) > 0, 1.0, -1.0)
    response = X[:, 0] + rng.standard_normal(60)
    problems = [
        Problem("lasso", X, response, {"alpha": 0.1}),
        Problem("logistic_l1", X, signs, {"alpha": 0.02}),
    ]
    for problem in problems:
        contenders, _ = libraries.enter(problem, ["scikit-learn"])
        assert contenders
        climbs = [Climb(contender, problem, Settings()) for contender in contenders]
        best = explore(climbs)
        for climb in climbs:
            climb.choose(best)
            assert climb.row.reached, (problem.kind, climb.row)


def test_json_holds_machine_versions_and_all_timings(tmp_path, capsys, monkeypatch):
    from benchmarks import linear

    task = Task("tiny", "two rows", lambda: tiny("ridge", alpha=1.0, intercept=True))
    monkeypatch.setattr(linear, "TASKS", [task])
    monkeypatch.setattr("benchmarks.machine.measure_ceilings", lambda: CEILINGS)
    target = tmp_path / "out.json"
    assert command.main(["linear", "--json", str(target), "--library", "scikit-learn", "--repeats", "1"]) == 0
    record = json.loads(target.read_text())
    assert record["machine"]["threads"] == 2
    assert record["versions"]["numpy"] == np.__version__
    row = record["tasks"][0]["rows"][0]
    assert row["library"] == "scikit-learn"
    assert len(row["fit"]["times"]) >= 1
    assert {"memory", "objective", "suboptimality", "reached", "explored"} <= set(row)
    assert "scikit-learn cholesky" in capsys.readouterr().out


def test_the_command_lists_tasks_and_refuses_unknown_ones(capsys):
    assert command.main(["linear", "--list", "--task", "lasso-*"]) == 0
    assert "lasso-dense-20" in capsys.readouterr().out
    assert command.main(["linear", "--task", "nothing-like-it"]) == 2
    with pytest.raises(SystemExit):
        command.main(["no-such-family"])


@pytest.mark.parametrize("family", command.families())
def test_task_names_are_unique(family):
    names = [task.name for task in importlib.import_module(f"benchmarks.{family}").TASKS]
    assert len(names) == len(set(names))


def test_results_without_numbers_are_still_json(tmp_path):
    row = Row("peer", "", objective=float("inf"), fit=Spread((1.0,)))
    result = Result(Task("t", "s", flat), (1,), [row], [libraries.Skip("x", "not installed")], None, None, "")
    report.write_json(tmp_path / "f.json", report.as_json([result], Settings(), {}, {}))
    assert json.loads((tmp_path / "f.json").read_text())["tasks"][0]["rows"][0]["objective"] is None
    assert "x (not installed)" in report.table(result)
