"""Certificates: how close weights are to the optimum, one module per kind of problem."""
