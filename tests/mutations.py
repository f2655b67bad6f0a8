"""Files as strangers could write them: other values, kinds, shapes and names, under right checksums."""

import copy
import hashlib
import io
import json
import zipfile

import numpy as np

NASTY = [
    None, True, -1, 0, 1, 2, 2**40, -(2**40), 2**63 - 1, -(2**63), 2**70, 10**400, 0.5, -0.5, 1e308, -1e308, 1e-320,
    float("nan"), float("inf"), float("-inf"), "", "x", "\x1b[31mred", "=1+1", "../elsewhere", "a" * 100_000, [], {},
    [1, 2], [[]], {"name": "x"}, [None] * 1000,
]  # fmt: skip
NASTY_FLOATS = [np.nan, np.inf, -np.inf, 1e308, -1e308, 1e-320, 0.0, -1.0, 1.0, 2.0**40]
NASTY_WHOLE = [-1, 0, 1, 2, 2**31, -(2**31), 2**40, -(2**40), 2**63 - 1, -(2**63)]
DTYPES = ["<i8", "<i4", "<u8", "<f4", "<f8", ">f8", ">i8", "<c16", "|b1", "<U3", "|S5", "<M8[s]", "<f2"]


def mutated_json(rng, value):
    """Return a JSON value in which something is replaced, removed, or repeated."""
    value = copy.deepcopy(value)
    places = list(_places(value))
    if not places:
        return nasty(rng)
    holder, key = places[rng.integers(len(places))]
    what = rng.integers(6)
    if what == 0:
        del holder[key]
    elif what == 1 and isinstance(holder, list):
        holder.append(copy.deepcopy(holder[key]))
    elif what == 2:  # what stands elsewhere
        other, there = places[rng.integers(len(places))]
        holder[key] = copy.deepcopy(other[there]) if not _holds(other[there], holder) else nasty(rng)
    elif what == 3 and isinstance(holder[key], int | float):
        holder[key] = holder[key] * int(rng.integers(-3, 4)) + int(rng.integers(-2, 3))
    else:
        holder[key] = nasty(rng)
    return value


def nasty(rng):
    """Return a value that nobody expects."""
    return copy.deepcopy(NASTY[rng.integers(len(NASTY))])


def _places(value):
    if isinstance(value, dict | list):
        for key in list(value) if isinstance(value, dict) else range(len(value)):
            yield value, key
            yield from _places(value[key])


def _holds(value, part):
    return value is part or any(holder is part or holder[key] is part for holder, key in _places(value))


def mutated_array(rng, array):
    """Return an array with other entries, or of another kind or shape."""
    array = array.copy()
    what = rng.integers(10)
    if what <= 3 and array.size and array.dtype.kind in "fiu":
        flat = array.reshape(-1)
        places = slice(None) if what == 0 else rng.integers(flat.size, size=1 if what == 1 else 3)
        bounds = [flat.size, int(flat.max()) + 1] if array.dtype.kind != "f" else []
        value = NASTY_FLOATS[rng.integers(10)] if array.dtype.kind == "f" else [*NASTY_WHOLE, *bounds][rng.integers(12)]
        with np.errstate(all="ignore"):
            flat[places] = np.array([value]).astype(array.dtype)
        return flat.reshape(array.shape)
    if what == 4:
        return array[: array.shape[0] // 2] if array.ndim else array.reshape(1)
    if what == 5:
        return np.concatenate([array, array]) if array.ndim else array.reshape(1, 1)
    if what == 6:
        shapes = [(), (0,), (1, -1), (-1, 1), (-1,)]
        shape = shapes[rng.integers(len(shapes))]
        return np.zeros(shape, array.dtype) if shape in ((), (0,)) else array.reshape(shape)
    if what == 7:
        with np.errstate(all="ignore"):
            try:
                return array.astype(DTYPES[rng.integers(len(DTYPES))])
            except (TypeError, ValueError):
                return np.zeros(3, "<U3")
    if what == 8:
        return rng.permuted(array, axis=0) if array.ndim and array.dtype.kind in "fiub" else array
    return np.asfortranarray(array[::-1]) if array.ndim else array


def mutated_archive(rng, content):
    """Return a sealed file, of which the header or an array is another, under a right checksum."""
    with np.load(io.BytesIO(content)) as members:
        arrays = {name: members[name] for name in members.files}
    header = json.loads(arrays.pop("header").tobytes())
    text = None
    for _ in range(rng.choice([1, 1, 1, 1, 2, 3])):
        what, names = rng.integers(20), list(arrays)
        name = names[rng.integers(len(names))] if names else "none"
        if what <= 7:
            header = mutated_json(rng, header) if isinstance(header, dict | list) else header
        elif what <= 15 and names:
            arrays[name] = mutated_array(rng, arrays[name])
        elif what == 16:
            arrays.pop(name, None)
        elif what == 17 and names:
            other = names[rng.integers(len(names))]
            arrays[name], arrays[other] = arrays[other], arrays[name]
        elif what == 18:
            arrays[["more", "atoms.index", "atoms.values0", "w", "header2"][rng.integers(5)]] = np.zeros(3)
        else:
            depth = int(rng.choice([50, 100_000]))
            text = [b"[" * depth + b"]" * depth, b"\xff\xfe", b"", b"null", b"{" * 99][rng.integers(5)]
    raw = json.dumps(header).encode() if text is None else text
    arrays = {"header": np.frombuffer(raw, np.uint8), **arrays}
    return resealed(arrays, rng, is_compressed=bool(rng.integers(40) == 0))


def resealed(arrays, rng=None, *, is_compressed=False):
    """Return the bytes of an archive with a right checksum; with ``rng`` some have arrays that numpy cannot read."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED if is_compressed else zipfile.ZIP_STORED) as file:
        for name, array in arrays.items():
            body = io.BytesIO()
            np.save(body, array, allow_pickle=False)
            raw = body.getvalue()
            if rng is not None and rng.integers(50) == 0:  # a shape or a kind of which there is no array
                wrong = [(b"(", b"(99999"), (b"'<f8'", b"'|O'  "), (b"{", b"["), (b"shape", b"sHape")]
                raw = raw.replace(*wrong[rng.integers(4)], 1)
            file.writestr(f"{name}.npy", raw)
        file.comment = b"0" * 64
    body = buffer.getvalue()[:-64]
    return body + hashlib.sha256(body).hexdigest().encode()
