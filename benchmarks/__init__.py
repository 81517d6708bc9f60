"""Hinge beside its peers: time to the same objective, judged by one function for everybody.

``python -m benchmarks <family>`` runs the tasks of ``benchmarks/<family>.py``. Three things meet there:

- a :class:`~benchmarks.harness.Task` names a problem (data built once by :mod:`benchmarks.data`), how it is scored
  and the goal hinge has set itself;
- a module of :mod:`benchmarks.libraries` offers, per kind of problem, one or more contenders: how that library fits
  it, at which ladder of tolerances. A library that is not installed is skipped by name;
- a judge of :mod:`benchmarks.judges` computes the objective of everybody's answer in float64.

Each contender is timed at the loosest tolerance that brings its objective within 1e-6 (relative) of the best seen by
anybody; where there is no common objective, at stated settings with the test quality beside the time.

To add a family, write ``benchmarks/<family>.py`` with a list ``TASKS``. To add a library, write
``benchmarks/libraries/<distribution>.py`` with ``OFFERS`` (kind of problem → function giving its contenders). Nothing
else needs a change.
"""
