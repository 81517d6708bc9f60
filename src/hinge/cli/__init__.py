"""The `hinge` command."""
