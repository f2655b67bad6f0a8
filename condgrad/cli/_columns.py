"""Which columns of a table are features, and which one is the target."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from condgrad.storage.sources.delimited import find_column

if TYPE_CHECKING:
    from condgrad.models.linear import Model
    from condgrad.models.multi import MultiModel


class Wanted(NamedTuple):
    """Options for reading a table: target, header line or not, whether labels may be words, model with the features."""

    target: str | None
    header: str
    labels: bool
    model: Model | MultiModel | None

    def columns(self, names: list[str] | None, width: int, file: str) -> tuple[list[int], int | None]:
        """Return the places of the features and of the target (None if there is no target)."""
        if names is not None:
            twice = sorted({name for name in names if names.count(name) > 1})
            if twice:
                raise ValueError(f"{file} has two columns named {twice[0]!r}; give each its own name.")
        if self.model is None:
            if width < 2:
                raise ValueError(f"{file} has {width} column, but needs features and a target.")
            target = width - 1 if self.target is None else find_column(self.target, names, width, file, "--target")
            return [k for k in range(width) if k != target], target
        return self._of_model(names, width, file)

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
