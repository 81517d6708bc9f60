"""Generative classifiers and mixtures: models of the inputs of every class."""
