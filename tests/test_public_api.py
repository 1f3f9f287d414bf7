"""What others may rely on: public names and signatures, as tests/public_api.txt lists them.

A change here is a change for users. If it is meant, write the list anew, look at what git shows of it, and tell it in
CHANGELOG.md:

    python tests/test_public_api.py --update
"""

from __future__ import annotations

import difflib
import inspect
import sys
from functools import cached_property
from importlib import import_module
from pathlib import Path

import pytest

pytestmark = [pytest.mark.core, pytest.mark.portable]

LIST = Path(__file__).with_name("public_api.txt")
HOW = "If this is meant: python tests/test_public_api.py --update, and tell it in CHANGELOG.md."

# README's table and docs/reference.md. A module's names are its __all__ unless some are named here.
MODULES = {
    "cghash": None,
    "cghash.client": None,
    "cghash.cluster": None,
    "cghash.codes": None,
    "cghash.index": None,
    "cghash.criteria": None,
    "cghash.lab.datasets": None,
    "cghash.lab.experiments.plan_files": ("read_experiment",),
    "cghash.lab.experiments.results": ("read_results",),
    "cghash.lab.experiments.runner": ("run",),
    "cghash.lab.features": None,
    "cghash.lab.reporting": None,
    "cghash.learning.families": ("FAMILIES", "Family", "Functions"),
    "cghash.learning.losses": ("LOSSES", "Loss"),
    "cghash.learning.result": ("ColumnRecord",),
    "cghash.learning.triplets": ("TripletSet",),
    "cghash.peers": None,
    "cghash.peers.base": ("Peer",),
    "cghash.reading": None,
    "cghash.stores": None,
    "cghash.stores.duckdb": ("DuckDBStore",),
    "cghash.stores.faiss": ("FaissStore", "to_faiss"),
    "cghash.stores.onnx": ("origin_of_onnx", "to_onnx"),
    "cghash.stores.parquet": ("ParquetStore",),
    "cghash.stores.postgres": ("PostgresStore",),
    "cghash.workspace": None,
    "cghash.exceptions": (),  # all of its classes
}


def names_of(module):
    chosen = MODULES[module.__name__]
    if chosen == ():
        return sorted(name for name, value in vars(module).items() if inspect.isclass(value))
    return sorted(module.__all__ if chosen is None else chosen)


def is_ours(value):
    return getattr(value, "__module__", "").partition(".")[0] == "cghash"


def signature(function, *, bound=False):
    """Names, kinds and defaults; types are left out, since checkers hold them, and so are functions as defaults."""
    empty = inspect.Parameter.empty
    found = list(inspect.signature(function).parameters.values())[bound:]
    plain = [p.replace(annotation=empty, default=... if inspect.isfunction(p.default) else p.default) for p in found]
    return str(inspect.Signature(plain)).replace("Ellipsis", "...")


def members(cls, public):
    """Constructor, methods, properties and fields that a class does not have from a base which is public itself."""
    told = {above for base in cls.__mro__[1:] if base in public for above in base.__mro__}
    found = {}
    for base in reversed(cls.__mro__):
        if is_ours(base) and base not in told:
            found |= vars(base)
    for name, value in sorted(found.items()):
        function = getattr(value, "__func__", value)
        if name.startswith("_") and name != "__init__":
            continue
        if isinstance(value, property | cached_property) or name in getattr(cls, "_fields", ()):
            yield name
        elif inspect.isfunction(function) and is_ours(function):
            yield name + signature(function, bound=not isinstance(value, staticmethod))


def lines_of(module, seen, public):
    for name in names_of(module):
        value = getattr(module, name)
        full = f"{module.__name__}.{name}"
        if not inspect.isclass(value):
            yield full + (signature(value) if inspect.isfunction(value) else "")
        elif (first := seen.setdefault(value, full)) != full:
            yield f"{full} is {first}"
        else:
            plain = [base for base in value.__bases__ if issubclass(base, BaseException | tuple)]
            bases = [base.__name__ for base in value.__mro__[1:] if base in public or base in plain]
            yield f"class {full}({', '.join(bases)})"
            yield from (f"{full}.{member}" for member in members(value, public))


def public_api():
    """The lines of the list, and the modules that need a package that is not here."""
    found, absent = [], []
    for name in MODULES:
        try:
            found.append(import_module(name))
        except ImportError as error:
            if is_part_of_cghash(error.name):
                raise
            absent.append(name)
    public = {
        getattr(module, name) for module in found for name in names_of(module) if inspect.isclass(getattr(module, name))
    }
    seen = {}
    return [line for module in found for line in lines_of(module, seen, public)], absent


def is_part_of_cghash(name):
    return name is not None and name.partition(".")[0] == "cghash"


def test_public_names_and_signatures_are_those_of_the_list():
    lines, absent = public_api()
    without = tuple(f"{kind}{name}." for name in absent for kind in ("", "class "))
    kept = [line for line in LIST.read_text(encoding="utf-8").splitlines() if not line.startswith(without)]
    changes = [
        line for line in difflib.unified_diff(kept, lines, "listed", "here", lineterm="", n=0) if line[0] in "+-"
    ]
    assert not changes, "\n".join(["the public API changed.", *changes, HOW])


def test_signatures_depend_on_neither_addresses_nor_installed_versions():
    assert not [
        line for line in LIST.read_text(encoding="utf-8").splitlines() if " at 0x" in line or "<locals>" in line
    ]


class Base:
    def shown(self, a, *, b=1): ...


class Derived(Base):
    def __init__(self, n, flag=True): ...

    @classmethod
    def made(cls, path): ...

    @property
    def size(self): ...

    def _hidden(self): ...


def test_methods_of_a_public_base_are_listed_there_alone(monkeypatch):
    monkeypatch.setattr(sys.modules[__name__], "is_ours", lambda value: getattr(value, "__module__", "") == __name__)
    own = ["__init__(n, flag=True)", "made(path)", "size"]
    assert list(members(Derived, {Base, Derived})) == own
    assert list(members(Derived, {Derived})) == [*own[:2], "shown(a, *, b=1)", own[2]]


if __name__ == "__main__":
    written, missing = public_api()
    if missing or sys.argv[1:] != ["--update"]:
        sys.exit(f"cannot be imported: {', '.join(missing)}; make setup" if missing else __doc__)
    LIST.write_text("\n".join(written) + "\n", encoding="utf-8", newline="\n")
    print(f"{LIST.name}: {len(written)} lines")
