"""Nearest neighbours: predictions from the examples closest to a query."""
