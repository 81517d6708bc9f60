"""Ten traps, each built into a table, and what hg.learn reports of them; tables built like known ones with leaks."""

from __future__ import annotations

import re

import numpy as np
import pytest

import hinge as hg

pl = pytest.importorskip("polars", reason="tables need the [cli] extra")

N = 1500


def learn(frame, target, **options):
    return hg.learn(frame, target, **({"models": "linear,tree", "seconds": 600.0, "simple": True} | options))


def notes(found, code, column=None):
    return [n.text for n in found.evidence.notes if n.code == code and column in (None, n.column)]


def plain(rng, n=N):
    a, b = rng.normal(size=n), rng.normal(size=n)
    return {"a": a, "b": b}, a + b**2 + 0.5 * rng.normal(size=n)


# --- the ten ---


def test_leak_a_copy_of_the_target_is_left_out(rng):
    columns, y = plain(rng)
    found = learn(pl.DataFrame(columns | {"y in cents": 100 * y, "y": y}), "y")
    assert "y in cents" in found.profile.left_out
    assert notes(found, "D04", "y in cents")


@pytest.mark.parametrize("kind", ["consecutive", "scattered", "text"])
def test_id_columns_are_left_out(rng, kind):
    columns, y = plain(rng)
    ids = {
        "consecutive": np.arange(N), "scattered": rng.permutation(10**7)[:N],
        "text": [f"{k:08x}" for k in rng.permutation(10**7)[:N]],
    }[kind]  # fmt: skip
    found = learn(pl.DataFrame(columns | {"customer_id": ids, "y": y}), "y")
    assert notes(found, "D02", "customer_id")
    assert "customer_id" not in found.model.columns


def test_drift_of_a_relation_with_time_is_reported(rng):
    columns, _ = plain(rng)
    day = np.sort(rng.integers(0, 900, N))
    y = np.where(day < 600, columns["a"], -columns["a"]) + 0.2 * rng.normal(size=N)
    dates = [str(np.datetime64("2020-01-01") + np.timedelta64(int(d), "D")) for d in day]
    found = learn(pl.DataFrame(columns | {"when": dates, "y": y}), "y")
    assert any("use time_column" in text for text in notes(found, "D22", "when"))


def test_duplicated_rows_are_kept_together(rng):
    columns, y = plain(rng, 500)
    frame = pl.concat([pl.DataFrame(columns | {"y": y})] * 3)
    found = learn(frame, "y")
    assert any("copies" in text for text in notes(found, "D08"))
    assert any("kept together" in text for text in notes(found, "D08"))


def test_grouped_rows_are_reported(rng):
    person = rng.integers(0, 100, N)
    mark, taste = rng.normal(size=(2, 100)), 3 * rng.normal(size=100)
    frame = pl.DataFrame({
        "height": mark[0][person], "weight": mark[1][person], "x": rng.normal(size=N), "patient_id": 1000 + 7 * person,
        "y": taste[person] + rng.normal(size=N),
    })  # fmt: skip
    found = learn(frame, "y")
    assert any('use group="patient_id"' in text for text in notes(found, "D21", "patient_id"))
    assert not notes(learn(frame, "y", group="patient_id"), "D21")


def test_time_order_is_respected_where_it_is_named(rng):
    columns, y = plain(rng)
    frame = pl.DataFrame(columns | {"t": rng.permutation(N), "y": y})
    found = learn(frame, "y", time_column="t")
    held = frame[found.test]["t"]
    assert held.min() > frame.filter(~pl.col("t").is_in(held.implode()))["t"].max()
    assert "by time" in found.evidence.held_out


def test_mislabelled_rows_are_named(rng):
    n = 800
    a = rng.normal(size=n) + 3 * rng.choice([-1, 1], n)
    y = np.where(a > 0, "yes", "no")
    wrong = rng.permutation(n)[:12]
    y[wrong] = np.where(y[wrong] == "yes", "no", "yes")
    found = learn(pl.DataFrame({"a": a, "b": rng.normal(size=n), "y": y}), "y")
    text = " ".join(" ".join(sentence) for sentence in found.findings)
    numbered = {int(k) for k in re.findall(r"\b\d+\b", text)}
    assert "target" in text.lower() or "label" in text.lower()
    assert len(numbered & {int(k) + 1 for k in wrong}) >= 3


def test_a_heavy_tail_of_the_target_is_reported(rng):
    columns, y = plain(rng)
    y = np.where(np.arange(N) == 7, 1e5, y)
    found = learn(pl.DataFrame(columns | {"y": y}), "y")
    assert any("few rows dominate" in text for text in notes(found, "D14", "y"))
    assert not notes(learn(pl.DataFrame(columns | {"y": columns["a"]}), "y", keep=["a"]), "D14")


def test_a_rare_class_is_reported(rng):
    columns, y = plain(rng)
    labels = np.where(y > 0, "common", "usual")
    labels[:5] = "rare"
    found = learn(pl.DataFrame(columns | {"y": labels}), "y")
    assert any("rare" in text for text in notes(found, "D09"))


def test_a_constant_column_is_left_out_and_noise_is_called_noise(rng):
    frame = pl.DataFrame({"a": rng.normal(size=N), "same": np.full(N, 3), "y": rng.normal(size=N)})
    found = learn(frame, "y")
    assert notes(found, "D01", "same")
    assert notes(found, "D15")


# --- tables built like known ones ---


def test_delays_known_on_departure_are_reported(rng):
    """Airlines: the delay on departure explains most of the delay on arrival."""
    dep = rng.exponential(20, N) - 5
    frame = pl.DataFrame({
        "dep_delay": dep, "distance": rng.uniform(100, 3000, N), "hour": rng.integers(5, 23, N).astype(float) + 0.5,
        "carrier": rng.choice(["AA", "UA", "DL"], N), "arr_delay": dep - 5 + 6 * rng.normal(size=N),
    })  # fmt: skip
    text = " ".join(notes(learn(frame, "arr_delay"), "D20", "dep_delay"))
    assert "alone explains" in text
    assert "without it the others explain" in text
    assert 'drop=["dep_delay"]' in text


def test_claim_amounts_are_reported_for_claims(rng):
    """Insurance: whether there is a claim is nearly known from the amount of it."""
    age, power = rng.uniform(18, 80, N), rng.integers(4, 15, N) + rng.random(N)
    p = 1 / (1 + np.exp(0.05 * (age - 40) + 1.0))
    claim = rng.random(N) < p
    amount = np.where(claim | (rng.random(N) < 0.03), rng.lognormal(7, 1, N), 0.0)
    frame = pl.DataFrame({"age": age, "power": power, "claimAmount": amount, "claim": np.where(claim, "yes", "no")})
    assert notes(learn(frame, "claim"), "D20", "claimAmount")


def test_the_duration_of_a_call_is_reported(rng):
    """Bank: how long the call took is known after it."""
    n = 3000
    balance, age = rng.normal(size=n), rng.uniform(20, 70, n)
    duration = rng.exponential(250, n)
    s = 0.012 * (duration - 250) + 1.2 * balance - 2 + rng.logistic(size=n)
    frame = pl.DataFrame({"age": age, "balance": balance, "duration": duration, "y": np.where(s > 0, "yes", "no")})
    found = learn(frame, "y")
    text = " ".join(notes(found, "D20", "duration"))
    assert "known afterwards" in text
    assert any("D20" in line for line in found.summary())


def test_strong_columns_beside_others_are_not_called_leaks(rng):
    frame = pl.DataFrame({f"x{j}": rng.normal(size=N) for j in range(5)})
    y = frame.sum_horizontal().to_numpy() + 0.3 * rng.normal(size=N)
    found = learn(frame.with_columns(pl.Series("y", y)), "y")
    assert not notes(found, "D20")
    assert not notes(found, "D21")
    assert not notes(found, "D22")
