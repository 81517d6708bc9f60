"""``python -m hinge_learn``: the command, where another distribution has replaced the script ``hinge``."""

from hinge_learn import main

main()
