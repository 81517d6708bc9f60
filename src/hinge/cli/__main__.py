"""``python -m hinge.cli``, the same as ``hinge``."""

from hinge.cli.main import main

main()
