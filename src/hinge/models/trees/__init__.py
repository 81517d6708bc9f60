"""Trees, forests, bagging and boosting."""
