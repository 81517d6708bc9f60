"""Means of targets for categories of many levels: smoothed, and never of a row's own target."""

from __future__ import annotations

import numpy as np
import pytest

import hinge as hg

pl = pytest.importorskip("polars", reason="tables need the [cli] extra")

OPTIONS = {"encode": "codes", "missing": "keep", "scale": False, "sparse": False, "target_means": 10}


def shops(rng, n=1200, levels=60):
    shop = rng.integers(0, levels, n)
    effect = rng.normal(size=levels)
    return pl.DataFrame({"shop": [f"s{k}" for k in shop], "few": rng.choice(["u", "v"], n)}), effect[shop], shop


@pytest.mark.mission("F4")
def test_means_are_drawn_to_the_mean_of_all(rng):
    frame, effect, shop = shops(rng)
    y = effect + rng.normal(size=len(effect))
    prep = hg.TablePrep(**OPTIONS).fit(frame, y)
    assert list(prep.get_feature_names_out()) == ["shop", "shop.mean", "few"]
    assert prep.categorical_.tolist() == [True, False, True]
    found = prep.transform(frame)[:, 1]
    own = shop == shop[0]
    assert found[0] == pytest.approx((y[own].sum() + 10 * y.mean()) / (own.sum() + 10))
    new = pl.DataFrame({"shop": ["unknown", None], "few": ["u", "u"]})
    np.testing.assert_allclose(prep.transform(new)[:, 1], y.mean())


def test_the_own_target_has_no_part_in_the_mean(rng):
    frame, _, _ = shops(rng, 600, 200)
    y = rng.normal(size=600)  # noise: a mean that contained it would explain it
    prep = hg.TablePrep(**OPTIONS)
    inside = prep.fit_transform(frame, y)[:, 1]
    leaked = prep.transform(frame)[:, 1]
    assert np.corrcoef(leaked, y)[0, 1] > 0.3
    assert abs(np.corrcoef(inside, y)[0, 1]) < 0.2
    other = y.copy()
    other[0] += 100.0
    again = hg.TablePrep(**OPTIONS).fit_transform(frame, other)[:, 1]
    assert again[0] == pytest.approx(inside[0])


@pytest.mark.parametrize("kinds", [2, 3])
def test_labels_give_shares_of_classes(rng, kinds):
    frame, effect, _ = shops(rng)
    y = np.array(["a", "b", "c"])[np.digitize(effect, [0.0, 0.8][: kinds - 1])]
    prep = hg.TablePrep(**OPTIONS).fit(frame, y)
    names = [name for name in prep.get_feature_names_out() if "mean" in name]
    assert names == (["shop.mean b"] if kinds == 2 else ["shop.mean a", "shop.mean b", "shop.mean c"])
    Z = prep.transform(frame)[:, 1 : 1 + len(names)]
    assert np.all((Z >= 0) & (Z <= 1))
    assert prep.fit_transform(frame, y).shape == prep.transform(frame).shape
    assert "mean target" in str(prep.describe())


def test_many_levels_help_trees_in_learn(rng, tmp_path):
    frame, effect, _ = shops(rng, 1500, 400)
    y = 2 * effect + 0.3 * rng.normal(size=1500)
    frame = frame.with_columns(pl.Series("x", rng.normal(size=1500)), pl.Series("y", y))
    found = hg.learn(frame, "y", models="tree", seconds=600.0)
    assert found.evidence.explained > 0.4
    again = hg.load(found.save(tmp_path / "m.hinge"))
    np.testing.assert_array_equal(again.predict(found.profile.frame), found.model.pipeline.predict(found.profile.frame))
