"""Experiments as TOML files: those that come with the package, and one's own."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any, TypeVar

from ... import _validation as check
from ...estimator import MOST_BITS
from ...exceptions import InvalidInputError
from ...reading.sources import SUFFIXES
from ..datasets import DATASETS
from .methods import CRITERIA, EUCLIDEAN, NAMES, estimator_of
from .plan import DataSpec, Experiment, MethodSpec, Validation

__all__ = ["built_in", "part_of", "read_experiment", "source_of"]

PROTOCOLS = ("seen", "heldout", "unseen")
SCALINGS = ("none", "unit", "hellinger")
DRAWN_BY = ("cghash", "scikit-learn")
MOST_SPLITS = 100_000
MOST_SEED = 2**32
Spec = TypeVar("Spec", DataSpec, MethodSpec)

_TEXT, _TABLE, _LIST, _FLAG = ("a text", str), ("a table", dict), ("a list", list | tuple), ("true or false", bool)
_TYPES: dict[type, dict[str, tuple[str, Any]]] = {  # of settings that are not numbers
    DataSpec: dict.fromkeys(("name", "path", "labels", "label_column", "drawn_by", "digest"), _TEXT),
    MethodSpec: dict.fromkeys(("name", "estimator"), _TEXT)
    | dict.fromkeys(("parameters", "search", "on"), _TABLE)
    | {"labels": _FLAG, "pictures": ("true, false or 'all'", bool | str), "bits": _LIST},
    Validation: {},
    Experiment: dict.fromkeys(("name", "title"), _TEXT),
}


def built_in() -> list[str]:
    """The names of the experiments that come with the package."""
    return sorted(Path(file.name).stem for file in _folder().iterdir() if file.name.endswith(".toml"))


def source_of(name: str | os.PathLike[str]) -> str:
    """The TOML text of an experiment, by its name or its path."""
    if str(name) in built_in():
        return str((_folder() / f"{name}.toml").read_text(encoding="utf-8"))
    path = Path(name)
    if path.suffix != ".toml":
        raise InvalidInputError(f"experiment must be one of {', '.join(built_in())} or a .toml file, got {str(name)!r}")
    return path.read_text(encoding="utf-8")


def read_experiment(name: str | os.PathLike[str], *, imports: Sequence[str] = ()) -> Experiment:
    """The experiment of a name or of a .toml file.

    Parameters
    ----------
    name : one of `cghash lab list`, or the path of a .toml file
    imports : the classes, as `module:Class`, that the file may name; importing one runs code

    Examples
    --------
    >>> paper = read_experiment("paper")
    >>> len(paper.methods), paper.bits
    (13, (10, 20, 30, 40, 50, 60))
    """
    try:
        said = tomllib.loads(source_of(name))
    except InvalidInputError:
        raise
    except (ValueError, RecursionError) as error:  # what is no TOML, no UTF-8, or no number that Python reads
        raise InvalidInputError(f"{name} must be a TOML file: {error}") from error
    _check_numbers(str(name), said)
    experiment = _checked(_parsed(str(name), said))
    _check_imports(str(name), experiment, imports)
    _check_methods(experiment)
    return experiment


def part_of(
    experiment: Experiment,
    datasets: Sequence[str] = (),
    methods: Sequence[str] = (),
    bits: Sequence[int] = (),
    splits: int | None = None,
    protocols: Sequence[str] = (),
) -> Experiment:
    """A part of the experiment; a data set that it lacks may be another's name, or the path of items."""
    return _checked(
        replace(
            experiment,
            datasets=_picked(experiment.datasets, datasets, "dataset", _other_data),
            methods=_picked(experiment.methods, methods, "method", _other_method),
            bits=tuple(bits) or experiment.bits,
            shown=() if bits else experiment.shown,
            splits=experiment.splits if splits is None else splits,
            protocols=tuple(protocols) or experiment.protocols,
        )
    )


def _folder() -> Any:
    return resources.files(__package__)


def _parsed(name: str, said: dict[str, Any]) -> Experiment:
    like = said.pop("like", None)  # an experiment from which everything comes that is not said here
    if like is not None:
        said = {**tomllib.loads(source_of(check.check_choice(like, tuple(built_in()), "like"))), **said}
    said["datasets"] = tuple(_spec(DataSpec, row, name) for row in _tables(name, said, "datasets"))
    said["methods"] = tuple(_spec(MethodSpec, row, name) for row in _tables(name, said, "methods"))
    for key in ("bits", "protocols", "shown"):
        if key in said:
            said[key] = tuple(_list(said[key], key))
    if "validation" in said:
        said["validation"] = _made(Validation, said["validation"], f"{name}: [validation]")
    stem = Path(name).stem
    return _made(Experiment, {"name": stem, "title": stem, **said}, name)  # type: ignore[no-any-return]


def _check_numbers(name: str, said: dict[str, Any]) -> None:
    """Whole numbers of 64 bits, as TOML has them; Python reads larger ones, and cannot always write them."""
    left: list[Any] = [said]
    while left:
        value = left.pop()
        if isinstance(value, dict | list):
            left.extend(value.values() if isinstance(value, dict) else value)
        elif isinstance(value, int) and not -(2**63) <= value < 2**63:
            raise InvalidInputError(f"{name}: whole numbers must have 64 bits, got one of {value.bit_length()}")


def _tables(name: str, said: dict[str, Any], key: str) -> list[dict[str, Any]]:
    rows = said.get(key)
    if not isinstance(rows, list) or not rows or not all(isinstance(row, dict) for row in rows):
        raise InvalidInputError(f"{name}: {key} must be one or more tables [[{key}]], got {rows!r}")
    return rows


def _spec(kind: type[Spec], row: dict[str, Any], name: str) -> Spec:
    """A data set is named by its path and a method by its estimator, where they are not named."""
    row = dict(row)
    if kind is DataSpec and isinstance(row.get("path"), str) and row["path"]:
        row = {"name": Path(row["path"]).stem, **row}
    if kind is MethodSpec:
        known = row.get("name") or row.get("estimator")
        row = {"name": known, "estimator": known, **row}
    if not isinstance(row.get("name"), str) or not row["name"]:
        raise InvalidInputError(f"{name}: each of its data sets and methods must have a name, got {row!r}")
    return _made(kind, row, f"{name}: {row['name']}")  # type: ignore[no-any-return]


def _made(kind: type[Any], values: Any, where: str) -> Any:
    known = list(kind.__dataclass_fields__)
    if not isinstance(values, dict) or set(values) - set(known):
        raise InvalidInputError(f"{where}: keys must be among {', '.join(known)}, got {_keys(values)}")
    for key, value in values.items():
        words, wanted = _TYPES[kind].get(key, ("", object))
        if not isinstance(value, wanted):
            raise InvalidInputError(f"{where}: {key} must be {words}, got {value!r:.40}")
    return kind(**values)


def _keys(values: Any) -> str:
    return ", ".join(values) if isinstance(values, dict) else repr(values)


def _list(values: Any, key: str) -> list[Any]:
    if not isinstance(values, list | tuple):
        raise InvalidInputError(f"{key} must be a list, got {values!r}")
    return list(values)


def _other_data(name: str) -> DataSpec | None:
    if name in DATASETS:
        return DataSpec(name)
    return DataSpec(Path(name).stem, name) if Path(name).suffix.lower() in SUFFIXES else None


def _other_method(name: str) -> MethodSpec | None:
    if ":" in name:  # module:Class
        estimator_of(name, {}, 1, 0, 1)  # a mistake is said now and not by every task
        return MethodSpec(name.rpartition(":")[2], name)
    return MethodSpec(name, name) if name in NAMES else None


def _picked(
    all_of: tuple[Spec, ...], names: Sequence[str], what: str, other: Callable[[str], Spec | None]
) -> tuple[Spec, ...]:
    known = {spec.name: spec for spec in all_of}
    picked = []
    for name in names:
        spec = known.get(name) or other(name)
        if spec is None:
            raise InvalidInputError(f"{what} must be one of {', '.join(known)}, got {name!r}")
        picked.append(spec)
    return tuple(picked) or all_of


def _checked(experiment: Experiment) -> Experiment:
    """The experiment with its numbers of bits in order; says what is wrong with its numbers and names."""
    if not experiment.bits or not experiment.protocols:
        raise InvalidInputError("bits and protocols must name one or more, got none")
    for bits in experiment.bits:
        if check.check_whole(bits, 1, "bits") > MOST_BITS:
            raise InvalidInputError(f"bits must be at most {MOST_BITS}, got {bits!r:.40}")
    for name, least in (("splits", 1), ("first_split", 0), ("top", 1), ("neighbors", 1), ("true_neighbors", 0)):
        check.check_whole(getattr(experiment, name), least, name)
    for name, least in (("folds", 2), ("items", 10), ("bits", 0)):
        check.check_whole(getattr(experiment.validation, name), least, f"validation.{name}")
    if experiment.validation.folds > experiment.validation.items:
        raise InvalidInputError(
            f"validation.folds must be at most its items, {experiment.validation.items}, "
            f"got {experiment.validation.folds}"
        )
    if experiment.first_split + experiment.splits > MOST_SEED:
        raise InvalidInputError(f"first_split must be below {MOST_SEED} with all splits, got {experiment.first_split}")
    if experiment.splits > MOST_SPLITS:
        raise InvalidInputError(f"splits must be at most {MOST_SPLITS}, got {experiment.splits!r:.40}")
    check.check_choice(experiment.validation.criterion, ("all", *CRITERIA), "validation.criterion")
    for protocol in experiment.protocols:
        check.check_choice(protocol, PROTOCOLS, "protocol")
    for dataset in experiment.datasets:
        check.check_choice(dataset.scaling, SCALINGS, f"scaling of {dataset.name}")
        check.check_choice(dataset.drawn_by, DRAWN_BY, f"drawn_by of {dataset.name}")
        for name in ("train", "test"):
            if getattr(dataset, name) is not None:
                check.check_whole(getattr(dataset, name), 2, f"{name} of {dataset.name}")
    for kind in (experiment.datasets, experiment.methods):
        names = [spec.name for spec in kind]
        if len(set(names)) < len(names):
            raise InvalidInputError(f"names must differ, got {', '.join(names)}")
    if any(type(bits) is not int or bits not in experiment.bits for bits in experiment.shown):
        raise InvalidInputError(f"shown must be among the bits {experiment.bits}, got {experiment.shown}")
    return replace(experiment, bits=tuple(sorted(set(experiment.bits))))


def _check_imports(name: str, experiment: Experiment, imports: Sequence[str]) -> None:
    """Only classes that the user names are imported: the file may come from a stranger."""
    for method in experiment.methods:
        if ":" in str(method.estimator) and method.estimator not in imports:
            named = f"by --import {method.estimator}, or imports=[{method.estimator!r}] from Python"
            raise InvalidInputError(
                f"{name}: {method.estimator} would be imported, and its code run; if you trust it, name it, {named}"
            )


def _check_methods(experiment: Experiment) -> None:
    """Build each estimator once, so that a mistake is said now and not by every task."""
    sets = [data.name for data in experiment.datasets]
    for method in experiment.methods:
        if not all(isinstance(there, dict) for there in method.on.values()):
            raise InvalidInputError(f"{method.name}: on must give each data set a table, got {method.on!r:.80}")
        known = set(method.on) - set(DATASETS) - set(sets)
        if known:
            raise InvalidInputError(f"{method.name}: on must name data sets, {', '.join(sets)}, got {', '.join(known)}")
        if method.pictures not in (True, False, "all"):
            raise InvalidInputError(
                f'{method.name}: pictures must be true, false or "all", got {method.pictures!r:.40}'
            )
        if any(type(bits) is not int or bits not in experiment.bits for bits in method.bits):
            raise InvalidInputError(f"bits of {method.name} must be among {experiment.bits}, got {method.bits}")
        if not all(_list(values, f"search of {key}") for key, values in method.search.items()):
            raise InvalidInputError(f"search of {method.name} must have one value or more, got {method.search}")
        for name in sets:
            tried = {key: values[0] for key, values in method.search.items()}
            if method.estimator != EUCLIDEAN:
                estimator_of(method.estimator, method.parameters_on(name) | tried, max(experiment.bits), 0, 1)
