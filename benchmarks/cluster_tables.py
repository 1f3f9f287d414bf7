"""Tables of a cluster: what was measured, and what a cost model makes of it for clusters that were not.

The model is arithmetic on bytes and calls. One evaluation of the pricing problem reads the features twice, and calls
every worker; a bit takes some evaluations, of the master problem too, which reads the columns' bits and some doubles a
pair. `evaluation_bytes` of speed/cluster.py, which the measurement checks, says what travels.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from markdown_tables import shown, table

Row = dict[str, Any]


@dataclass(frozen=True)
class Machines:
    """Speeds that the predictions assume of every machine, which is one worker of many threads."""

    memory: float = 256e9  # bytes
    memory_read: float = 150e9  # bytes a second
    disk_read: float = 5e9
    network: float = 3e9
    flops: float = 1e12  # of a matrix product in floats
    call: float = 3e-3  # seconds of a call to the first worker, and to each further one: as measured
    further: float = 1.5e-3


@dataclass(frozen=True)
class Fit:
    """Items, and what one bit takes; evaluations as measured with the paper's search."""

    items: float
    features: int = 768
    bits: int = 64
    neighbors: int = 10
    partition: float = 65536  # items
    pricing_evaluations: int = 35  # a bit
    master_evaluations: int = 12


def predicted(fit: Fit, workers: int, machines: Machines) -> dict[str, float]:
    """Seconds of the phases of a fit, items in memory; of one reading of them; and of encoding."""
    data = 4.0 * fit.items * fit.features  # bytes
    slots = 4.0 * fit.neighbors * fit.items  # near and far, of two samplings
    calls = machines.call + machines.further * (workers - 1)
    travel = workers * 8.0 * (fit.features + 2) * 2.0 / machines.network
    evaluation = 2.0 * data / (workers * machines.memory_read) + calls + travel
    master = slots * (fit.bits / 16 + 24) / (workers * machines.memory_read) + calls
    reading = data / (workers * machines.disk_read)
    return {
        "memory": 2.2 * data,  # items, features, triplets
        "graph": 2.0 * fit.items * fit.partition * fit.features / (workers * machines.flops),
        "pricing": fit.bits * fit.pricing_evaluations * evaluation,
        "calls": fit.bits * fit.pricing_evaluations * (calls + travel),
        "master": fit.bits * fit.master_evaluations * master,
        "from_disk": fit.bits * fit.pricing_evaluations * reading,
        "encode": reading + 2.0 * fit.items * fit.features * fit.bits / (workers * machines.flops),
    }


PLANS = (  # what is fitted on, and by how many machines
    ("all of 1 billion", Fit(1e9), 32),
    ("1 of 100 partitions of 1 billion", Fit(1e7), 1),
    ("all of 100 billion", Fit(1e11), 3200),
    ("1 of 10 000 partitions of 100 billion", Fit(1e7), 1),
)
INDEX_BYTES = 37.6  # a code of 64 bits, with tables and id, as results/stores.json has it
SIZES = (("1 billion", 1e9, 4), ("100 billion", 1e11, 40))


def scaling(rows: list[Row]) -> str:
    """Predicted hours of fits."""
    machines = Machines()
    header = "fitted on,machines,memory (TB),triplets (h),pricing (h),of it calls (h),master (h),pricing from disk (h)"
    lines = []
    for name, fit, workers in PLANS:
        took = predicted(fit, workers, machines)
        hours = [shown(took[part] / 3600, 2) for part in ("graph", "pricing", "calls", "master", "from_disk")]
        lines.append([name, str(workers), shown(took["memory"] / 1e12, 2), *hours])
    return table(header.split(","), lines)


def encoding(rows: list[Row]) -> str:
    """Predicted hours of encoding, and what the codes take."""
    header = "items,machines,items (TB),encode (h),index of 64-bit codes (GB),a machine (GB)"
    lines = []
    for name, n, workers in SIZES:
        took = predicted(Fit(n), workers, Machines())
        codes = INDEX_BYTES * n
        amounts = 4.0 * n * 768 / 1e12, took["encode"] / 3600, codes / 1e9, codes / workers / 1e9
        lines.append([name, str(workers), *(shown(amount, 2) for amount in amounts)])
    return table(header.split(","), lines)


def cluster(rows: list[Row]) -> str:
    """Efficiency of workers against the single process."""
    header = "work,items,features,partitions,workers,seconds,efficiency,of processor time,bytes moved,by the model"
    lines = []
    for r in rows:
        moved = r.get("bytes_an_evaluation", r.get("bytes_a_partition"))
        names = [shown(r.get(name)) for name in ("seconds", "efficiency", "cpu_efficiency")]
        sizes = [str(r[name]) for name in ("items", "features", "partitions")]
        who = str(r["workers"]) if r["workers"] else "none"
        lines.append([r["work"], *sizes, who, *names, shown(moved), shown(r.get("bytes_by_the_model"))])
    return table(header.split(","), lines)
