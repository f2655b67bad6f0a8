"""GramModel: a working set as its Gram matrix, with the Cholesky factor of a support; gram_minimiser.py minimises it.

The model over the atoms k of the set is F(x) = x'Gx/2 - c'x, with correlations c - Gx. A Taylor model has an origin z,
and x - z in place of x.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from condgrad.compiled import compiled, kernel, where

_DEPENDENT = 1e-9  # share of an atom's squared norm below which its pivot counts as zero: it depends on the support
_MANY = 48  # atoms in a support from which on LAPACK factors their Gram matrix faster than they enter one by one

_MANY_ROUGH = 200  # the same for single precision
_ROUGHLY_DEPENDENT = 1e-4  # share of the squared norm below which a pivot in single precision may be wrong
_MOST_MOVES = 10  # moves of x after which correlations are computed anew: each adds its rounding to theirs

_ATOMS, _SUPPORT, _MOVES = range(3)  # places in GramModel.counts, numbers that change while the model stays


@compiled
class GramModel(NamedTuple):
    """The model and its support S; arrays have room for more atoms, and G_SS = U'U in the order of S."""

    G: np.ndarray
    c: np.ndarray  # the correlations at the origin
    origin: np.ndarray
    x: np.ndarray
    correlation: np.ndarray
    support: np.ndarray  # places of the atoms in S, in the order of U
    is_in: np.ndarray  # whether an atom is in S
    U: np.ndarray
    counts: np.ndarray  # how many atoms there are, and are in S; moves of x since the correlations were computed
    is_symmetric: bool = True  # whether coefficients may have both signs

    def n_atoms(self):
        """Return the number of atoms."""
        return self.counts[_ATOMS]

    def n_support(self):
        """Return the number of atoms in S."""
        return self.counts[_SUPPORT]

    def is_fresh(self):
        """Tell whether the correlations have no more than their own rounding, about."""
        return self.counts[_MOVES] <= _MOST_MOVES

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
        self.origin[first : first + n_new] = 0.0
        self.is_in[first : first + n_new] = False
        self.counts[_ATOMS] = first + n_new

    def forget_support(self, n_atoms):
        """Set the number of atoms, none of which is in the support: G has changed, or atoms have."""
        self.counts[_ATOMS] = n_atoms
        self.counts[_SUPPORT] = 0
        self.is_in[:] = False

    def forward(self, v):
        """Replace v by the solution of U'z = v."""
        size = np.uint64(v.shape[0])  # unsigned: signed indices cost a test for negative ones, and these loops are all
        for a in range(size):
            v[a] /= self.U[a, a]
            value = v[a]
            for b in range(a + np.uint64(1), size):
                v[b] -= self.U[a, b] * value

    def forward_both(self, v, w):
        """Do the same for two vectors, with one look at U."""
        size = np.uint64(v.shape[0])
        for a in range(size):
            v[a] /= self.U[a, a]
            w[a] /= self.U[a, a]
            of_v, of_w = v[a], w[a]
            for b in range(a + np.uint64(1), size):
                v[b] -= self.U[a, b] * of_v
                w[b] -= self.U[a, b] * of_w

    def forward_four(self, r, s, t, u):
        """Do the same for four vectors."""
        size = np.uint64(r.shape[0])
        for a in range(size):
            pivot = self.U[a, a]
            r[a] /= pivot
            s[a] /= pivot
            t[a] /= pivot
            u[a] /= pivot
            of_r, of_s, of_t, of_u = r[a], s[a], t[a], u[a]
            for b in range(a + np.uint64(1), size):
                value = self.U[a, b]
                r[b] -= value * of_r
                s[b] -= value * of_s
                t[b] -= value * of_t
                u[b] -= value * of_u

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
        """Compute the correlations c - G (x - origin) anew."""
        n_atoms = np.uint64(self.n_atoms())
        for j in range(n_atoms):
            self.correlation[j] = self.c[j]
        for k in range(n_atoms):
            way = self.x[k] - self.origin[k]
            if way != 0.0:
                for j in range(n_atoms):
                    self.correlation[j] -= way * self.G[k, j]
        self.counts[_MOVES] = 0

    def move(self, direction, step):
        """Add step times the direction, given on the support, to x."""
        n_atoms = np.uint64(self.n_atoms())
        for q in range(self.n_support()):
            k, change = np.uint64(self.support[q]), step * direction[q]
            self.x[k] += change
            for j in range(n_atoms):
                self.correlation[j] -= change * self.G[k, j]
        self.counts[_MOVES] += 1

    def approach(self, direction, step, fall):
        """Add step times a direction with G_SS direction = fall to x: on the support the correlations follow from that.

        For the others, a look at their rows of G is enough; most atoms are in the support.
        """
        n_atoms = np.uint64(self.n_atoms())
        way = np.zeros(n_atoms)
        for q in range(self.n_support()):
            k = np.uint64(self.support[q])
            way[k] = step * direction[q]
            self.x[k] += way[k]
            self.correlation[k] -= step * fall[q]
        for j in range(n_atoms):
            if not self.is_in[j]:
                change = 0.0
                for k in range(n_atoms):
                    change += self.G[j, k] * way[k]
                self.correlation[j] -= change
        self.counts[_MOVES] += 1


def empty_model(room: int, is_symmetric: bool = True) -> GramModel:
    """Return a model without atoms that has room for some. Entries of its matrices are written before they are read."""
    zeros = np.zeros(room)
    return GramModel(
        np.empty((room, room)), zeros, zeros.copy(), zeros.copy(), zeros.copy(), np.zeros(room, np.int64),
        np.zeros(room, np.bool_), np.empty((room, room)), np.zeros(3, np.int64), is_symmetric,
    )  # fmt: skip


def part_of(model: GramModel, kept: np.ndarray, room: int) -> GramModel:
    """Return a model with the ``kept`` atoms, all of the support among them, and room for more."""
    out, k, size = empty_model(room, model.is_symmetric), kept.size, int(model.n_support())
    out.G[:k, :k] = model.G[:k, :k] if k == model.n_atoms() else model.G[np.ix_(kept, kept)]
    out.c[:k], out.origin[:k], out.x[:k] = model.c[kept], model.origin[kept], model.x[kept]
    out.correlation[:k], out.is_in[:k] = model.correlation[kept], model.is_in[kept]
    place = np.empty(model.c.shape[0], np.int64)
    place[kept] = np.arange(k)
    out.support[:size] = place[model.support[:size]]
    out.U[:size, :size] = model.U[:size, :size]
    out.counts[:] = k, size, model.counts[_MOVES]
    return out


def model_at(x: np.ndarray, g: np.ndarray, H: np.ndarray) -> GramModel:
    """Return the model <g, z - x> + (z - x)'H(z - x)/2 over all atoms, at z = x; it does not change H and x."""
    k = x.size
    model = GramModel(
        H, np.empty(k), np.empty(k), np.empty(k), np.empty(k), np.empty(k, np.int64), np.zeros(k, np.bool_),
        np.empty((k, k)), np.array((k, 0, 0)),
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


def factor(model: GramModel, support: np.ndarray, is_rough: bool = False) -> None:
    """Make these atoms the support and factor G there; one that depends on the others gets a coefficient of zero.

    With ``is_rough`` the digits of single precision are enough: many atoms take half of the time then.
    """
    from scipy.linalg import lapack

    k = support.size
    model.forget_support(model.n_atoms())
    is_single = is_rough and k >= _MANY_ROUGH
    U = np.zeros((k, k), np.float32 if is_single else np.float64)
    _gather(model.G, support, U)
    # For LAPACK, which reads columns, U is a lower triangle; it is overwritten.
    is_factored = (
        k == 0 or (lapack.spotrf if is_single else lapack.dpotrf)(U.T, lower=1, overwrite_a=1, clean=0)[1] == 0
    )
    least = (_ROUGHLY_DEPENDENT if is_single else _DEPENDENT) * model.G[support, support]
    if is_factored and bool((np.square(U.diagonal(), dtype=np.float64) > least).all()):
        model.U[:k, :k], model.support[:k], model.is_in[support] = U, support, True
        model.counts[_SUPPORT] = k
    elif is_single:
        factor(model, support)
    else:
        _enter_each(model, support)


@kernel
def _gather(G, support, out):
    """Fill in the upper triangle of G over the support."""
    for a in range(support.shape[0]):
        row = support[a]
        for b in range(a, support.shape[0]):
            out[a, b] = G[row, support[b]]


@kernel
def _enter_each(model, support):
    """Append atoms to the support, one after the other; one that depends on those before gets a coefficient of zero."""
    for q in range(support.shape[0]):
        if not enter(model, support[q]):
            model.x[support[q]] = 0.0


@kernel
def enter(model, k):
    """Append atom k to the support; return False where it depends linearly on it."""
    size = model.n_support()
    column = np.empty(size)
    for q in range(size):
        column[q] = model.G[k, model.support[q]]
    model.forward(column)
    return enter_by(model, k, column, size)


@kernel
def enter_by(model, k, column, n_known):
    """Do the same with a column of U whose first ``n_known`` entries are known, and which has room for the rest."""
    size = model.n_support()
    for q in range(n_known, size):
        value = model.G[k, model.support[q]]
        for a in range(q):
            value -= model.U[a, q] * column[a]
        column[q] = value / model.U[q, q]
    pivot = model.G[k, k]
    for q in range(size):
        pivot -= column[q] * column[q]
    if not pivot > _DEPENDENT * model.G[k, k]:
        return False
    for q in range(size):
        model.U[q, size] = column[q]
    model.U[size, size] = np.sqrt(pivot)
    model.support[size] = k
    model.is_in[k] = True
    model.counts[_SUPPORT] = size + 1
    return True


@kernel
def enter_four(model, atoms):
    """Append those of four atoms that do not depend linearly on the support, with one look at U."""
    size = model.n_support()
    columns = np.empty((4, size + 4))
    for i in range(4):
        for q in range(size):
            columns[i, q] = model.G[atoms[i], model.support[q]]
    model.forward_four(columns[0, :size], columns[1, :size], columns[2, :size], columns[3, :size])
    for i in range(4):
        enter_by(model, atoms[i], columns[i], size)


@kernel
def enter_those(model, is_wanted):
    """Append all wanted atoms to the support, but those that depend linearly on it."""
    waiting, count = np.empty(4, np.int64), 0
    for k in range(model.n_atoms()):
        if is_wanted[k] and not model.is_in[k]:
            waiting[count] = k
            count += 1
            if count == 4:
                enter_four(model, waiting)
                count = 0
    for i in range(count):
        enter(model, waiting[i])


@kernel
def leave(model, q):
    """Take the atom at place q of the support out of it: rotations make U triangular again."""
    model.is_in[model.support[q]] = False
    one, last = np.uint64(1), np.uint64(model.n_support() - 1)
    for b in range(np.uint64(q), last):
        model.support[b] = model.support[b + one]
    for a in range(last + one):
        for b in range(max(np.uint64(q), max(a, one) - one), last):
            model.U[a, b] = model.U[a, b + one]
    for a in range(np.uint64(q), last):
        below = a + one
        top, low = model.U[a, a], model.U[below, a]
        length = np.sqrt(top * top + low * low)
        cosine, sine = top / length, low / length
        for b in range(a, last):
            first, second = model.U[a, b], model.U[below, b]
            model.U[a, b] = cosine * first + sine * second
            model.U[below, b] = cosine * second - sine * first
    model.counts[_SUPPORT] -= 1


@kernel
def recentre(model, x, correlation):
    """Make x the origin of the model, with these correlations. The support follows."""
    for k in range(model.n_atoms()):
        model.c[k] = model.correlation[k] = correlation[k]
        model.origin[k] = model.x[k] = x[k]
    model.counts[_MOVES] = 0
    q = 0
    while q < model.n_support():
        if x[model.support[q]] == 0.0:
            leave(model, q)
        else:
            q += 1
    n_missing = 0
    for k in range(model.n_atoms()):
        n_missing += x[k] != 0.0 and not model.is_in[k]
    if n_missing > 0:  # seldom: most points have the support of the last one
        _take_in(model, x)


@kernel
def _take_in(model, x):
    """Append the atoms with a coefficient in x to the support; those that depend on others get one of zero."""
    enter_those(model, x != 0.0)
    is_at_x = True
    for k in range(model.n_atoms()):
        if x[k] != 0.0 and not model.is_in[k]:
            model.x[k] = 0.0
            is_at_x = False
    if not is_at_x:
        model.correlate()
