"""What stored rows hold, as arrays in memory."""

import numpy as np
import scipy.sparse


def content(rows):
    """X as an array, y and weights of stored rows."""
    return np.vstack([_array(chunk.matrix) for chunk in rows.chunks()]), rows.y, rows.weight


def _array(matrix):
    """The rows of a chunk, copied: its memory is used again."""
    X = matrix.chosen(slice(0, matrix.shape[0])).X
    return X.toarray() if scipy.sparse.issparse(X) else np.array(X)


def files_of(folder):
    """Names and bytes of the files of a folder."""
    return {path.name: path.read_bytes() for path in folder.iterdir()}
