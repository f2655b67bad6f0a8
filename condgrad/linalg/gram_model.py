"""GramModel: a working set as its Gram matrix, minimised exactly for a fixed radius or a fixed penalty.

The model over the atoms k of the set is F(x) = x'Gx/2 - c'x. On the support S, with signs s, its minimiser under
s'x = radius (or with the penalty alpha s'x) solves the KKT system G_SS x = c_S - alpha s: each change of the support is
one solve with an up- or downdated Cholesky factor. A step ends early where a coefficient reaches zero, which leaves; at
the minimiser the atom with the largest correlation c_j - (Gx)_j above alpha enters.

An atom that depends linearly on the support has no pivot. Then a direction z with Gz = 0 leads from the support to it,
along which the objective is constant and the norm falls by |correlation| / alpha - 1 a unit: the step goes on until a
coefficient of the support reaches zero, and that one makes room.

Where coefficients are at least 0, all signs are positive, and only a positive correlation lets an atom enter.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from condgrad.compiled import borrowed, compiled, kernel, where

_DEPENDENT = 1e-9  # share of an atom's squared norm below which its pivot counts as zero: it depends on the support
_ENTERS = 1e-11  # least share by which the correlation of an atom that enters exceeds alpha
_MANY = 48  # atoms in a support from which on LAPACK factors their Gram matrix faster than they enter one by one

SOLVED, GAVE_UP = 0, 1

_ATOMS, _SUPPORT = 0, 1  # places in GramModel.counts, numbers that change while the model stays


@compiled
class GramModel(NamedTuple):
    """The model and its support S; arrays have room for more atoms, and G_SS = U'U in the order of S."""

    G: np.ndarray
    c: np.ndarray
    x: np.ndarray
    correlation: np.ndarray
    support: np.ndarray  # places of the atoms in S, in the order of U
    is_in: np.ndarray  # whether an atom is in S
    U: np.ndarray
    counts: np.ndarray  # how many atoms there are, and how many of them are in S: n_atoms() and n_support() name them
    is_symmetric: bool = True  # whether coefficients may have both signs

    def n_atoms(self):
        """Return the number of atoms."""
        return self.counts[_ATOMS]

    def n_support(self):
        """Return the number of atoms in S."""
        return self.counts[_SUPPORT]

    def size(self, k):
        """Return how fast the model falls along atom k, in the direction that its sign allows."""
        return where(self.is_symmetric, abs(self.correlation[k]), self.correlation[k])

    def sign(self, ahead):
        """Return the sign of a coefficient that is, or will be, on this side of zero."""
        return where((ahead > 0.0) | (not self.is_symmetric), 1.0, -1.0)

    def append(self, n_new):
        """Make the next ``n_new`` atoms, whose rows of G and c are filled in, a part of the model outside of S."""
        first = self.counts[_ATOMS]
        self.x[first : first + n_new] = 0.0
        self.is_in[first : first + n_new] = False
        self.counts[_ATOMS] = first + n_new

    def forget_support(self, n_atoms):
        """Set the number of atoms, none of which is in the support: G has changed, or atoms have."""
        self.counts[_ATOMS] = n_atoms
        self.counts[_SUPPORT] = 0
        self.is_in[:] = False

    def enter(self, k):
        """Append atom k to the support; return False where it depends linearly on it."""
        size = self.n_support()
        column = np.empty(size)
        for q in range(size):
            column[q] = self.G[k, self.support[q]]
        self.forward(column)
        pivot = self.G[k, k]
        for q in range(size):
            pivot -= column[q] * column[q]
        if not pivot > _DEPENDENT * self.G[k, k]:
            return False
        for q in range(size):
            self.U[q, size] = column[q]
        self.U[size, size] = np.sqrt(pivot)
        self.support[size] = k
        self.is_in[k] = True
        self.counts[_SUPPORT] = size + 1
        return True

    def leave(self, q):
        """Take the atom at place q of the support out of it: rotations make U triangular again."""
        self.is_in[self.support[q]] = False
        one, last = np.uint64(1), np.uint64(self.n_support() - 1)
        for b in range(np.uint64(q), last):
            self.support[b] = self.support[b + one]
        for a in range(last + one):
            for b in range(max(np.uint64(q), max(a, one) - one), last):
                self.U[a, b] = self.U[a, b + one]
        for a in range(np.uint64(q), last):
            below = a + one
            top, low = self.U[a, a], self.U[below, a]
            length = np.sqrt(top * top + low * low)
            cosine, sine = top / length, low / length
            for b in range(a, last):
                first, second = self.U[a, b], self.U[below, b]
                self.U[a, b] = cosine * first + sine * second
                self.U[below, b] = cosine * second - sine * first
        self.counts[_SUPPORT] -= 1

    def forward(self, v):
        """Replace v by the solution of U'z = v."""
        size = np.uint64(v.shape[0])  # unsigned: signed indices cost a test for negative ones, and these loops are all
        for a in range(size):
            v[a] /= self.U[a, a]
            value = v[a]
            for b in range(a + np.uint64(1), size):
                v[b] -= self.U[a, b] * value

    def backward(self, v):
        """Replace v by the solution of Uz = v."""
        size = np.uint64(v.shape[0])
        for k in range(size):
            a = size - np.uint64(1) - k
            total = v[a]
            for b in range(a + np.uint64(1), size):
                total -= self.U[a, b] * v[b]
            v[a] = total / self.U[a, a]

    def correlate(self):
        """Compute the correlations c - Gx anew."""
        n_atoms = np.uint64(self.n_atoms())
        for j in range(n_atoms):
            self.correlation[j] = self.c[j]
        for q in range(self.n_support()):
            k = np.uint64(self.support[q])
            value = self.x[k]
            for j in range(n_atoms):
                self.correlation[j] -= value * self.G[k, j]

    def move(self, direction, step):
        """Add step times the direction, given on the support, to x."""
        n_atoms = np.uint64(self.n_atoms())
        for q in range(self.n_support()):
            k, change = np.uint64(self.support[q]), step * direction[q]
            self.x[k] += change
            for j in range(n_atoms):
                self.correlation[j] -= change * self.G[k, j]


def empty_model(room: int, is_symmetric: bool = True) -> GramModel:
    """Return a model without atoms that has room for some."""
    zeros = np.zeros(room)
    return GramModel(
        np.zeros((room, room)), zeros, zeros.copy(), zeros.copy(), np.zeros(room, np.int64), np.zeros(room, np.bool_),
        np.zeros((room, room)), np.zeros(2, np.int64), is_symmetric,
    )  # fmt: skip


def part_of(model: GramModel, kept: np.ndarray, room: int) -> GramModel:
    """Return a model with the ``kept`` atoms, all of the support among them, and room for more."""
    out, k, size = empty_model(room, model.is_symmetric), kept.size, int(model.n_support())
    out.G[:k, :k] = model.G[np.ix_(kept, kept)]
    out.c[:k], out.x[:k] = model.c[kept], model.x[kept]
    out.correlation[:k], out.is_in[:k] = model.correlation[kept], model.is_in[kept]
    place = np.empty(model.c.shape[0], np.int64)
    place[kept] = np.arange(k)
    out.support[:size] = place[model.support[:size]]
    out.U[:size, :size] = model.U[:size, :size]
    out.counts[:] = k, size
    return out


def model_at(x: np.ndarray, g: np.ndarray, H: np.ndarray) -> GramModel:
    """Return the model <g, z - x> + (z - x)'H(z - x)/2 over all atoms, at z = x; it does not change H and x."""
    k = x.size
    model = GramModel(
        H, np.empty(k), np.empty(k), np.empty(k), np.empty(k, np.int64), np.zeros(k, np.bool_), np.empty((k, k)),
        np.array((k, 0)),
    )  # fmt: skip
    support = np.flatnonzero(x)
    if support.size > _MANY:
        factor(model, support)
    recentre(model, x, -g)
    return model


@kernel
def correlate(model):
    """Compute the correlations of all atoms anew."""
    model.correlate()


def factor(model: GramModel, support: np.ndarray) -> None:
    """Make these atoms the support and factor G there; one that depends on the others gets a coefficient of zero."""
    k = support.size
    model.forget_support(model.n_atoms())
    try:
        U = np.linalg.cholesky(model.G[np.ix_(support, support)]).T
        is_regular = bool((U.diagonal() ** 2 > _DEPENDENT * model.G[support, support]).all())
    except np.linalg.LinAlgError:
        is_regular = False
    if is_regular:
        model.U[:k, :k], model.support[:k], model.is_in[support] = U, support, True
        model.counts[_SUPPORT] = k
    else:
        _enter_each(model, support)


@kernel
def _enter_each(model, support):
    """Append atoms to the support, one after the other; one that depends on those before gets a coefficient of zero."""
    for q in range(support.shape[0]):
        if not model.enter(support[q]):
            model.x[support[q]] = 0.0


@kernel
def recentre(model, x, correlation):
    """Put the model at x, where these are the correlations: c = correlation + G x. The support follows."""
    n_atoms = np.uint64(model.n_atoms())
    for k in range(n_atoms):
        model.c[k] = correlation[k]
        model.correlation[k] = correlation[k]
    for q in range(n_atoms):
        model.x[q] = x[q]
        if x[q] != 0.0:
            value = x[q]
            for k in range(n_atoms):
                model.c[k] += value * model.G[q, k]
    q = 0
    while q < model.n_support():
        if x[model.support[q]] == 0.0:
            model.leave(q)
        else:
            q += 1
    for k in range(model.n_atoms()):
        if x[k] != 0.0 and not model.is_in[k] and not model.enter(k):
            model.x[k] = 0.0
    model.correlate()


@kernel
def first_zero(model, sign, direction, limit):
    """Return the longest step up to ``limit`` that keeps the signs, and the place in S that stops it (-1: none)."""
    step, blocker = limit, -1
    for q in range(model.n_support()):
        if sign[q] * direction[q] < 0.0:
            reach = -model.x[model.support[q]] / direction[q]
            if reach < step:
                step, blocker = reach, q
    return max(step, 0.0), blocker


@kernel
def solve_model(model, squared_y, is_penalised, target, tol, max_changes):
    """Minimise the model to a gap of at most ``tol``; return status, number of changes, alpha and the gap."""
    model = borrowed(model)
    banned = np.zeros(model.n_atoms(), np.bool_)
    is_fresh, is_first = False, True
    alpha, gap = target, np.inf
    for change in range(max_changes):
        alpha, blocker = _go_to_minimiser(model, is_penalised, target)
        if blocker >= 0:
            model.x[model.support[blocker]] = 0.0
            model.leave(blocker)
            is_fresh = False
            continue
        # x is the minimiser on its support: is there an atom outside of it that would improve the objective?
        gap, entering = _ask_atoms(model, squared_y, is_penalised, target, alpha, banned)
        if gap <= tol or entering < 0:
            if is_fresh:
                return SOLVED, change, alpha, gap
            model.correlate()  # rounding has piled up in the correlations: ask once more with fresh ones
            is_fresh = True
            continue
        is_fresh = False
        if is_first:
            is_first = False
            _enter_all(model, alpha)
        elif not model.enter(entering):
            banned[entering] = True
            _exchange(model, entering)
    return GAVE_UP, max_changes, alpha, gap


@kernel
def _go_to_minimiser(model, is_penalised, target):
    """Go towards the minimiser on the support; return alpha there and the place in S that stops the step (-1: none)."""
    size = model.n_support()
    if size == 0:
        return (target if is_penalised else 0.0), -1
    sign, direction, slope = np.empty(size), np.empty(size), np.empty(size)
    for q in range(size):
        k = model.support[q]
        ahead = model.x[k] if model.x[k] != 0.0 else model.correlation[k]
        sign[q] = model.sign(ahead)
        direction[q] = model.correlation[k]
        slope[q] = sign[q]
    model.forward(direction)
    model.forward(slope)
    alpha = target
    if not is_penalised:
        # G d = correlation - alpha s with s'd = radius - norm; alpha < 0: the minimiser is inside the ball.
        norm, along, curvature = 0.0, 0.0, 0.0
        for q in range(size):
            norm += abs(model.x[model.support[q]])
            along += slope[q] * direction[q]
            curvature += slope[q] * slope[q]
        alpha = max(0.0, (along - (target - norm)) / curvature)
    for q in range(size):
        direction[q] -= alpha * slope[q]
    model.backward(direction)
    step, blocker = first_zero(model, sign, direction, 1.0)
    model.move(direction, step)
    return alpha, blocker


@kernel
def _ask_atoms(model, squared_y, is_penalised, target, alpha, banned):
    """Return the gap at x, and the atom outside the support with the largest correlation above alpha (-1: none)."""
    along, fit, norm = 0.0, 0.0, 0.0
    for q in range(model.n_support()):
        k = model.support[q]
        along += model.x[k] * model.correlation[k]
        fit += model.x[k] * model.c[k]
        norm += abs(model.x[k])
    largest, best, entering = 0.0, alpha * (1.0 + _ENTERS) + 1e-300, -1
    for j in range(model.n_atoms()):
        value = model.size(j)
        largest = max(largest, value)
        if value > best and not model.is_in[j] and not banned[j]:
            best, entering = value, j
    if is_penalised:
        return duality_gap(squared_y, fit, along, alpha * norm, alpha, largest), entering
    return target * largest - along, entering


@kernel
def _enter_all(model, alpha):
    """Append all atoms with a correlation above alpha to the support, but those that depend linearly on it.

    Most of the atoms that have just been admitted stay there. For one atom after the other, each would cost a way to
    the minimiser on the support. An atom that does not belong there leaves on the first such way.
    """
    for k in range(model.n_atoms()):
        if not model.is_in[k] and model.size(k) > alpha * (1.0 + _ENTERS):
            model.enter(k)


@kernel
def _exchange(model, entering):
    """Let an atom that depends on the support take the place of the one that reaches zero first on the way to it."""
    size = model.n_support()
    onto = model.sign(model.correlation[entering])
    null, sign = np.empty(size), np.empty(size)
    for q in range(size):
        k = model.support[q]
        null[q] = -onto * model.G[entering, k]
        sign[q] = model.sign(model.x[k])
    model.forward(null)
    model.backward(null)
    step, blocker = first_zero(model, sign, null, np.inf)
    if blocker < 0:
        return
    model.move(null, step)
    model.x[entering] += step * onto
    model.x[model.support[blocker]] = 0.0
    model.leave(blocker)
    if not model.enter(entering):
        model.x[entering] = 0.0  # it depends on the rest too: go on without it
    model.correlate()


@kernel
def duality_gap(squared_y, fit, along, penalty, alpha, largest):
    """Return P(x) - D(theta) for P(x) = ||R||^2/2 + alpha ||x||_1 and the best multiple theta of R that is feasible.

    ``fit`` is <y, Xx>, ``along`` <R, Xx>, ``penalty`` alpha ||x||_1 and ``largest`` the largest |<z_j, R>|, or a bound
    of it. D(theta) = (||y||^2 - ||y - theta||^2)/2 over theta with |<z_j, theta>| <= alpha.
    """
    squared_r = max(squared_y - fit - along, 0.0)
    y_r = squared_y - fit
    if squared_r == 0.0:
        return penalty
    share = y_r / squared_r
    if largest * abs(share) > alpha:
        share = np.sign(share) * alpha / largest
    return 0.5 * squared_r + penalty - share * (y_r - 0.5 * share * squared_r)
