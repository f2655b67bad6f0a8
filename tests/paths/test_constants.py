"""The page of the paths lists every tuning constant of the folder, with the meaning that the code gives it."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def rows():
    """The rows of the table as the code would have them."""
    for path in sorted((ROOT / "condgrad" / "paths").glob("*.py")):
        for name, value, meaning in re.findall(
            r"^(_[A-Z_]+) = (-?[\d._e-]+)  # (.*)$", path.read_text(encoding="utf-8"), flags=re.MULTILINE
        ):
            yield f"| `{path.stem}` | `{name}` | {value} | {meaning} |"


def test_the_page_lists_every_constant():
    text = (ROOT / "docs" / "paths.md").read_text(encoding="utf-8")
    wanted = list(rows())
    assert len(wanted) > 50
    assert [row for row in text.splitlines() if row.startswith("| `") and "` | `_" in row] == wanted


def test_every_number_has_a_meaning_beside_it():
    for path in (ROOT / "condgrad" / "paths").glob("*.py"):
        for line in re.findall(r"^_[A-Z_]+ = -?[\d._e-]+.*$", path.read_text(encoding="utf-8"), flags=re.MULTILINE):
            assert "  # " in line, f"{path.name}: what is {line}?"
