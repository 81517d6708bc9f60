"""Committees of named members of any kind."""
