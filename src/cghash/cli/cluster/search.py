"""`cghash cluster search`: the nearest codes of an index in shards."""

from __future__ import annotations

from typing import Any

import click

from .._options import quiet_option
from ..search import Question, search_options
from ._options import client_of, cluster_options


@click.command()
@click.argument("index")
@search_options
@cluster_options
@quiet_option
def search(index: str, scheduler: str | None, workers: int | None, **asked: Any) -> None:
    """Find the codes of INDEX, which 'cghash cluster index' made, nearest to each query, exactly, by (distance, id).

    Queries and answers are as with 'cghash search'; a model must be the one that made the codes.

    \b
    Examples:
      cghash cluster search index/ --queries new.npy --model model.cghash
      cghash cluster search /data/index --queries codes.npy -k 100 -o found.csv --scheduler tcp://10.0.0.1:8786
    """
    question = Question(**asked)
    from ...cluster import ShardedIndex

    with client_of(scheduler, workers) as client, ShardedIndex.open(index, client) as held:
        question.put_to(held, lambda model: held.origin.check(model, index))
