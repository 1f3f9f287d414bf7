"""`cghash evaluate`: how well the codes of a model rank."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from ._inputs import Labelled, check_standard_input, load_model, truncated
from ._options import (
    id_column_option,
    json_option,
    label_column_option,
    labels_option,
    triplets_option,
    whole_numbers,
)
from ._output import say, show_json, show_table

if TYPE_CHECKING:
    from ..estimator import CodeEstimator
    from ..reading import Items

_Halves = tuple[Any, Any, Any, Any]  # bits of the queries, of the database; labels of these


@dataclass(frozen=True)
class _Ranked:
    """Queries and the database that they are asked of, as bits of the whole model, with labels."""

    queries: Any
    database: Any
    query_labels: Any
    database_labels: Any
    top: int
    k: int

    def criteria(self, model: CodeEstimator) -> dict[str, float]:
        from ..criteria import evaluate
        from ..exceptions import InvalidInputError

        m = model.n_bits_
        labels = self.query_labels, self.database_labels
        found = evaluate(self.queries[:, :m], self.database[:, :m], model.weights_, *labels, top=self.top, k=self.k)
        if math.isnan(found["map"]):
            raise InvalidInputError(
                "no query has a relevant item in the database: no label of the queries is among the database's"
                + self._examples()
            )
        return found

    def _examples(self) -> str:
        ours, theirs = self.query_labels, self.database_labels
        return f" (such as {ours[0].item()!r} and {theirs[0].item()!r})" if ours.ndim == theirs.ndim == 1 else ""


@click.command()
@click.argument("model")
@click.argument("items")
@labels_option
@label_column_option
@click.option("--database", metavar="ITEMS", help="Items to rank for each query; ITEMS are then all queries.")
@click.option("--database-labels", metavar="FILE", help="Labels of the database; else its --label-column.")
@click.option(
    "--split",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.3,
    show_default=True,
    help="Without --database: share of each class that becomes queries; the rest is the database.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Of the random split.")
@triplets_option
@id_column_option
@click.option("-b", "--n-bits", metavar="M,M,…", callback=whole_numbers, help="Compare truncations, such as 16,32,64.")
@click.option("--top", type=click.IntRange(1), default=50, show_default=True, help="Items that count for top.")
@click.option("--neighbors", type=click.IntRange(1), default=3, show_default=True, help="Items that vote for k-NN.")
@json_option
def evaluate(
    model: str,
    items: str,
    labels: str | None,
    label_column: str | None,
    database: str | None,
    database_labels: str | None,
    split: float,
    seed: int,
    triplets: str | None,
    id_column: str | None,
    n_bits: list[int] | None,
    top: int,
    neighbors: int,
    as_json: bool,
) -> None:
    """Measure how well the codes of MODEL rank ITEMS.

    With labels: mean average precision, share of relevant items among the top 50, and error of a vote of the 3 nearest.
    The items are the queries, and --database is ranked for each of them. Without --database the items are split at
    random, class by class, into queries and database, so that no query finds itself. Use items that the model was not
    fitted on. Ties in a ranking count with their expected value. With triplets: the share of them that the learned
    distance satisfies; a tie is not satisfied.

    \b
    Examples:
      cghash evaluate model.cghash test.npy --labels test-labels.npy
      cghash evaluate model.cghash test.csv --label-column class --database train.csv
      cghash evaluate model.cghash test.npz --n-bits 16,32,64
      cghash evaluate model.cghash items.csv --id-column name --triplets held-out.jsonl --json
    """
    if database is None and database_labels is not None:
        raise click.UsageError("--database-labels needs --database")
    check_standard_input(
        items=items, labels=labels, database=database, database_labels=database_labels, triplets=triplets
    )
    hasher = load_model(model)
    shorter = [truncated(hasher, m) for m in n_bits] if n_bits else [hasher]
    read = Labelled(items, labels, label_column, id_column).read_for(hasher, model, as_written=True)
    if read.labels is None and triplets is None:
        raise click.UsageError("there is nothing to measure with: give --labels, --label-column or --triplets")
    other = None
    if database is not None:
        column = None if database_labels else label_column
        other = Labelled(database, database_labels, column, id_column).read_for(hasher, model, as_written=True)
    ranked = None
    if read.labels is not None:
        halves = _split(hasher, read, split, seed) if other is None else _asked_of(hasher, read, other)
        n_database = len(halves[1])
        ranked = _Ranked(*halves, min(top, n_database), min(neighbors, n_database))
    comparisons = _comparisons(triplets, read)
    _show(model, ranked, [_measured(short, ranked, read, comparisons) for short in shorter], as_json)


def _asked_of(model: CodeEstimator, queries: Items, database: Items) -> _Halves:
    from ..reading import alike_labels

    if database.labels is None:
        raise click.UsageError("the database needs labels: give --database-labels or --label-column")
    assert queries.labels is not None
    labels = alike_labels(queries.labels, database.labels)  # before the work
    return model.transform(queries.X), model.transform(database.X), *labels


def _split(model: CodeEstimator, items: Items, share: float, seed: int) -> _Halves:
    """Queries and database from one set of items, each class (if an item has one) by the same share."""
    import numpy as np

    from ..exceptions import InvalidInputError
    from ..reading import plain_labels

    assert items.labels is not None
    labels = plain_labels(items.labels)
    classes = np.unique(labels, return_inverse=True)[1] if labels.ndim == 1 else np.zeros(len(labels), dtype=np.int64)
    is_query = np.zeros(len(labels), dtype=bool)
    rng = np.random.default_rng(seed)
    for number in range(classes.max() + 1):
        members = rng.permutation(np.flatnonzero(classes == number))
        is_query[members[: round(share * len(members))]] = True
    if is_query.all() or not is_query.any():
        raise InvalidInputError(f"--split must leave queries and a database, got {share} of {len(labels)} items")
    bits = model.transform(items.X)
    return bits[is_query], bits[~is_query], labels[is_query], labels[~is_query]


def _comparisons(triplets: str | None, items: Items) -> dict[str, Any]:
    from ..reading import read_triplets

    if triplets is None:
        return {}
    rows, weights = read_triplets(triplets, len(items.X), items.ids)
    return {"triplets": rows, "triplet_weights": weights}


def _measured(
    model: CodeEstimator, ranked: _Ranked | None, items: Items, comparisons: dict[str, Any]
) -> dict[str, Any]:
    measured: dict[str, Any] = {"n_bits": model.n_bits_}
    if ranked is not None:
        measured |= ranked.criteria(model)
    if comparisons:
        measured["satisfied"] = model.score(items.X, **comparisons)
    return measured


def _show(path: str, ranked: _Ranked | None, results: list[dict[str, Any]], as_json: bool) -> None:
    sizes = {"n_queries": len(ranked.queries), "n_database": len(ranked.database)} if ranked else {}
    if as_json:
        settings = {"top": ranked.top, "neighbors": ranked.k} if ranked else {}
        show_json({"model": path, **sizes, **settings, "results": results})
        return
    if ranked:
        say(f"{sizes['n_queries']} queries, each ranks {sizes['n_database']} items")
    words = {"n_bits": "bits", "map": "mAP", "satisfied": "triplets satisfied"}
    if ranked:
        words |= {"top": f"top-{ranked.top}", "knn_error": f"{ranked.k}-NN error"}
    rows = [[str(r) if isinstance(r, int) else f"{r:.4f}" for r in result.values()] for result in results]
    show_table([words[name] for name in results[0]], rows)
