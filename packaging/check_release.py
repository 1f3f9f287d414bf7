"""Refuse a tag that is not the version, or a version whose day is not in the changelog.

`python packaging/check_release.py v1.2.3` exits 1 and says what is wrong.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]


def fault(tag: str, version: str, changelog: str) -> str | None:
    """
    >>> fault("v1.2", "1.3", "")
    'the tag is v1.2, but pyproject.toml says 1.3'
    >>> fault("v1.2", "1.2", "## 1.2 – unreleased")
    'CHANGELOG.md: give 1.2 its day, as in "## 1.2 – 2030-01-31"'
    >>> fault("v1.2", "1.2", "## 1.2 – 2030-01-31")
    """
    if tag != f"v{version}":
        return f"the tag is {tag}, but pyproject.toml says {version}"
    if not re.search(rf"^## {re.escape(version)} – \d{{4}}-\d\d-\d\d$", changelog, re.MULTILINE):
        return f'CHANGELOG.md: give {version} its day, as in "## {version} – 2030-01-31"'
    return None


if __name__ == "__main__":
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    sys.exit(fault(sys.argv[1], project["version"], (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")))
