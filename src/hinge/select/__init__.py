"""Model selection: paths of solutions, cross-validated strengths, subsets of features."""
