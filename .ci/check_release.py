"""Check that one version stands everywhere before it is released.

    python .ci/check_release.py [v0.1.0]

The version is written in condgrad/__init__.py. CITATION.cff must repeat it, CHANGELOG.md must have a section for it,
and where a tag is given, the tag must be that version and the section must have a date.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def found(file: str, pattern: str) -> str | None:
    """Return the first group of a pattern in a file of the checkout, or None."""
    match = re.search(pattern, (ROOT / file).read_text(encoding="utf-8"), re.MULTILINE)
    return match[1] if match else None


def mistakes(tag: str | None) -> list[str]:
    """Return a sentence for each disagreement."""
    version = found("condgrad/__init__.py", r'^__version__ = "(.+)"$')
    said = []
    cited = found("CITATION.cff", r"^version: (.+)$")
    if cited != version:
        said.append(f"CITATION.cff says {cited}, but condgrad/__init__.py says {version}: write the latter.")
    date = found("CHANGELOG.md", rf"^## \[{re.escape(str(version))}\] - (.+)$")
    if date is None:
        said.append(f'CHANGELOG.md has no section "## [{version}] - DATE": move what is unreleased into it.')
    if tag and tag != f"v{version}":
        said.append(f"The tag is {tag}, but condgrad/__init__.py says {version}: tag v{version}.")
    if tag and date and not re.fullmatch(r"\d{4}-\d{2}-\d{2}", date):
        said.append(f"CHANGELOG.md dates {version} {date!r}: write the day of the release as YYYY-MM-DD.")
    return said


if __name__ == "__main__":
    said = mistakes(sys.argv[1] if len(sys.argv) > 1 else None)
    print(*(said or ["The version is the same everywhere."]), sep="\n")
    sys.exit(bool(said))
