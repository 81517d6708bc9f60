"""``hg.learn`` against what a practitioner would try, on held-out rows of real tables.

    python -m benchmarks.tables [--seconds 60] [--splits 3] [--tables NAME …] [--libraries NAME …] [--jobs 8] [--threads 2]
        [--minutes 9] [--from TABLES] [--folder DIR] [--archive FILE]
    python -m benchmarks.tables --pack TABLES

Every library gets the same training rows and the same columns (those that ``hg.learn`` keeps): LightGBM with early stopping on a
tenth of the rows, CatBoost, scikit-learn's histogram boosting, a forest, linear models on one-hot columns, and tf-idf with
logistic regression (C by cross-validation) for texts. Libraries that are not installed are left out. Scores are mean losses
(log loss, squared error, Poisson deviance) on test rows.

Each fit runs in a process of its own, on cores of its own where there are enough, so that its memory is its own and a failure
costs one cell. Its result is appended to ``records.jsonl`` in the folder, and the losses of its test rows are kept beside it: a
run that was stopped goes on where it was, and a table can be made at any time (``--summary``). All libraries of a table and a
split run one after the other, so a run that ends early (``--minutes``) has complete tables. ``--archive`` keeps the folder in one
file, for machines that return few files.

``sources.py`` lists the tables. Those marked as held out were not used while the search was developed.
"""
