"""What commands read: items with their labels, and models."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from ._output import say

if TYPE_CHECKING:
    from ..estimator import CodeEstimator
    from ..reading import Items

_IDS = {"id", "ids", "item_id", "itemid", "row_id", "uid", "uuid"}
_LABELS = {"label", "labels", "class", "target", "category"}


@dataclass(frozen=True)
class Labelled:
    """Where the items are, and what is told about each of them."""

    items: str
    labels: str | None = None
    label_column: str | None = None
    id_column: str | None = None

    def __post_init__(self) -> None:
        if self.labels is not None and self.label_column is not None:
            raise click.UsageError("--labels and --label-column cannot go together")

    def read(self, features: Any = None, as_written: bool = False) -> Items:
        """The items; labels as they are written are for comparing with those of another file."""
        from ..reading import read_items, read_labels

        columns = {"label_column": self.label_column, "id_column": self.id_column}
        items = read_items(self.items, **columns, features=features, as_written=as_written)
        if self.labels is not None:
            items.labels = read_labels(self.labels, len(items.X), as_written)
        return items

    def read_for(self, model: CodeEstimator, path: str, quiet: bool = False, as_written: bool = False) -> Items:
        """The items that the model of a file is to encode; those that it cannot are refused."""
        items = self.read(feature_names(model), as_written)
        say_ignored(items, quiet)
        _check_features(items, model, path)
        return items


def check_standard_input(**paths: str | None) -> None:
    """Refuse `-` for several files; their names are those of the parameters."""
    asking = [name for name, path in paths.items() if path == "-"]
    if len(asking) > 1:
        said = [name.upper() if name == "items" else f"--{name.replace('_', '-')}" for name in asking]
        raise click.UsageError(f"standard input can be read only once, got '-' for {' and '.join(said)}")


def load_model(path: str, ranks: bool = True) -> CodeEstimator:
    """The model of a file; one that `ranks` has the Hamming distance.

    `X does not have valid feature names` is no news to who reads columns by name.
    """
    import warnings

    from ..estimator import load

    warnings.filterwarnings("ignore", message="X does not have valid feature names")
    model = load(path)
    if ranks and not getattr(model, "hamming", True):
        kind = type(model).__name__
        raise click.UsageError(
            f"{path} is a model of {kind}, whose codes have no Hamming distance: search them in FAISS"
        )
    return model


def _check_features(items: Items, model: CodeEstimator, path: str) -> None:
    """Refuse items that the model of a file cannot encode."""
    from ..exceptions import InvalidInputError

    wanted, shape = model.n_features_in_, items.X.shape
    if shape[1] == wanted:
        return
    coded = items.X.dtype.kind in "bu" and shape[1] in (model.n_bits_, -(-model.n_bits_ // 8))
    hint = "; codes? The model takes items" if coded else ""
    raise InvalidInputError(
        f"{items.name} must hold items of {wanted} features, as {path} was fitted on, got shape {shape}{hint}"
    )


def truncated(model: CodeEstimator, n_bits: int | None) -> CodeEstimator:
    """The model's first bits, None for all."""
    if n_bits is None:
        return model
    if not 1 <= n_bits <= model.n_bits_:
        raise click.UsageError(f"--n-bits must be from 1 to {model.n_bits_}, the bits of the model, got {n_bits}")
    return model.truncate(n_bits)


def feature_names(model: CodeEstimator) -> list[str] | None:
    """The names of the columns that a model was fitted on, where it knows them."""
    return list(getattr(model, "feature_names_in_", [])) or None


def say_features(items: Items, quiet: bool = False) -> None:
    """Tell which columns are features: a label among them is seen here, and nowhere else."""
    if items.names:
        first, last = items.names[0], items.names[-1]
        named = first if len(items.names) == 1 else f"{first} {'…' if len(items.names) > 2 else 'and'} {last}"
        say(f"features: {len(items.names)} column{'s'[: len(items.names) > 1]} ({named})", quiet)


def warn_of_features(items: Items) -> None:
    """Warn of columns among the features that look like ids or labels."""
    import warnings

    from ..exceptions import CGHashWarning

    for name, column in zip(items.names or [], items.X.T, strict=True) if items.names else ():
        if name.lower() in _IDS or _counts(column):
            said = f"looks like ids: --id-column {name} leaves it out"
        elif name.lower() in _LABELS and items.labels is None:
            said = f"looks like labels: --label-column {name} learns from it"
        else:
            continue
        warnings.warn(f"{items.name}: column {name!r} is taken as a feature, and {said}", CGHashWarning, stacklevel=2)


def _counts(column: Any) -> bool:
    """Whether a column counts the rows."""
    return len(column) > 2 and bool((column[1:] - column[:-1] == 1).all())


def say_ignored(items: Items, quiet: bool = False) -> None:
    if items.ignored:
        named = ", ".join(name or "(without a name)" for name in items.ignored[:8])
        say(f"{items.name}: not features: {named}{' …' if len(items.ignored) > 8 else ''}", quiet)
