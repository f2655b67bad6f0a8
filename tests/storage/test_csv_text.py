"""CSV and ratings: pyarrow and the strict reader return the same, and faults name their line."""

import io

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from condgrad.datasets.ratings import ratings_of
from condgrad.storage.sources import csv_file
from condgrad.storage.sources.text import Text

pytest.importorskip("pyarrow")

FIELD = st.one_of(
    st.sampled_from(["1", "2.5", "-3e-2", "+1", " 4 ", "", " ", "nan", "inf", "1_0", "a", "ann", " ann", '"a"', '"a,b"',
                     '"a\nb"', '"say ""x"""', '"', "1e400", "0x1", "NA", "true", "\xa0", "\ufeff", "\0", "1,5", "#"]),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.integers(0, 9).map(str),
    st.text(max_size=3),
)  # fmt: skip
ROW = st.lists(FIELD, min_size=3, max_size=3) | st.lists(FIELD, max_size=4)
LINE_END = st.sampled_from(["\n", "\n", "\r\n", "\n\n"])


@st.composite
def texts(draw):
    """Return text with a delimiter, most of whose rows have three fields."""
    delimiter = draw(st.sampled_from([",", ",", "\t", ";", "::", " "]))
    rows = draw(st.lists(st.tuples(ROW, LINE_END), max_size=8))
    head = draw(st.sampled_from(["", "user,film,stars\n".replace(",", delimiter), f"1{delimiter}2{delimiter}3\n"]))
    return head + "".join(delimiter.join(fields) + end for fields, end in rows)


def outcome(text, has_arrow, needs_values):
    with pytest.MonkeyPatch.context() as patch:
        if not has_arrow:
            patch.setattr(csv_file, "_arrow_csv", lambda: None)
        try:
            found = ratings_of(Text("x.csv", io.BytesIO(text.encode())), needs_values=needs_values)
        except ValueError as error:
            return str(error)
    values = None if found.values is None else found.values.view(np.int64).tolist()
    return found.rows.tolist(), found.cols.tolist(), values, found.row_labels, found.col_labels


def judge(text, needs_values):
    assert outcome(text, True, needs_values) == outcome(text, False, needs_values)


@hypothesis.settings(max_examples=150, deadline=None)
@hypothesis.given(texts(), st.booleans())
def test_ratings_are_the_same_without_pyarrow(text, needs_values):
    judge(text, needs_values)


@pytest.mark.campaign
@hypothesis.settings(max_examples=20_000, deadline=None)
@hypothesis.given(texts(), st.booleans())
def test_ratings_are_the_same_without_pyarrow_in_thousands_of_texts(text, needs_values):
    judge(text, needs_values)


@pytest.mark.parametrize("delimiter", [",", "\t", "::", ";", " "])
@pytest.mark.parametrize("has_arrow", [True, False])
def test_names_are_numbered_in_their_order_over_all_blocks(delimiter, has_arrow, monkeypatch):
    rng = np.random.default_rng(0)
    places = rng.permutation(40 * 30)[:900]
    rows, cols, values = places // 30, places % 30, rng.integers(1, 11, 900) / 2
    space = "" if delimiter == " " else " "
    text = "".join(
        delimiter.join([f"u{i}", f"f{space}{j}", str(v), f"x{space}y"]) + "\n"
        for i, j, v in zip(rows, cols, values, strict=True)
    )
    monkeypatch.setattr("condgrad.storage.sources.text.BATCH_BYTES", 1000)
    monkeypatch.setattr(csv_file, "_PIECE_BYTES", 300)
    if not has_arrow:
        monkeypatch.setattr(csv_file, "_arrow_csv", lambda: None)
    shares = []
    found = ratings_of(Text("x.dat", io.BytesIO(text.encode())), report=lambda n, share: shares.append(n))
    assert [int(label[1:]) for label in found.row_labels] == list(dict.fromkeys(rows.tolist()))
    np.testing.assert_array_equal([int(found.row_labels[k][1:]) for k in found.rows], rows)
    np.testing.assert_array_equal([int(found.col_labels[k][1:]) for k in found.cols], cols)
    np.testing.assert_array_equal(found.values, values)
    assert len(shares) > 5 and shares[-1] == 900
