"""Solvers: how an objective is minimised. ``solve(objective)`` picks one, runs it and has the result judged."""

from hinge.solvers.run import solve

__all__ = ["solve"]
