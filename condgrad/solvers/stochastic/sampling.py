"""The samples of each step: batches drawn from a numpy Generator, outside the kernels that use them.

Every method costs O(1) per sample, and the samples do not depend on how the steps are cut into blocks.
"""

from __future__ import annotations

from typing import Any, NamedTuple, cast

import numpy as np

from condgrad.compiled import compiled, kernel
from condgrad.linalg.saved import set_generator, take_indices

METHODS = ("replacement", "batch", "epoch", "blocks", "cyclic", "importance")


@compiled
class Batch(NamedTuple):
    """The samples of one step: ``indices[start:stop]``, drawn with the given probabilities (``chances``)."""

    indices: np.ndarray
    start: int
    stop: int
    chances: Uniform | Chances
    uniform: float  # a number from [0, 1), for the solvers that need one

    def size(self):
        """Return the number of samples."""
        return self.stop - self.start

    def at(self, q):
        """Return the sample at place ``q``."""
        return self.indices[self.start + q]

    def share(self, i):
        """Return 1 / (size * probability of i): with these factors a sum over the batch is an unbiased estimate."""
        return 1.0 / (self.size() * self.chances.of(i))


@compiled
class Batches(NamedTuple):
    """The batches of a block of steps."""

    indices: np.ndarray
    offsets: np.ndarray
    chances: Uniform | Chances
    uniforms: np.ndarray

    def size(self):
        """Return the number of batches."""
        return self.offsets.shape[0] - 1

    def at(self, k):
        """Return batch ``k``."""
        uniform = self.uniforms[k] if self.uniforms.shape[0] > 0 else 0.0
        return Batch(self.indices, self.offsets[k], self.offsets[k + 1], self.chances, uniform)


@compiled
class Uniform(NamedTuple):
    """Equal probabilities 1/n for n samples."""

    n: int

    def of(self, i):
        """Return the chance of sample ``i``."""
        return 1.0 / self.n


@compiled
class Chances(NamedTuple):
    """One probability per sample, with Walker's alias table to draw from them."""

    chances: np.ndarray
    threshold: np.ndarray
    alias: np.ndarray

    def of(self, i):
        """Return the chance of sample ``i``."""
        return self.chances[i]


class Sampler:
    """Draws batches of samples.

    Parameters
    ----------
    n : int
        The number of samples.
    method : str
        ``"replacement"``: independent draws; ``"batch"``: distinct samples within a batch; ``"epoch"``: every sample
        once, in random order, before any sample is drawn again; ``"blocks"``: contiguous samples from a random first
        one on, wrapping around (each sample is equally likely, and memory is read far faster); ``"cyclic"``: one batch
        after the other in the order of the samples; ``"importance"``: independent draws with probabilities proportional
        to ``importance``.
    rng : numpy Generator
    importance : array, optional
    """

    def __init__(self, n: int, method: str, rng: np.random.Generator, importance: np.ndarray | None = None) -> None:
        self.method, self.rng = method, rng
        self._uniforms = rng.spawn(1)[0]  # a separate stream: neither stream depends on how steps are cut into blocks
        self.chances: Any = Uniform(n) if importance is None else alias_table(importance)
        self.confine_to(n)

    def confine_to(self, n: int) -> None:
        """Draw from n samples, numbered from 0 on, from now on; their chances are still those among all samples."""
        self.n = n
        self.order = np.arange(n if self.method in ("batch", "epoch") else 0, dtype=np.int64)
        self.position = np.zeros(1, dtype=np.int64)  # within the epoch

    def whole(self, sizes: np.ndarray) -> np.ndarray:
        """Return the sizes as the next draw will round them, without drawing."""
        if sizes.dtype.kind != "f":
            return sizes
        state = self._uniforms.bit_generator.state
        rounded = self._round(sizes)
        self._uniforms.bit_generator.state = state
        return rounded

    def draw(self, sizes: np.ndarray, with_uniforms: bool = False) -> Batches:
        """Return batches of the given sizes and, with ``with_uniforms``, a number from [0, 1) for each."""
        if sizes.dtype.kind == "f":
            sizes = self._round(sizes)
        offsets = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
        indices = np.empty(offsets[-1], dtype=np.int64)
        if self.method == "blocks":
            _draw_blocks(self.rng.random(sizes.size), self.n, offsets, indices)
        elif self.method == "cyclic":
            indices[:] = (self.position[0] + np.arange(indices.size)) % self.n
            self.position[0] = (self.position[0] + indices.size) % self.n
        elif self.method == "importance":
            _draw_unequal(self.rng.random(2 * indices.size), self.chances.threshold, self.chances.alias, indices)
        elif self.method == "epoch":
            _draw_in_turn(self.rng.random(indices.size), self.order, self.position, indices)
        elif self.method == "batch":
            _draw_distinct(self.rng.random(indices.size), self.order, offsets, indices)
        else:
            _draw_independent(self.rng.random(indices.size), self.n, indices)
        uniforms = self._uniforms.random(sizes.size if with_uniforms else 0)
        return Batches(indices, offsets, self.chances, uniforms)

    def _round(self, sizes: np.ndarray) -> np.ndarray:
        """Round at random, so that the expected size does not change."""
        return np.floor(sizes + self._uniforms.random(sizes.size)).astype(np.int64)

    def state(self) -> dict[str, Any]:
        """Return all values that determine the next draws: arrays, and the states of the generators."""
        generators = [self.rng.bit_generator.state, self._uniforms.bit_generator.state]
        return {"order": self.order, "position": self.position, "generators": generators}

    def restore(self, order: np.ndarray, position: np.ndarray, generators: list[dict[str, Any]]) -> None:
        """Restore a state returned by :meth:`state`."""
        saved = {"sampler.order": order, "sampler.position": position}
        self.order[:] = take_indices(saved, "sampler.order", self.n, size=self.order.size, distinct=True)
        self.position[:] = take_indices(saved, "sampler.position", self.n, size=1)
        for rng, state in zip((self.rng, self._uniforms), generators, strict=True):
            set_generator(rng, state)


def check_method(method: object) -> None:
    """Raise if ``method`` is not a sampling method."""
    if not isinstance(method, str) or method not in METHODS:
        raise ValueError(f"sampling must be one of {', '.join(METHODS)}; got {method!r}.")


def resolve_batch_size(batch_size: float | str, n: int) -> int:
    """Return a batch size given as a number of samples or as a fraction of n."""
    is_number = isinstance(batch_size, (int, float, np.integer, np.floating)) and not isinstance(batch_size, bool)
    batch_size = cast("float", batch_size)
    if is_number and 0.0 < batch_size < 1.0:
        return max(1, int(batch_size * n + 1e-9))  # 0.29 * 100 is 28.999999999999996
    if not is_number or not np.isfinite(batch_size) or batch_size != int(batch_size) or batch_size < 1:
        raise ValueError(
            f"batch_size must be a whole number of at least 1 or a fraction in (0, 1); got {batch_size!r}."
        )
    if batch_size > n:
        raise ValueError(f"batch_size is {batch_size}, but there are only {n} samples; use at most {n}.")
    return int(batch_size)


def alias_table(importance: np.ndarray) -> Chances:
    """Return probabilities proportional to ``importance`` (zeros get a small one, so that every sample is drawn)."""
    n = importance.size
    chances = np.maximum(importance, 1e-3 * importance.mean() if importance.any() else 1.0)
    chances = chances / chances.sum()
    threshold, alias = np.ones(n), np.arange(n)
    _fill_alias(chances * n, threshold, alias)
    return Chances(chances, threshold, alias)


@kernel
def _draw_independent(u, n, indices):
    for q in range(indices.shape[0]):
        indices[q] = int(u[q] * n)


@kernel
def _draw_unequal(u, threshold, alias, indices):
    for q in range(indices.shape[0]):
        i = int(u[2 * q] * threshold.shape[0])
        indices[q] = i if u[2 * q + 1] < threshold[i] else alias[i]


@kernel
def _draw_blocks(u, n, offsets, indices):
    for k in range(u.shape[0]):
        i = int(u[k] * n)
        for q in range(offsets[k], offsets[k + 1]):
            indices[q] = i
            i = i + 1 if i + 1 < n else 0


@kernel
def _draw_distinct(u, order, offsets, indices):
    """Shuffle the first places of ``order``: for any order before, they are a uniform random subset."""
    n = order.shape[0]
    for k in range(offsets.shape[0] - 1):
        for q in range(offsets[k + 1] - offsets[k]):
            other = q + int(u[offsets[k] + q] * (n - q))
            chosen = order[other]
            order[other] = order[q]
            order[q] = chosen
            indices[offsets[k] + q] = chosen


@kernel
def _draw_in_turn(u, order, position, indices):
    """Shuffle ``order`` one place at a time; after the last place a new shuffle starts."""
    n = order.shape[0]
    place = position[0]
    for q in range(indices.shape[0]):
        other = place + int(u[q] * (n - place))
        chosen = order[other]
        order[other] = order[place]
        order[place] = chosen
        indices[q] = chosen
        place = place + 1 if place + 1 < n else 0
    position[0] = place


@kernel
def _fill_alias(scaled, threshold, alias):
    """Fill the alias table by Walker's method: pair each place below its share with a place above its share."""
    n = scaled.shape[0]
    short, long = np.empty(n, np.int64), np.empty(n, np.int64)
    n_short, n_long = 0, 0
    for i in range(n):
        if scaled[i] < 1.0:
            short[n_short] = i
            n_short += 1
        else:
            long[n_long] = i
            n_long += 1
    while n_short > 0 and n_long > 0:
        n_short -= 1
        i, j = short[n_short], long[n_long - 1]
        threshold[i] = scaled[i]
        alias[i] = j
        scaled[j] -= 1.0 - scaled[i]
        if scaled[j] < 1.0:
            n_long -= 1
            short[n_short] = j
            n_short += 1
