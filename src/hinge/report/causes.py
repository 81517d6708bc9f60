"""Cause and cure of every finding, in short, for pages that must explain themselves; docs/diagnoses.md says more."""

from __future__ import annotations

CAUSES = {
    "H001": (
        "No class that was tried does clearly better, the learning curve is flat or its gain small, and the data passed.",
        "New columns that say something the present ones do not.",
    ),
    "H101": (
        "The iterations ended too early, the columns differ much in scale, or the step is wrong.",
        "Bring the columns to one scale, allow more iterations, or use another solver.",
    ),
    "H102": (
        "The fit ended at its limit of iterations, not by its own rule.",
        "Allow more iterations, change the step size, or scale the columns.",
    ),
    "H201": (
        "The class of functions is too rich for the number of rows: the model has learned noise of its training rows.",
        "More penalty, larger leaves, fewer columns, averaging, earlier stopping, or more rows.",
    ),
    "H202": (
        "The learning curve still falls at its end; the promise for twice the rows is an extrapolation.",
        "More rows. If they are dear, a simpler model or more penalty does part of the same work.",
    ),
    "H203": (
        "The penalty keeps the model from what the rows would let it learn.",
        "Less penalty, chosen by cross-validation.",
    ),
    "H204": (
        "The learning curve is flat: the class has learned what it can.",
        "Spend the effort on columns or on a richer class, not on rows.",
    ),
    "H301": (
        "The function is not in the class: a richer one does better on the same folds.",
        "Products and squares of columns, logarithms, buckets, a kernel, boosted trees; less penalty.",
    ),
    "H302": (
        "The columns say nothing about the target, or too few rows were there to see it.",
        "Check that rows and targets belong together; look for better columns.",
    ),
    "H401": (
        "The rows come from different times, places or ways of sampling; scores on one do not hold for the other.",
        "Find the columns that differ (they are named), leave them out or weight the rows, and hold out as you will use it.",
    ),
    "H402": (
        "The shares or the mean of the target differ between the two sets of rows.",
        "Ask why. If it is the sampling, correct the probabilities for the true shares.",
    ),
    "H403": (
        "The rows differ from the training rows, or the choice among many models was fitted to the folds.",
        "Trust the test score; look for drift, for groups that were split, and for leaks.",
    ),
    "H501": (
        "A column is recorded after the outcome, or computed from it.",
        "Leave it out unless it is known beforehand.",
    ),
    "H502": (
        "Copies of a row sit in the training part and in the held-out part of a fold, so the score is too good.",
        "Remove the copies, or keep rows of one origin together.",
    ),
    "H503": ("Test rows were also learned from, so the test score is too good.", "Remove them from one of the two."),
    "H504": ("The same value in every row says nothing.", "Remove the columns."),
    "H505": ("Columns that are equal share their weights and importances.", "Keep one of them."),
    "H506": ("Nearly every row has a value of its own, which a model can only memorise.", "Leave the columns out."),
    "H507": (
        "Too few rows of a class to learn it or to score it.",
        "Collect more of it, merge classes, or weight them.",
    ),
    "H508": (
        "Errors in the targets, or cases the model is missing something about.",
        "Look at the rows that are named, one by one.",
    ),
    "H509": (
        "Rows with the same inputs have different targets: no function of these columns can be right for all.",
        "A column that tells them apart; otherwise the noise is irreducible.",
    ),
    "H510": (
        "The model is not the same in other units: columns with large numbers are penalised less.",
        "Scale the columns before the fit.",
    ),
    "H601": (
        "The model is too sure of itself, or not sure enough: of rows predicted at 80 %, another share came true.",
        "Calibrate it on rows it has not seen (Platt, isotonic, temperature).",
    ),
}
