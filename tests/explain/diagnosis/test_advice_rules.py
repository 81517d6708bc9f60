"""Each rule of advice on both sides of its thresholds: a report with nothing in it, and one number changed."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from hinge.explain.diagnosis.advice import advise
from hinge.explain.drift import ColumnDrift, Drift
from hinge.select.estimate import Estimate

SURE = 1e-9  # a standard error that leaves no doubt


def certain(value):
    return Estimate(value, SURE)


def report(**changes):
    """A held-out risk of 1, a training risk of 0.9, a constant's of 2, and nothing wrong; data=… changes its data."""
    data = {
        "leaks": (), "constant": (), "copies": (), "ids": (), "duplicates": 0.0, "duplicates_across_folds": 0.0,
        "duplicates_in_test": None, "conflict": 0.0, "missing": 0.0, "smallest_class": None, "smallest_class_count": None,
        "doubtful": (), "doubtful_count": 0, "doubtful_expected": None, "scale_ratio": 1.0, **changes.pop("data", {}),
    }  # fmt: skip
    optimisation = {
        "converged": True, "gain": None, "max_iter": 7, "proof": "gap", "sentence": "Not there yet.",
        **changes.pop("optimisation", {}),
    }  # fmt: skip
    return SimpleNamespace(**{
        "held_out_risk": certain(1.0), "constant_risk": certain(2.0), "train_risk": certain(0.9), "test_risk": None,
        "drift": None, "probes": (), "rivals": (), "bias_variance": None, "learning": None, "reliability": None,
        "scale_sensitive": False, "terms": SimpleNamespace(estimation=0.0, approximation=0.0, remainder=0.5),
        "data": SimpleNamespace(**data), "optimisation": SimpleNamespace(**optimisation), **changes,
    })  # fmt: skip


def codes(**changes):
    return [f.code for f in advise(report(**changes))]


def severity(code, **changes):
    return next(f.severity.name for f in advise(report(**changes)) if f.code == code)


def text(code, **changes):
    return next(f"{f.evidence} {f.action}" for f in advise(report(**changes)) if f.code == code)


def probe(gain, more=True):
    return SimpleNamespace(parameter="alpha", tried=2.0, value=1.0, gain=gain, more=more)


def rival(name, advantage, risk=1.0):
    return SimpleNamespace(name=name, advantage=advantage, risk=certain(risk))


def drift(auc=0.5, p=1.0, columns=(), target=None):
    return Drift(auc, p, tuple(columns), target)


def test_a_report_without_problems_has_one_finding():
    (found,) = advise(report())
    assert found.code == "H001"
    assert "the optimum was reached" in found.evidence
    assert "50 %" in found.action
    (found,) = advise(report(optimisation={"converged": None}))
    assert "optimum" not in found.evidence


DATA = [
    ("H504", {"constant": ("a",)}, {}), ("H505", {"copies": (("a", "b"),)}, {}), ("H506", {"ids": ("a",)}, {}),
    ("H501", {"leaks": (("a", 0.95),)}, {}),
    ("H502", {"duplicates_across_folds": 0.011}, {"duplicates_across_folds": 0.01}),
    ("H503", {"duplicates_in_test": 0.011}, {"duplicates_in_test": 0.01}),
    ("H507", {"smallest_class": 0.049, "smallest_class_count": 90}, {"smallest_class": 0.05, "smallest_class_count": 90}),
    ("H507", {"smallest_class": 0.3, "smallest_class_count": 19}, {"smallest_class": 0.3, "smallest_class_count": 20}),
    ("H508", {"doubtful": (3,), "doubtful_count": 1}, {}), ("H509", {"conflict": 0.11}, {"conflict": 0.1}),
]  # fmt: skip


@pytest.mark.parametrize(("code", "beyond", "within"), DATA)
def test_problems_of_the_data(code, beyond, within):
    assert code in codes(data=beyond)
    assert code not in codes(data=within)


def test_how_grave_copies_are():
    for name, code in (("duplicates_across_folds", "H502"), ("duplicates_in_test", "H503")):
        assert severity(code, data={name: 0.11}) == "PROBLEM"
        assert severity(code, data={name: 0.1}) == "ADVICE"
        assert "5.0 %" in text(code, data={name: 0.05})


def test_lists_are_cut_short():
    assert "a, b, c, d, e and 2 more" in text("H504", data={"constant": tuple("abcdefg")})
    assert "a, b, c, d, e." in text("H504", data={"constant": tuple("abcde")})
    doubts = {"doubtful": (1, 2, 3, 4, 5, 6), "doubtful_count": 6, "doubtful_expected": 2.4}
    assert "6 targets" in text("H508", data=doubts)
    assert "(2 would be so" in text("H508", data=doubts)
    assert "1, 2, 3, 4, 5 …" in text("H508", data=doubts)
    assert "rows 1, 2, 3, 4, 5." in text("H508", data={**doubts, "doubtful": (1, 2, 3, 4, 5), "doubtful_count": 5})
    off = SimpleNamespace(off=True, ece=0.1, overconfident=True)
    assert "H508" not in codes(data=doubts, reliability=off)


def test_scales():
    assert "H510" in codes(data={"scale_ratio": 1001.0}, scale_sensitive=True)
    assert "H510" not in codes(data={"scale_ratio": 1000.0}, scale_sensitive=True)
    assert "H510" not in codes(data={"scale_ratio": 1001.0})
    short = {"converged": False}
    assert "H510" not in codes(data={"scale_ratio": 1001.0}, scale_sensitive=True, optimisation=short)
    assert "one scale" in text("H101", data={"scale_ratio": 101.0}, optimisation=short)
    assert "one scale" not in text("H101", data={"scale_ratio": 100.0}, optimisation=short)


def test_optimisation():
    assert "H101" not in codes(optimisation={"converged": None})
    for proof, code in (("gap", "H101"), ("stationarity", "H101"), ("none", "H102")):
        assert codes(optimisation={"converged": False, "proof": proof}) == [code]
    assert "(now 7)" in text("H101", optimisation={"converged": False})
    assert "now" not in text("H101", optimisation={"converged": False, "max_iter": None})
    for gain, effect in ((0.011, "falls by"), (0.009, "much the same")):
        assert effect in text("H101", optimisation={"converged": False, "gain": certain(gain)})
    assert "much the same" in text("H101", optimisation={"converged": False, "gain": Estimate(0.5, 0.3)})


def test_drift():
    column, other = ColumnDrift("a", "KS", 0.4, 0.009), ColumnDrift("b", "KS", 0.2, 0.01)
    seen = text("H401", drift=drift(0.7, 1e-6, [column, other]))
    assert "a (KS 0.40)" in seen
    assert "b (KS" not in seen
    assert "only together" in text("H401", drift=drift(0.7, 1e-6, [other]))
    assert "H401" not in codes(drift=drift(0.59, 1e-6))
    for p, statistic, found in ((9e-4, 0.11, True), (1e-3, 0.11, False), (9e-4, 0.1, False)):
        assert ("H402" in codes(drift=drift(target=ColumnDrift("target", "KS", statistic, p)))) == found
    assert "H403" in codes(test_risk=certain(1.11))
    assert "H403" not in codes(test_risk=certain(1.09))
    assert "H403" not in codes(test_risk=Estimate(1.3, 0.2))
    assert "H403" not in codes(test_risk=certain(1.3), held_out_risk=Estimate(1.0, 0.2))
    assert "explains it" in text("H403", test_risk=certain(1.3), drift=drift(0.7, 1e-6))
    assert "look alike" in text("H403", test_risk=certain(1.3), drift=drift(0.5, 0.5))


def test_exact_predictions():
    exact = {"held_out_risk": certain(1e-6), "constant_risk": certain(2.0)}
    assert codes(**exact) == ["H501"]
    assert codes(held_out_risk=certain(3e-6)) != ["H501"]
    assert codes(**exact, data={"duplicates_across_folds": 0.2}) == ["H502"]
    assert codes(**exact, data={"leaks": (("a", 0.95),)}) == ["H501"]


def test_penalties():
    assert codes(probes=(probe(certain(0.031), more=False),)) == ["H203"]
    assert codes(probes=(probe(certain(0.029), more=False),)) == ["H001"]
    assert codes(probes=(probe(Estimate(0.2, 0.2), more=False),)) == ["H001"]
    assert codes(probes=(probe(certain(0.05)),)) == ["H201"]
    assert "alpha=2 instead of 1" in text("H201", probes=(probe(certain(0.05)), probe(certain(0.04), more=False)))
    assert severity("H201", probes=(probe(certain(0.11)),)) == "PROBLEM"
    assert severity("H201", probes=(probe(certain(0.1)),)) == "ADVICE"
    apart = {"train_risk": certain(0.7)}
    shaky = {"terms": SimpleNamespace(estimation=0.11, approximation=0.0, remainder=0.5)}
    assert codes(**apart, **shaky) == ["H201"]
    assert codes(**apart) == ["H001"]
    assert codes(train_risk=certain(0.81), **shaky) == ["H001"]
    assert codes(train_risk=Estimate(0.7, 0.3), **shaky) == ["H001"]
    assert "Another strength" in text("H201", **apart, **shaky, probes=(probe(certain(0.0)),))
    assert "Hold the model back" in text("H201", **apart, **shaky)
    variance = SimpleNamespace(variance=certain(0.2), risk=certain(0.8))
    assert "25 % of the resampled risk" in text("H201", **apart, bias_variance=variance)
    calm = SimpleNamespace(variance=certain(0.1), risk=certain(0.8))
    assert codes(**apart, **shaky, bias_variance=calm) == ["H001"]
    assert severity("H201", rivals=(rival("a constant", certain(0.1), 0.9),)) == "PROBLEM"
    assert "constant does better" in text("H201", rivals=(rival("a constant", certain(0.1), 0.9),))


def test_richer_classes():
    assert codes(rivals=(rival("trees", certain(0.11), 0.89),)) == ["H301"]
    assert "11 %" in text("H301", rivals=(rival("trees", certain(0.11), 0.89), rival("rbf", certain(0.1), 0.9)))
    assert codes(rivals=(rival("trees", certain(0.049), 0.89),)) == ["H001"]
    assert codes(rivals=(rival("trees", Estimate(0.3, 0.3), 0.89),)) == ["H001"]

    def beaten(train, risk, approximation):
        terms = SimpleNamespace(estimation=0.0, approximation=approximation, remainder=0.5)
        return "H301" in codes(train_risk=certain(train), terms=terms, rivals=(rival("trees", certain(0.2), risk),))

    assert beaten(0.8, 0.8, 0.0)  # as bad on its own rows as the rival on new ones
    assert not beaten(0.75, 0.8, 0.0)
    assert beaten(0.75, 0.8, 0.05)
    assert not beaten(0.75, 0.8, 0.049)
    assert beaten(0.7, 0.8, 0.2)  # a gap of three tenths: the curve has to end well above the rival
    assert not beaten(0.7, 0.8, 0.19)
    assert beaten(0.4, 0.8, 0.2)
    assert not beaten(0.39, 0.8, 0.2)


def test_no_better_than_a_constant():
    useless = rival("a constant", Estimate(-0.1, 0.1), 1.1)
    assert "H302" in codes(rivals=(useless,))
    assert "No class" in text("H302", rivals=(useless,))
    assert "finds something (trees" in text("H302", rivals=(useless, rival("trees", certain(0.3), 0.7)))
    assert "H302" not in codes(rivals=(rival("a constant", Estimate(-0.1, 0.04), 1.1),))
    assert "H302" not in codes(rivals=(rival("a constant", Estimate(-0.1, 0.1), 1.8),))  # its own rows it explains


def learned(now, doubled, error=SURE, fall=0.5, spread=0.0):
    """A curve of three sizes and four folds that falls by ``fall`` at the end."""
    folds = np.array([-1.0, 1.0, -1.0, 1.0]) * spread
    curve = np.array([np.full(4, 2.0) + folds, np.full(4, 1.8), np.full(4, 2.0 - fall)])
    return SimpleNamespace(
        sizes=np.array([10, 20, 40]),
        held_out=curve,
        law=lambda n: now,
        doubled=Estimate(doubled, error),
        limit=certain(0.5),
    )


def test_more_data():
    assert codes(learning=learned(1.0, 0.96)) == ["H202"]
    assert "(4 % less)" in text("H202", learning=learned(1.0, 0.96))
    assert codes(learning=learned(1.0, 0.971)) == ["H001", "H204"]
    assert codes(learning=learned(1.0, 0.96, fall=-0.1)) == ["H001", "H204"]
    assert codes(learning=learned(1.0, 0.96, spread=2.0)) == ["H001", "H204"]  # no fall that is certain
    assert codes(learning=learned(1.0, 0.93, fall=-0.1)) == ["H001"]
    assert codes(learning=learned(1.0, 0.98, error=0.1, fall=-0.1)) == ["H001"]
    assert "about 0 %" in text("H204", learning=learned(1.0, 1.05))


def test_calibration():
    for over, manner in ((True, "more extreme"), (False, "less decided")):
        assert manner in text("H601", reliability=SimpleNamespace(off=True, ece=0.1, overconfident=over))
    assert codes(reliability=SimpleNamespace(off=False, ece=0.1, overconfident=True)) == ["H001"]


def test_findings_are_sorted_by_severity():
    found = advise(report(data={"constant": ("a",), "ids": ("b",), "leaks": (("c", 0.95),)}))
    assert [f.severity.name for f in found] == ["PROBLEM", "ADVICE", "NOTE"]


def in_units(value, unit):
    """A report, or a part of it, with all risks in other units."""
    if isinstance(value, Estimate):
        return Estimate(value.value * unit, value.standard_error * unit)
    if isinstance(value, tuple):
        return tuple(in_units(part, unit) for part in value)
    if not isinstance(value, SimpleNamespace):
        return value
    risks = {"estimation", "approximation", "remainder", "conflict", "held_out", "law"}
    parts = {}
    for name, part in vars(value).items():
        if name == "law":
            parts[name] = lambda n, law=part: unit * law(n)
        else:
            parts[name] = part * unit if name in risks and part is not None else in_units(part, unit)
    return SimpleNamespace(**parts)


SIDES = [
    {"probes": (probe(certain(0.031), more=False),)}, {"probes": (probe(certain(0.029), more=False),)},
    {"probes": (probe(certain(0.11)),)}, {"probes": (probe(certain(0.099)),)},
    *({"train_risk": Estimate(0.7, error), "terms": SimpleNamespace(estimation=size, approximation=0.0, remainder=0.5)}
      for error in (SURE, 0.14, 0.16, 0.3) for size in (0.09, 0.11)),
    *({"held_out_risk": Estimate(1.0, 0.1), "train_risk": Estimate(0.7, error),
       "terms": SimpleNamespace(estimation=0.2, approximation=0.0, remainder=0.5)} for error in (0.1, 0.125)),
    *({"train_risk": certain(0.7), "bias_variance": SimpleNamespace(variance=certain(v), risk=certain(1.0))} for v in (0.09, 0.11)),
    *({"rivals": (rival("trees", certain(a), 1 - a),)} for a in (0.049, 0.051)),
    *({"train_risk": certain(t), "rivals": (rival("trees", certain(0.2), 0.8),),
       "terms": SimpleNamespace(estimation=0.0, approximation=a, remainder=0.5)}
      for t, a in ((0.75, 0.05), (0.75, 0.049), (0.7, 0.2), (0.7, 0.19), (0.4, 0.2), (0.39, 0.2))),
    *({"test_risk": Estimate(1.0 + gain, 0.02)} for gain in (0.09, 0.11)), *({"data": {"conflict": c}} for c in (0.09, 0.11)),
    *({"learning": learned(1.0, doubled)} for doubled in (0.96, 0.971, 0.93)),
    {"learning": learned(1.0, 0.93, fall=-0.1)}, {"rivals": (rival("a constant", Estimate(-0.1, 0.1), 1.1),)},
    {"held_out_risk": certain(1.9e-6)}, {"held_out_risk": certain(2.1e-6), "train_risk": certain(2e-6)},
    *({"optimisation": {"converged": False, "gain": certain(g)}} for g in (0.009, 0.011)),
]  # fmt: skip


@pytest.mark.parametrize("changes", SIDES, ids=lambda changes: "-".join(changes))
def test_advice_does_not_depend_on_the_unit_of_the_loss(changes):
    here = report(**{k: dict(v) if isinstance(v, dict) else v for k, v in changes.items()})
    found = [(f.code, f.severity) for f in advise(here)]
    for unit in (1e-4, 5.0, 1e4):
        assert [(f.code, f.severity) for f in advise(in_units(here, unit))] == found


def test_gaps_are_as_uncertain_as_both_risks():
    """√(0.1² + e²) decides whether 0.3 is clear: up to e = √((0.3/1.96)² − 0.1²) = 0.116."""
    shaky = {"terms": SimpleNamespace(estimation=0.2, approximation=0.0, remainder=0.5)}
    for error, expected in ((0.115, ["H201"]), (0.117, ["H001"])):
        assert codes(held_out_risk=Estimate(1.0, 0.1), train_risk=Estimate(0.7, error), **shaky) == expected
    for error, expected in ((0.115, ["H403"]), (0.117, ["H001"])):
        assert codes(held_out_risk=Estimate(1.0, 0.1), test_risk=Estimate(1.3, error)) == expected


def test_the_law_is_evaluated_at_all_rows():
    curve = learned(1.0, 0.9)
    curve.law = lambda n: 1.0 if n == 40 else 100.0 * n
    assert "instead of 1 (" in text("H202", learning=curve)


def test_at_most_four_columns_that_differ_are_named():
    columns = [ColumnDrift(name, "KS", 0.5, p) for name, p in zip("abcdef", [0.0, 0.0, 0.0, 0.0, 0.0, 0.5])]
    found = text("H401", drift=drift(0.9, 1e-6, columns))
    assert "d (KS 0.50)." in found
    assert "e (" not in found
    assert "no single column" in text("H401", drift=drift(0.9, 1e-6, columns[5:]))
