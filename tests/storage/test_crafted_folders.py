"""Folders that a stranger has made: whatever their files hold, one sentence, no crash, no wait, no way out of them."""

import json
import os
import shutil
import subprocess
import sys
import textwrap

import numpy as np
import pytest
import scipy.sparse
from crafted import change, content_of, edit, entries_of, write

import condgrad as cg

N, D = 400, 12
KINDS = ["dense rows", "sparse rows", "categories", "dense columns", "sparse columns"]
POSIX = pytest.mark.skipif(os.name != "posix", reason="needs pipes, links and devices")


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch):
    """Files need not survive a power cut here."""
    monkeypatch.setattr(os, "fsync", lambda handle: None)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A folder of each kind, several chunks each."""
    rng, folder = np.random.default_rng(0), tmp_path_factory.mktemp("whole")
    X = rng.standard_normal((N, D))
    y, S = np.where(X[:, 0] > 0.0, 1.0, -1.0), scipy.sparse.csr_matrix(np.where(np.abs(X) > 0.6, X, 0.0))
    words = np.array([[f"{rng.integers(5)}", f"{i % 299}"] for i in range(N)])
    cg.rows.convert((X, y), folder / "dense rows", chunk_bytes=2**14)
    cg.rows.convert((S, y), folder / "sparse rows", chunk_bytes=2**13)
    cg.rows.convert((words, y), folder / "categories", chunk_bytes=2**9, categories="all")
    cg.columns.convert(X, folder / "dense columns", y=y)
    cg.columns.convert(S.tocsc(), folder / "sparse columns", y=y)
    return folder


# What a process does with folders: every reader gets a folder of its own, and prints how it ended.
READERS = """
    import json, sys
    import numpy as np
    import condgrad as cg
    from condgrad.storage.cluster_rows import _chunk_of_folder

    def problem(folder):
        return cg.Problem(cg.rows.open(folder), loss=cg.losses.Logistic(), constraint=cg.constraints.L1Ball(2.0))

    def path(folder):
        columns = cg.columns.open(folder)
        return cg.lasso_path(columns, columns.y, n_radii=3)

    def partitions(folder):
        for k in range(cg.rows.open(folder).n_chunks):
            _chunk_of_folder(folder, k, None, None)

    readers = {
        "passes": lambda folder: cg.minimize(problem(folder), tol=1e-3),
        "visits": lambda folder: cg.minimize(problem(folder), "sfw", max_epochs=1, random_state=0),
        "heads": lambda folder: [cg.rows.open(folder).head(size) for size in (40, 300, 400)],
        "predictions": lambda folder: cg.rows.open(folder).dot_each(np.ones((1, cg.rows.open(folder).shape[1]))),
        "partitions": partitions,
        "like": lambda folder: cg.rows.convert(np.array([["1", "2"]]), folder + "-like", categories="all", like=folder),
        "paths": path,
        "chosen": lambda folder: cg.columns.open(folder).read_chosen(np.arange(6)),
    }
    for line in sys.stdin:
        name, folder = json.loads(line)
        try:
            readers[name](folder)
            found = "read", ""
        except Exception as error:
            found = type(error).__name__, str(error)
        print(json.dumps(found), flush=True)
"""
OF_ROWS = ("passes", "visits", "heads", "predictions", "partitions")
OF_COLUMNS = ("paths", "chosen")


def read_all(cases):
    """What a process of its own says about pairs of a reader and a folder; it must not crash, and must not wait."""
    run = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(READERS)],
        input="".join(json.dumps((reader, str(folder))) + "\n" for reader, folder in cases),
        capture_output=True, text=True, check=False, timeout=300.0,
    )  # fmt: skip
    found = [json.loads(line) for line in run.stdout.splitlines()]
    assert run.returncode == 0, f"{cases[len(found)]} ended the process ({run.returncode}): {run.stderr[-500:]}"
    assert not run.stderr, run.stderr
    return found


def must_be_refused(whole, kind, tmp_path, crafts, readers):
    """Every reader refuses a folder of this kind after each of the changes, with one sentence that names it."""
    cases = []
    for name, craft in crafts.items():
        folder = tmp_path / name
        shutil.copytree(whole / kind, folder)
        craft(folder)
        cases += [(reader, folder) for reader in readers]
    for case, (error, text) in zip(cases, read_all(cases), strict=True):
        assert error in ("ValueError", "OSError"), (case, error, text)
        assert str(case[1]) in text and "\n" not in text and text.endswith("."), (case, text)


def replaced(place, value):
    """An edit of an array: one entry has another value."""

    def put(array):
        array.reshape(-1)[place] = value
        return array

    return put


def test_the_readers_read_what_is_whole(whole):
    kinds = {kind: OF_COLUMNS if "columns" in kind else OF_ROWS for kind in KINDS} | {"categories": (*OF_ROWS, "like")}
    assert {error for error, _ in read_all([(r, whole / kind) for kind, own in kinds.items() for r in own])} == {"read"}


def fewer_features(folder):
    edit(folder, lambda content: content.update(shape=[N, D - 2]))


def consistently_fewer_features(folder):
    fewer_features(folder)
    change(folder, "columns", lambda columns: columns[:, : D - 2])


ROWS = {
    "fewer features": fewer_features,
    "fewer features everywhere": consistently_fewer_features,
    "a far index": lambda folder: change(folder, "indices", replaced(0, 10**9)),
    "a negative index": lambda folder: change(folder, "indices", replaced(3, -(2**31))),
    "an index of eight bytes": lambda folder: change(
        folder, "indices", lambda a: replaced(1, 2**40)(a.astype(np.int64))
    ),
    "an index after the last": lambda folder: change(folder, "indices", replaced(2, D)),
    "an index twice": lambda folder: change(folder, "indices", lambda a: np.repeat(a[::2], 2)[: a.size]),
    "rows that go back": lambda folder: change(folder, "indptr", replaced(5, 2**40)),
    "rows that begin before the file": lambda folder: change(folder, "indptr", replaced(0, -(2**40))),
    "rows that end after the file": lambda folder: change(folder, "indptr", replaced(-1, 2**50)),
    "fewer entries": lambda folder: change(folder, "data", lambda a: a[:-9]),
    "fewer rows": lambda folder: change(folder, "indptr", lambda a: a[:-1]),
}


def test_sparse_rows(whole, tmp_path):
    must_be_refused(whole, "sparse rows", tmp_path, ROWS, OF_ROWS)


def a_late_field(folder):
    """The second field begins at the last feature, so that most of its codes are outside."""
    edit(folder, lambda c: c["facts"]["fields"].update(codes2=[c["shape"][1] - 1]))


def fewer_categories(folder):
    """The last features are missing, and so are the words of their field."""
    content = content_of(folder)
    n_features = content["shape"][1] - 9
    content["shape"][1], content["facts"]["feature_names"] = n_features, content["facts"]["feature_names"][:n_features]
    write(folder, content)
    change(folder, "columns", lambda columns: columns[:, :n_features])


CODES = {
    "a large code": lambda folder: change(folder, "codes1", replaced(0, 255)),
    "a larger code": lambda folder: change(folder, "codes2", replaced(0, 2**16 - 1)),
    "a late field": a_late_field,
    "fewer features": fewer_categories,
    "equal fields": lambda folder: edit(folder, lambda c: c["facts"].update(fields={"codes1": [0], "codes2": [0]})),
}


def test_one_hot_rows(whole, tmp_path):
    must_be_refused(whole, "categories", tmp_path, CODES, OF_ROWS)


def test_words_of_categories(whole, tmp_path):
    """New data are encoded with them."""
    crafts = {
        "fewer words": lambda folder: change(folder, "categories-0", lambda a: a[:4]),
        "no words": lambda folder: change(folder, "categories-0", lambda a: np.full_like(a, 255)),
        "no file of words": lambda folder: edit(folder, lambda c: c["shared"].pop("categories-1")),
        "no name": lambda folder: edit(folder, lambda c: c["facts"]["categories"][0].pop("name")),
    }
    must_be_refused(whole, "categories", tmp_path, crafts, ["like"])


def fewer_samples(folder):
    edit(folder, lambda content: content.update(shape=[N - 5, D]))
    change(folder, "y", lambda y: y[:-5])


def test_columns(whole, tmp_path):
    sparse = {name: craft for name, craft in ROWS.items() if "features" not in name and "an index after" not in name}
    sparse |= {
        "a far sample": lambda folder: change(folder, "indices", replaced(2, N)),
        "fewer samples": fewer_samples,
        "other columns": lambda folder: edit(folder, lambda content: content.update(shape=[N, D - 1])),
    }
    must_be_refused(whole, "sparse columns", tmp_path, sparse, OF_COLUMNS)


# Manifests.


def test_a_manifest_that_was_edited_is_refused(whole, tmp_path):
    for kind, module in (("sparse rows", cg.rows), ("dense columns", cg.columns)):
        shutil.copytree(whole / kind, tmp_path / kind)
        manifest = tmp_path / kind / "manifest.json"
        text = manifest.read_text()
        manifest.write_text(text.replace(f"{D}\n", f"{D - 1}\n", 1))
        with pytest.raises(
            ValueError, match=r"manifest.json.*damaged or was edited: its checksum is .*convert the data"
        ):
            module.open(tmp_path / kind)
        manifest.write_text(json.dumps(content_of(tmp_path / kind)))
        with pytest.raises(ValueError, match=r"manifest.json.*has no checksum of itself; convert the data again"):
            module.open(tmp_path / kind)
        manifest.write_text(text)
        module.open(tmp_path / kind)


def fields_of(value, place=()):
    """The places of all fields and entries of a JSON value."""
    for key in value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        yield (*place, key)
        yield from fields_of(value[key], (*place, key))


STRANGE = ("a deep list", "a deep object", "no object", "no text")


def strange(name, folder):
    (folder / "manifest.json").write_bytes({
        "a deep list": b"[" * 100_000 + b"]" * 100_000, "a deep object": b'{"a":' * 100_000, "no object": b"[1, 2]",
        "no text": b"\xff\xfe\x00",
    }[name])  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_fields_that_are_missing_or_of_another_kind(kind, whole, tmp_path):
    """No KeyError, TypeError, OverflowError, MemoryError, RecursionError: one sentence that names the manifest."""
    folder, module = tmp_path / kind, cg.columns if "columns" in kind else cg.rows
    shutil.copytree(whole / kind, folder)
    known = content_of(folder)
    optional = {"is_shuffled", "feature_names", "y", "labels", "total_weight", "n_categories", "first"}
    places = [place for place in fields_of(known) if not optional & set(place) or place[-2:-1] == ("files",)]
    places = [place for place in places if not set(place) & set(range(2, 1000))]  # two chunks tell what all do
    assert len(places) > 20
    for place in places:
        for value in (None, 7.5, [[]], 10**30, -1, "missing"):
            content = json.loads(json.dumps(known))
            owner = content
            for key in place[:-1]:
                owner = owner[key]
            if value == "missing":
                del owner[place[-1]]
            else:
                owner[place[-1]] = value
            write(folder, content)
            with pytest.raises((ValueError, OSError)) as caught:
                module.open(folder)
            text = str(caught.value)
            assert str(folder) in text and "\n" not in text and len(text) < 600, (place, value, text)


def test_absurd_manifests(whole, tmp_path):
    """Shapes that no file has, deep JSON, names that lead out of the folder."""
    huge = 10**18

    def huge_chunk(folder):
        """All that the manifest says is consistent; only the files are too small."""
        content = content_of(folder)
        content["shape"][0] += huge - content["chunks"][0]["size"]
        content["chunks"][0]["size"] = huge
        for entry in content["chunks"][0]["files"].values():
            n_bytes = entry["n_bytes"] // entry["shape"][0] * huge
            entry |= {"shape": [huge, *entry["shape"][1:]], "n_bytes": n_bytes}
        write(folder, content)

    def named(name):
        def craft(folder):
            content = content_of(folder)
            entry = entries_of(content, "X")[0]
            os.replace(folder / entry["name"], folder.parent / "elsewhere.npy")
            entry["name"] = name.format(folder.parent)
            write(folder, content)

        return craft

    crafts = {
        "many features": lambda folder: edit(folder, lambda content: content.update(shape=[N, huge])),
        "many samples": lambda folder: edit(folder, lambda content: content.update(shape=[huge, D])),
        "a huge chunk": huge_chunk,
        "the folder above": named("../elsewhere.npy"),
        "an absolute name": named("{}/elsewhere.npy"),
        "a checksum that is none": lambda folder: edit(folder, lambda c: entries_of(c, "X")[0].update(crc32=-1)),
        "Python objects": lambda folder: edit(folder, lambda c: entries_of(c, "X")[0].update(dtype="|O")),
        "a file without checksums": lambda folder: edit(folder, lambda c: c["facts"].update(date=1)),
        **{name: lambda folder, name=name: strange(name, folder) for name in STRANGE},
    }
    must_be_refused(whole, "dense rows", tmp_path, crafts, ("passes", "predictions"))


@POSIX
@pytest.mark.parametrize("kind", ["dense rows", "dense columns", "sparse columns"])
def test_pipes_links_and_devices_in_place_of_files(kind, whole, tmp_path):
    crafts = {}
    for role in ("X" if "dense" in kind else "indices", "y", "manifest"):

        def craft(folder, make, role=role):
            path = folder / "manifest.json"
            path = path if role == "manifest" else folder / entries_of(content_of(folder), role)[0]["name"]
            moved = folder.parent / f"moved-{folder.name}"
            os.replace(path, moved)
            make(path, moved)

        crafts |= {
            f"a pipe for {role}": lambda folder, craft=craft: craft(folder, lambda path, moved: os.mkfifo(path)),
            f"a link for {role}": lambda folder, craft=craft: craft(folder, lambda path, moved: path.symlink_to(moved)),
            f"a device for {role}": lambda folder, craft=craft: craft(
                folder, lambda path, _: path.symlink_to("/dev/zero")
            ),
            f"a folder for {role}": lambda folder, craft=craft: craft(folder, lambda path, moved: path.mkdir()),
        }
    must_be_refused(whole, kind, tmp_path, crafts, ("paths",) if "columns" in kind else ("passes", "heads"))


# Files that change while a process works on them.


def test_files_that_change_between_two_passes_are_checked_again(whole, tmp_path):
    shutil.copytree(whole / "sparse rows", tmp_path / "rows")
    rows = cg.rows.open(tmp_path / "rows")
    W = np.ones((1, D))
    known = rows.dot_each(W)
    path = tmp_path / "rows" / entries_of(content_of(tmp_path / "rows"), "indices")[1]["name"]
    content = bytearray(path.read_bytes())
    content[-1] = 127  # an index of about 2^31: a pass without a look at it would read other memory
    path.write_bytes(content)
    with pytest.raises(OSError, match=r"indices.* is damaged"):
        rows.dot_each(W)
    content[-1] = 0
    path.write_bytes(content)
    assert np.array_equal(rows.dot_each(W), known)


# Journals of conversions that were interrupted.


class StopHereError(Exception):
    pass


def stop_after(n_calls):
    """A callback that interrupts a conversion."""
    left = iter(range(n_calls))

    def report(progress):
        if next(left, None) is None:
            raise StopHereError

    return report


CONVERSIONS = {
    "rows": lambda folder, **options: cg.rows.convert(folder.parent / "X.svm", folder, chunk_bytes=2**12, **options),
    "rows in order": lambda folder, **options: cg.rows.convert(
        folder.parent / "X.svm", folder, chunk_bytes=2**12, shuffle=False, **options
    ),
    "columns": lambda folder, **options: cg.columns.convert(folder.parent / "X.svm", folder, **options),
}
JOURNALS = {
    "as it was": lambda folder: None,
    "a far index": lambda folder: change(folder, "indices", replaced(0, 10**9), name="conversion.json"),
    "a negative index": lambda folder: change(folder, "indices", replaced(0, -1), name="conversion.json"),
    "rows that go back": lambda folder: change(folder, "indptr", replaced(2, 2**40), name="conversion.json"),
    "a huge size": lambda folder: edit(
        folder, lambda c: (c["pieces"] or c["chunks"])[0].update(size=10**18), "conversion.json"
    ),
    "a name outside": lambda folder: edit(
        folder, lambda c: entries_of(c, "data")[0].update(name="../X.svm"), "conversion.json"
    ),
    "no form": lambda folder: edit(folder, lambda c: c.update(form=None), "conversion.json"),
    "fewer features": lambda folder: edit(folder, lambda c: c["form"].update(n_features=3), "conversion.json"),
    "another kind": lambda folder: edit(folder, lambda c: c["form"].update(kind="dense"), "conversion.json"),
    "no place": lambda folder: edit(folder, lambda c: c.update(place="x", n_skipped=-5), "conversion.json"),
    "deep": lambda folder: (folder / "conversion.json").write_text("[" * 100_000),
    "edited": lambda folder: (folder / "conversion.json").write_text(json.dumps(content_of(folder, "conversion.json"))),
}


@pytest.mark.parametrize("craft", JOURNALS)
@pytest.mark.parametrize("kind", CONVERSIONS)
def test_a_conversion_begins_again_where_its_journal_is_wrong(kind, craft, whole, tmp_path, monkeypatch):
    monkeypatch.setattr("condgrad.storage.sources.libsvm._BLOCK_BYTES", 2**11)
    monkeypatch.setattr("condgrad.storage.column_writer._PIECE", 2**12)
    samples = cg.rows.open(whole / "sparse rows")
    text = ""
    for chunk, first in zip(samples.chunks(), samples._firsts, strict=False):
        for i, row in enumerate(chunk.matrix.X):
            entries = " ".join(f"{j + 1}:{value:.3f}" for j, value in zip(row.indices, row.data, strict=True))
            text += f"{samples.y[first + i]:g} {entries}\n"
    (tmp_path / "X.svm").write_text(text)
    settings = {"random_state": 0} if "rows" in kind else {}
    convert, folder = CONVERSIONS[kind], tmp_path / "folder"
    with pytest.raises(StopHereError):
        convert(folder, callback=stop_after(6), **settings)
    assert (folder / "conversion.json").exists()
    JOURNALS[craft](folder)
    found = convert(folder, **settings)
    other = tmp_path / "other"
    convert(other, **settings)
    assert not (folder / "conversion.json").exists() and found.shape == (N, D)
    for path in other.iterdir():
        assert (folder / path.name).read_bytes() == path.read_bytes()
