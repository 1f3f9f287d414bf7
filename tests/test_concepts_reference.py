"""The reference has every public name, and every public method of the classes that it describes."""

from __future__ import annotations

import importlib
import inspect
import re
from pathlib import Path

import pytest

TEXT = (Path(__file__).parents[1] / "docs" / "reference.md").read_text("utf-8")
DIRECTIVES = re.findall(r"^\.\. auto(\w+):: ([\w.]+)\n((?:   :.*\n)*)", TEXT, re.M)
PUBLIC = ("cghash", "cghash.codes", "cghash.criteria", "cghash.peers", "cghash.index", "cghash.stores")
PUBLIC += ("cghash.cluster", "cghash.reading", "cghash.workspace", "cghash.client", "cghash.lab.features")


def resolve(name):
    """The object of a dotted name."""
    module, _, rest = name.rpartition(".")
    try:
        return getattr(importlib.import_module(module), rest)
    except ModuleNotFoundError:
        return getattr(resolve(module), rest)


def described():
    """Objects that some directive describes."""
    for kind, name, options in DIRECTIVES:
        listed = re.search(r":members:(.*)", options)
        if kind != "module":
            yield resolve(name)
        elif listed:
            module = importlib.import_module(name)
            names = [n.strip() for n in listed[1].split(",") if n.strip()] or getattr(module, "__all__", dir(module))
            yield from (getattr(module, n) for n in names)


def full_name(thing):
    """Of a class or function; the same also where doctests have loaded a module a second time."""
    return f"{thing.__module__}.{thing.__qualname__}" if hasattr(thing, "__qualname__") else ""


@pytest.mark.parametrize("module", PUBLIC)
def test_every_public_class_and_function_is_in_the_reference(module):
    home = importlib.import_module(module)
    known = {full_name(thing) for thing in described()}
    things = {name: getattr(home, name) for name in home.__all__}
    missing = [
        n for n, t in things.items() if (inspect.isclass(t) or inspect.isfunction(t)) and full_name(t) not in known
    ]
    assert not missing


CLASSES = {name: options for kind, name, options in DIRECTIVES if kind == "class" and ":members:" in options}


def explained_methods(kind):
    """Public methods with a docstring that a class has of its own, or of bases that the reference does not describe."""
    others = {full_name(resolve(name)) for name in CLASSES} - {full_name(kind)}
    bases = [base for base in kind.__mro__ if base.__module__.startswith("cghash") and full_name(base) not in others]
    for base in bases:
        for name, thing in vars(base).items():
            function = getattr(thing, "__func__", thing)
            if not name.startswith("_") and inspect.isfunction(function) and function.__doc__:
                yield name


@pytest.mark.parametrize("name", CLASSES)
def test_every_public_method_of_a_described_class_is_listed(name):
    listed = {n.strip() for n in re.search(r":members:(.*)", CLASSES[name])[1].split(",") if n.strip()}
    missing = set(explained_methods(resolve(name))) - listed
    assert not listed or not missing


@pytest.mark.parametrize("name", [name for kind, name, _ in DIRECTIVES if kind != "module"])
def test_what_the_reference_describes_has_a_docstring(name):
    assert inspect.getdoc(resolve(name))
