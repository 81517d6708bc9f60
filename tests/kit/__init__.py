"""The conformance kit: every public estimator, data that suits it, and a child process to be rough with."""
