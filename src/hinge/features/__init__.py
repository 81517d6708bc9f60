"""Raw inputs → R^d: tables, text, monomials, buckets, scales."""
