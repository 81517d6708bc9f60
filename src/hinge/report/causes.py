"""Short causes and remedies of every finding, for self-contained pages; docs/diagnoses.md has the details."""

from __future__ import annotations

CAUSES = {
    "H001": (
        "No class tried is clearly better, the learning curve is flat or nearly so, and the checks of the data passed.",
        "New columns with information that the present ones lack.",
    ),
    "H101": (
        "The iterations ended too early, the columns differ much in scale, or the step is wrong.",
        "Bring the columns to one scale, allow more iterations, or use another solver.",
    ),
    "H102": (
        "The fit ended at its limit of iterations before its stopping rule was met.",
        "Allow more iterations, change the step size, or scale the columns.",
    ),
    "H201": (
        "The class of functions is too rich for the number of rows: the model has learned noise of its training rows.",
        "More penalty, larger leaves, fewer columns, averaging, earlier stopping, or more rows.",
    ),
    "H202": (
        "The learning curve still falls at its end; the score for twice the rows is an extrapolation.",
        "More rows. If they are expensive, a simpler model or more penalty has part of the same effect.",
    ),
    "H203": (
        "The penalty is so strong that the model underfits.",
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
        "The columns have no relation to the target, or there are too few rows to detect one.",
        "Check that rows and targets belong together; look for better columns.",
    ),
    "H401": (
        "The rows come from different times, places or ways of sampling; scores on one do not hold for the other.",
        "Leave out the columns named, which differ, or weight the rows; hold out rows like those that you will predict.",
    ),
    "H402": (
        "The shares or the mean of the target differ between the two sets of rows.",
        "Find the reason. If it is the sampling, correct the probabilities for the true shares.",
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
    "H503": (
        "Test rows are also among the training rows, so the test score is too good.",
        "Remove them from one of the two.",
    ),
    "H504": ("A column with the same value in every row carries no information.", "Remove the columns."),
    "H505": ("Columns that are equal share their weights and importances.", "Keep one of them."),
    "H506": ("Nearly every row has a value of its own, which a model can only memorise.", "Leave the columns out."),
    "H507": (
        "Too few rows of a class to learn it or to score it.",
        "Collect more of it, merge classes, or weight them.",
    ),
    "H508": (
        "Errors in the targets, or rows that the columns do not explain.",
        "Look at the rows that are named, one by one.",
    ),
    "H509": (
        "Rows with the same inputs have different targets: no function of these columns can be right for all.",
        "A column that distinguishes them; otherwise the noise is irreducible.",
    ),
    "H510": (
        "The fit depends on the units: columns with large numbers are penalised less.",
        "Scale the columns before the fit.",
    ),
    "H601": (
        "The probabilities are too extreme or too cautious: of rows predicted at 80 %, a different share is positive.",
        "Calibrate it on held-out rows (Platt, isotonic, temperature).",
    ),
}
