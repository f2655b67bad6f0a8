"""Regularisation paths: one problem for many radii, each answer certified."""

from condgrad.paths.cox import cox_path
from condgrad.paths.general import radius_path
from condgrad.paths.lasso import lasso_path
from condgrad.paths.points import PathInfo

__all__ = ["PathInfo", "cox_path", "lasso_path", "radius_path"]
