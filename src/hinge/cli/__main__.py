"""``python -m hinge.cli``, the same as ``hinge``."""

from hinge.cli.app import main

main()
