"""Mixtures fitted by EM: of Gaussians, of Gaussians within classes, of linear regressions."""
