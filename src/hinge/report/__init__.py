"""The report: one self-contained HTML page with the scores of a model and the evidence for them."""
