"""`cghash fit`: learn a model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ._inputs import Labelled, check_standard_input, say_features, say_ignored, warn_of_features
from ._options import (
    device_option,
    estimator_options,
    given,
    id_column_option,
    label_column_option,
    labels_option,
    learned_model_option,
    quiet_option,
    triplets_option,
)
from ._output import say
from ._running import INTERRUPTED

if TYPE_CHECKING:
    from ..hasher import CGHash
    from ..reading import Items


@click.command()
@click.argument("items")
@labels_option
@label_column_option
@triplets_option
@click.option("--duplets", metavar="FILE", help="Pairs that should get near codes: columns first, second, or any two.")
@id_column_option
@learned_model_option
@estimator_options()
@device_option
@quiet_option
@click.option("-v", "--verbose", is_flag=True, help="Say a line for each bit, where there is no progress bar.")
def fit(
    items: str,
    labels: str | None,
    label_column: str | None,
    triplets: str | None,
    duplets: str | None,
    id_column: str | None,
    output: str,
    device: str | None,
    quiet: bool,
    verbose: bool,
    **parameters: Any,
) -> int:
    """Learn hash functions and weights from ITEMS, and write them to a model file.

    ITEMS is .npy, .npz (array X, labels y), .csv (numeric columns) or .parquet; '-' is standard input (csv or npy).
    What is near to what comes from labels, from triplets ("the anchor is nearer to near than to far"), or, with
    neither, from Euclidean neighbours. Ctrl-C stops and keeps the bits learned so far.

    \b
    Examples:
      cghash fit items.npy --labels labels.npy -o model.cghash
      cghash fit iris.csv --label-column species -b 16 -o iris.cghash
      cghash fit photos.parquet --id-column name --triplets answers.csv -o photos.cghash
      cghash fit big.npz --checkpoint big.ckpt --time-limit 3600 -o big.cghash
      cghash fit items.npy --labels labels.npy --device cuda -o model.cghash
      cut -d, -f2- items.csv | cghash fit - --seed 0 -o model.cghash
    """
    if labels is not None and triplets is not None:
        raise click.UsageError("--labels and --triplets cannot go together: labels make triplets of their own")
    check_standard_input(items=items, labels=labels, triplets=triplets, duplets=duplets)
    given_items = Labelled(items, labels, label_column, id_column).read()
    say_features(given_items, quiet)
    say_ignored(given_items, quiet)
    warn_of_features(given_items)
    from ..hasher import CGHash

    model = CGHash(**given(parameters), verbose=0 if quiet else 1 + verbose)
    supervision = _supervision(given_items, triplets, duplets, label_column, quiet)
    model.fit(given_items.X, device=device, **supervision)
    if given_items.names is not None:
        import numpy as np

        model.feature_names_in_ = np.array(given_items.names, dtype=object)
    model.save(output)
    summarize(model, output, quiet)
    return INTERRUPTED if model.result_.status == "interrupted" else 0


def _supervision(
    items: Items, triplets: str | None, duplets: str | None, label_column: str | None, quiet: bool
) -> dict[str, Any]:
    from ..reading import read_duplets, read_triplets

    n = len(items.X)
    told: dict[str, Any] = {}
    if triplets is not None:
        told["triplets"], told["triplet_weights"] = read_triplets(triplets, n, items.ids)
        if items.labels is not None:
            home = "in array 'y'" if label_column is None else f"of column {label_column!r}"
            say(f"labels {home} are not used: the triplets decide", quiet)
    elif items.labels is not None:
        told["y"] = items.labels
    else:
        say("no labels or triplets: an item's Euclidean neighbours are taken to be near to it", quiet)
    if duplets is not None:
        told["duplets"] = read_duplets(duplets, n, items.ids)
    return told


def summarize(model: CGHash, output: str, quiet: bool) -> None:
    """Say how a fit went and where its model is."""
    result = model.result_
    interrupted = result.status == "interrupted"
    size = f" ({Path(output).stat().st_size / 1024:.0f} KiB)" if Path(output).is_file() else ""
    bits, status, *rest = result.message.split("; ")
    say("\n  ".join([f"{bits}; {status}", *rest]), quiet)
    before = result.seconds_triplets + result.seconds_family
    share = f" ({before:.1f} s of them before the first bit)" if before > 1 else ""
    say(f"learned in {result.seconds:.1f} s{share}, wrote {output}{size}", quiet and not interrupted)
    if interrupted:
        more = "; the same command goes on from the checkpoint" if model.checkpoint is not None else ""
        say(f"interrupted: {output} holds the {model.n_bits_} bits learned so far{more}")
