"""How good a ranking is: the criteria of the paper, and of its peers.

Every criterion is *tie-aware*: its expected value over all orders of the items of equal distance, in closed
form and not by sampling. Items tie when their distances are equal as numbers.

| module         | what it does                                                                   |
|----------------|--------------------------------------------------------------------------------|
| `retrieval`    | all criteria of codes, vectors or other distances, from one ranking            |
| `recall`       | how many true neighbours are among the nearest by code                         |
| `by_distances` | the criteria one by one, of distances at hand                                  |
| `euclidean`    | Euclidean distances that tie where vectors are equal; nearest items by them    |
| `ranking`      | rankings of a database, a block of queries at a time                           |
| `vote`         | the majority vote of the k nearest                                             |
| `labels`       | which items are relevant to a query                                            |
| `checks`       | what the criteria accept                                                       |
"""

from __future__ import annotations

from .by_distances import average_precision, knn_error, ndcg, precision_at, precision_recall, recall_at
from .euclidean import euclidean_neighbors
from .recall import recall_by_codes, recall_by_distances
from .retrieval import (
    Retrieval,
    evaluate,
    evaluate_vectors,
    mean_over_queries,
    retrieve_by_codes,
    retrieve_by_distances,
    retrieve_by_vectors,
)

__all__ = [
    "Retrieval",
    "average_precision",
    "euclidean_neighbors",
    "evaluate",
    "evaluate_vectors",
    "knn_error",
    "mean_over_queries",
    "ndcg",
    "precision_at",
    "precision_recall",
    "recall_at",
    "recall_by_codes",
    "recall_by_distances",
    "retrieve_by_codes",
    "retrieve_by_distances",
    "retrieve_by_vectors",
]
