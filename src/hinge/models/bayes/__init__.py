"""Bayesian models: conjugate pairs, linear and logistic regression, Gaussian processes."""
