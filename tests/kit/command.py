"""The command, run in this process."""

from __future__ import annotations

import datetime
import json

import numpy as np
import pytest


@pytest.fixture
def hinge(monkeypatch, capfd):
    """Run ``hinge ARGS``; gives exit code, stdout and stderr."""
    pytest.importorskip("typer")
    pytest.importorskip("polars")
    from hinge.cli.main import main

    def run(*args):
        monkeypatch.setattr("sys.argv", ["hinge", *map(str, args)])
        with pytest.raises(SystemExit) as exit_:
            main()
        out, err = capfd.readouterr()
        return int(exit_.value.code or 0), out, err

    return run


@pytest.fixture
def fit(hinge):
    """Run ``hinge fit ARGS --json`` and give its JSON."""

    def run(*args):
        code, out, err = hinge("fit", *args, "--json")
        assert code == 0, err
        return json.loads(out)

    return run


def table(path, n=300, seed=0, task="binary"):
    """A small CSV file with two numbers, a category and gaps."""
    rng = np.random.default_rng(seed)
    a, b, c = rng.normal(size=n), rng.uniform(0, 10, n), rng.choice(["red", "green", "blue"], n)
    s = 1.5 * a + 0.2 * (b - 5) + (c == "red") + 0.5 * rng.normal(size=n)
    y = {
        "binary": np.where(s > 0, "yes", "no"),
        "multiclass": np.array(["low", "middle", "high"])[np.digitize(s, [-1, 1])],
        "real": np.round(100 + 20 * s, 3),
        "count": rng.poisson(np.exp(0.6 * s)),
    }[task]
    gaps = rng.random(n) < 0.05
    lines = ["a,b,c,y"] + [f"{a[i]:.6f},{'' if gaps[i] else f'{b[i]:.6f}'},{c[i]},{y[i]}" for i in range(n)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def dirty(path, n=600):
    """Everything that goes wrong in real files, in one."""
    rng = np.random.default_rng(0)
    age, income = rng.integers(18, 90, n), rng.lognormal(10, 1, n)
    city = rng.choice(["Zürich", "København", "São Paulo", "東京", "Łódź"], n)
    score = 0.04 * (age - 50) + 0.6 * (np.log(income) - 10) + 1.2 * (city == "東京") + rng.normal(size=n)
    y = np.where(score > 0.2, "yes", "no")
    lines = ["id,age,age,income,city,signup,constant,leak,note,empty,copy of age,target"]
    for i in range(n):
        a = str(age[i]) if rng.random() > 0.03 else rng.choice(["unknown", "n/a", ""])
        day = datetime.date(2020, 1, 1) + datetime.timedelta(days=int(rng.integers(0, 900)))
        target = y[i] if rng.random() > 0.05 else ""
        lines.append(
            f"{i + 1000},{a},{rng.integers(0, 5)},{income[i]:.2f},{city[i]},{day},7,{int(y[i] == 'yes')},"
            f'"said ""hi"", twice",,{a},{target}'
        )
    lines.insert(n // 2, "")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def models(tmp_path_factory):
    """One quickly fitted model per task: task → (data file, folder with model.hinge)."""
    pytest.importorskip("polars")
    from hinge.learning.request import Request
    from hinge.learning.run import run
    from hinge.learning.write import write

    folder = tmp_path_factory.mktemp("models")
    made = {}
    for task, chosen in (
        ("binary", "linear"),
        ("multiclass", "linear"),
        ("real", "linear,boosting"),
        ("count", "linear"),
    ):
        data = table(folder / f"{task}.csv", task=task)
        outcome = run(Request(data, "y", task, 600.0, chosen, command="hinge fit"))
        write(outcome, folder / task)
        made[task] = (data, folder / task)
    return made
