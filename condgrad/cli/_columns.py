"""Which columns of a table are features, which one is the target, and which one the weights."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from condgrad.storage.sources.delimited import find_column

if TYPE_CHECKING:
    from condgrad.models.linear import Model
    from condgrad.models.multi import MultiModel


class Columns(NamedTuple):
    """The places of the features of a table, of its target and of its weights (None where there is none)."""

    features: list[int]
    target: int | None
    weights: int | None


class Wanted(NamedTuple):
    """Options for reading a table: target, header line or not, whether labels may be words, model with the features.

    ``weights`` names the column with the weights of the samples.
    """

    target: str | None
    header: str
    labels: bool
    model: Model | MultiModel | None
    weights: str | None = None

    def columns(self, names: list[str] | None, width: int, file: str) -> Columns:
        """Return the places of the features, the target and the weights."""
        if names is not None:
            twice = sorted({name for name in names if names.count(name) > 1})
            if twice:
                raise ValueError(f"{file} has two columns named {twice[0]!r}; give each its own name.")
        if self.model is not None:
            return Columns(*self._of_model(names, width, file), None)
        weights = None if self.weights is None else find_column(self.weights, names, width, file, "--weights")
        left = [k for k in range(width) if k != weights]
        if len(left) < 2:
            beside = "" if weights is None else " beside the weights"
            raise ValueError(f"{file} has {len(left)} column{beside}, but needs features and a target.")
        target = left[-1] if self.target is None else find_column(self.target, names, width, file, "--target")
        if target == weights:
            raise ValueError(f"--target and --weights are both the column {self.weights!r}; give each its own.")
        return Columns([k for k in left if k != target], target, weights)

    def _of_model(self, names: list[str] | None, width: int, file: str) -> tuple[list[int], int | None]:
        assert self.model is not None
        known, d = self.model.feature_names, self.model.n_features
        target = None if self.target is None else find_column(self.target, names, width, file, "--target")
        if names is not None and known is not None:
            missing = [name for name in known if name not in names]
            if missing:
                raise ValueError(f"{file} lacks the column {missing[0]!r}, which the model needs.")
            features = [names.index(name) for name in known]
        elif width - (target is not None) == d:
            features = [k for k in range(width) if k != target]
        elif width == d + 1:
            features = list(range(d))
        else:
            raise ValueError(f"{file} has {width} columns, but the model has {d} features.")
        if target is None and width == d + 1:  # one column more than the features: the target
            (target,) = set(range(width)) - set(features)
        return features, target
