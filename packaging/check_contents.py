"""Look at what a wheel and an sdist hold: all that their users need, and nothing else.

`python packaging/check_contents.py dist/*` says what is wrong and exits 1, or prints how many files each holds.
"""

from __future__ import annotations

import sys
import tarfile
import zipfile
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src"
MADE = ("__pycache__", ".so", ".pyc")

IN_WHEEL = [
    "cghash/py.typed",
    "cghash/_kernels/_native.*",
    "cghash/web/templates/base.html",
    "cghash/web/static/style.css",
]
PARTS_OF_WHEEL = ["cghash", "cghash.libs", "cghash-*.dist-info"]  # auditwheel puts libraries into the second
IN_SDIST = [
    "CHANGELOG.md", "CITATION.cff", "CMakeLists.txt", "LICENSE", "Makefile", "PKG-INFO", "README.md", "pyproject.toml",
    "benchmarks/tables.py", "docs/conf.py", "examples/*.py", "native/bindings.cpp", "native/kernels/isa.inc",
    "packaging/dist.sh", "tests/conftest.py", "tests/contract/*.py", "tests/fixtures/*", "tests/public_api.txt",
]  # fmt: skip
NOT_IN_SDIST = [
    "out/*",
    "build/*",
    "dist/*",
    "benchmarks/results/*",
    "docs/_build/*",
    ".venv/*",
    "*.so",
    "*.pyc",
    ".ci/*",
    ".github/*",
]


def package_files() -> set[str]:
    """Files of the package in the sources, as a wheel names them."""
    files = (path.relative_to(SOURCE).as_posix() for path in SOURCE.rglob("*") if path.is_file())
    return {name for name in files if not any(made in name for made in MADE)}


def faults_of_wheel(names: set[str]) -> list[str]:
    """
    >>> faults_of_wheel({"tests/test_a.py", "cghash/_kernels/_native.so"})[-1]
    'is of no use to users: tests/test_a.py'
    """
    strange = {
        name for name in names if not any(fnmatch(PurePosixPath(name).parts[0], part) for part in PARTS_OF_WHEEL)
    }
    return [
        *(f"is missing: {pattern}" for pattern in IN_WHEEL if not any(fnmatch(name, pattern) for name in names)),
        *(f"is missing: {name}" for name in sorted(package_files() - names)),
        *(f"is of no use to users: {name}" for name in sorted(strange)),
    ]


def faults_of_sdist(names: set[str]) -> list[str]:
    """
    >>> faults_of_sdist({"out/demo/index.html"})[-1]
    'must not be there: out/demo/index.html'
    """
    missing = {f"src/{name}" for name in package_files()} - names
    unwanted = {name for name in names if any(fnmatch(name, pattern) for pattern in NOT_IN_SDIST)}
    return [
        *(f"is missing: {pattern}" for pattern in IN_SDIST if not any(fnmatch(name, pattern) for name in names)),
        *(f"is missing: {name}" for name in sorted(missing)),
        *(f"must not be there: {name}" for name in sorted(unwanted)),
    ]


def check(path: Path) -> list[str]:
    if path.suffix == ".whl":
        with zipfile.ZipFile(path) as wheel:
            names = {name for name in wheel.namelist() if not name.endswith("/")}
        faults = faults_of_wheel(names)
    else:
        with tarfile.open(path) as archive:
            names = {member.name.partition("/")[2] for member in archive if member.isfile()}
        faults = faults_of_sdist(names)
    print(f"{path.name}: {len(names)} files, {path.stat().st_size / 2**20:.1f} MiB")
    return [f"{path.name}: {fault}" for fault in faults]


if __name__ == "__main__":
    found = [fault for name in sys.argv[1:] for fault in check(Path(name))]
    sys.exit("\n".join(found) or None)
