"""The groups of cases, by name."""

from __future__ import annotations

from hostile import allocation, api, checkpoints, command, machine, model_files, proofs, sources, sparse, structured
from hostile.runner import Group

GROUPS: dict[str, Group] = {
    group.name: group
    for group in (
        sparse.GROUP,
        structured.GROUP,
        model_files.GROUP,
        checkpoints.GROUP,
        sources.GROUP,
        api.GROUP,
        command.GROUP,
        machine.GROUP,
        allocation.GROUP,
    )
}
# Only for the long part: the ordinary suite has its own tests of these.
LONG: dict[str, Group] = {proofs.GROUP.name: proofs.GROUP}
