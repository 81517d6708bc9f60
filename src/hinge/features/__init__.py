"""Feature maps from raw inputs to R^d: tables, text, monomials, buckets, scaling."""
