"""Items in random order: all of them, each once, dealt out fairly, and the same after a kill."""

from __future__ import annotations

import numpy as np
import pytest
from click.testing import CliRunner

from cghash.cli import main
from cghash.cluster import Dataset, connected, shuffle
from cghash.cluster.shuffling import deal
from cghash.exceptions import InvalidInputError

pytest.importorskip("distributed")
pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")


@pytest.fixture(scope="module")
def client():
    with connected(n_workers=2) as opened:
        yield opened


@pytest.fixture
def items():
    X = np.random.default_rng(0).normal(size=(3000, 3)).astype(np.float32)
    return X, np.repeat([f"kind {k}" for k in range(10)], 300)  # in order


def test_every_item_is_there_once_with_its_label_and_every_part_is_a_fair_sample(items, client, tmp_path):
    X, y = items
    mixed = shuffle(Dataset.from_arrays(X, y, rows=500), tmp_path / "out", client, parts=5)
    found = mixed.read()
    np.testing.assert_array_equal(np.sort(found.ids), np.arange(3000))
    np.testing.assert_array_equal(found.X, X[found.ids])
    np.testing.assert_array_equal(found.y, y[found.ids])
    assert len(mixed.partitions) == 5
    for part in mixed.partitions:
        block = part.read()
        assert 500 < part.n_rows < 700  # 600 expected, six deviations are 131
        counts = np.unique(block.y, return_counts=True)[1]
        assert len(counts) == 10
        assert counts.min() > 25  # 60 expected
        assert np.corrcoef(np.arange(part.n_rows), block.ids)[0, 1] < 0.2
    assert [path.name for path in sorted((tmp_path / "out").iterdir()) if path.name.startswith(".")] == []


def test_the_same_seed_gives_the_same_order_and_another_one_another(items, client, tmp_path):
    data = Dataset.from_arrays(*items, rows=700)
    one, same, other = (
        shuffle(data, tmp_path / str(i), client, seed=seed).read().ids for i, seed in enumerate((1, 1, 2))
    )
    np.testing.assert_array_equal(one, same)
    assert not np.array_equal(one, other)


def test_it_goes_on_where_it_was(items, client, tmp_path):
    data = Dataset.from_arrays(*items, rows=500)
    whole = shuffle(data, tmp_path / "whole", client).read().ids
    begun = shuffle(data, tmp_path / "begun", client)
    path = tmp_path / "begun" / "items-000003.parquet"
    kept = {p.name: p.stat().st_mtime_ns for p in (tmp_path / "begun").glob("items-*") if p != path}
    path.unlink()
    again = shuffle(data, tmp_path / "begun", client)
    np.testing.assert_array_equal(again.read().ids, whole)
    assert {name: (tmp_path / "begun" / name).stat().st_mtime_ns for name in kept} == kept
    assert len(begun) == len(again)
    with pytest.raises(InvalidInputError, match="another seed"):
        shuffle(data, tmp_path / "begun", client, seed=1)


def test_partitions_smaller_than_the_number_of_parts(tmp_path):
    (tmp_path / ".pieces").mkdir()
    data = Dataset.from_arrays(np.arange(6.0).reshape(3, 2))
    deal(data.partitions[0], str(tmp_path), 0, 8, seed=0)  # most parts get nothing of it
    groups = pq.ParquetFile(tmp_path / ".pieces" / "piece-000000.parquet")
    assert groups.num_row_groups == 8
    assert sum(len(groups.read_row_group(j)) for j in range(8)) == 3


@pytest.mark.parametrize(
    ("options", "message"), [({"parts": 0}, "parts"), ({"parts": 11}, "at most"), ({"seed": -1}, "seed")]
)
def test_bad_numbers(options, message, tmp_path):
    with pytest.raises(InvalidInputError, match=message):
        shuffle(Dataset.from_arrays(np.zeros((10, 2))), tmp_path / "out", **options)
    assert not (tmp_path / "out").exists()


def test_by_the_command_line(items, tmp_path):
    X, y = items
    pq.write_table(pa.table({"vector": list(X[:100]), "kind": y[:100]}), tmp_path / "items.parquet", row_group_size=40)
    command = f"cluster shuffle {tmp_path}/items.parquet --label-column kind -o {tmp_path}/out --workers 1"
    result = CliRunner().invoke(main, command.split())
    assert result.exit_code == 0, result.output
    assert "100 items in 3 parts" in result.output
    found = Dataset.from_parquet(tmp_path / "out", ids="id", labels="label").read()
    np.testing.assert_array_equal(found.X, X[found.ids])
