"""What the commands read: items with their labels and comparisons, and models."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from ..hasher import CGHash
    from ..reading import Items


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
        if self.items == "-" == self.labels:
            raise click.UsageError("items and labels cannot both be standard input")

    def read(self, features: Any = None) -> Items:
        from ..reading import read_items, read_labels

        items = read_items(self.items, label_column=self.label_column, id_column=self.id_column, features=features)
        if self.labels is not None:
            items.labels = read_labels(self.labels, len(items.X))
        return items


def load_model(path: str) -> CGHash:
    """The model of a file; `X does not have valid feature names` is no news to who reads columns by name."""
    import warnings

    from ..hasher import CGHash

    warnings.filterwarnings("ignore", message="X does not have valid feature names")
    return CGHash.load(path)


def feature_names(model: CGHash) -> list[str] | None:
    """The names of the columns that a model was fitted on, where it knows them."""
    return list(getattr(model, "feature_names_in_", [])) or None


def say(words: str, quiet: bool = False) -> None:
    if not quiet:
        click.echo(f"cghash: {words}", err=True)


def say_ignored(items: Items, quiet: bool = False) -> None:
    if items.ignored:
        named = ", ".join(name or "(without a name)" for name in items.ignored[:8])
        say(f"{items.name}: not features: {named}{' …' if len(items.ignored) > 8 else ''}", quiet)
