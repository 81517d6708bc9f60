"""The report: one page, one file, that says what was learned and how far to trust it."""
