"""Regularisation paths: one problem for many radii, each answer certified."""

from condgrad.paths.lasso import PathInfo, lasso_path

__all__ = ["PathInfo", "lasso_path"]
