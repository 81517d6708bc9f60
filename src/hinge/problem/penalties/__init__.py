"""Penalties: functions of the weights."""

from hinge.problem.penalties.base import Coordinates, CustomPenalty, Penalty, Rows, as_penalty
from hinge.problem.penalties.elastic import L1, L2, Box, CoordinatePenalty, Elastic, NoPenalty
from hinge.problem.penalties.nonconvex import L0, Lq
from hinge.problem.penalties.norms import GroupNorm, L1Ball, L2Ball, MaxNorm

__all__ = [
    "L0",
    "L1",
    "L2",
    "Box",
    "CoordinatePenalty",
    "Coordinates",
    "CustomPenalty",
    "Elastic",
    "GroupNorm",
    "L1Ball",
    "L2Ball",
    "Lq",
    "MaxNorm",
    "NoPenalty",
    "Penalty",
    "Rows",
    "as_penalty",
]
