"""The Triton kernels, interpreted on CPU tensors, against NumPy and torch; test_kernels.py runs this file."""

from types import SimpleNamespace

import numpy as np
import torch
import triton
import triton.language as tl  # noqa: F401  # jit looks for it

made = torch.zeros
torch.zeros = lambda *shape, pin_memory=False, **how: made(*shape, **how)  # no GPU, nothing to pin for

from cghash.device import kernels, scans, triton_passes  # noqa: E402
from cghash.device.learning import recorded  # noqa: E402
from cghash.device.learning.columns import Group  # noqa: E402
from cghash.device.scans import Batch, DeviceWeights, Segment, TorchPasses  # noqa: E402


@triton.jit
def counted(bits):
    """`kernels._count`, which is an instruction that no interpreter knows."""
    twos = bits - ((bits >> 1) & 0x55555555)
    fours = (twos & 0x33333333) + ((twos >> 2) & 0x33333333)
    eights = (fours + (fours >> 4)) & 0x0F0F0F0F
    sixteens = eights + (eights >> 8)
    return (sixteens + (sixteens >> 16)) & 0xFF


kernels._count, triton_passes._COLLECTORS = counted, 16


def pairs_of(rng, n, n_pairs):
    """Random pairs as rows of entries, and their ends and weights."""
    first, second = rng.integers(0, n, (2, n_pairs))
    weights = rng.standard_normal(n_pairs).astype(np.float32)
    ends, others = np.concatenate([first, second]), np.concatenate([second, first])
    order = np.argsort(ends, kind="stable")
    rows = SimpleNamespace(
        row_starts=torch.from_numpy(np.searchsorted(ends[order], np.arange(n + 1))),
        row_others=torch.from_numpy(others[order].astype(np.int32)),
        row_weights=torch.from_numpy(np.concatenate([weights, weights])[order]),
    )
    return rows, first, second, weights.astype(np.float64)


def evaluated(way, x):
    """What a recorded way finds, without a graph."""
    way._host_x[: x.size] = x.reshape(-1)
    way._there_and_back()
    return way._host_y


def laplacian(first, second, weights, t):
    total, pulled = np.zeros(len(t)), weights * (t[first] - t[second])
    np.add.at(total, first, pulled)
    np.subtract.at(total, second, pulled)
    return total


def check_relaxed(n, d, m, n_pairs):
    rng = np.random.default_rng(n * d)
    rows, first, second, weights = pairs_of(rng, n, n_pairs)
    Z = (rng.standard_normal((n, d)) / np.sqrt(d)).astype(np.float32)
    points = rng.standard_normal((m, d + 1)).astype(np.float32)
    way = recorded.RecordedRelaxed(torch.from_numpy(Z), rows, m)
    found, close = evaluated(way, points), {"rtol": 1e-4, "atol": 1e-5 * np.abs(weights).sum()}
    sums = found[m * d :].reshape(m, -1, 2).sum(axis=1)
    for j, (v, b) in enumerate((point[:-1], point[-1]) for point in points.astype(np.float64)):
        t = np.tanh(Z @ v + b)
        pulled = laplacian(first, second, weights, t)
        slope = pulled * (1.0 - t * t)
        np.testing.assert_allclose(sums[j], [slope.sum(), t @ pulled], **close)
        np.testing.assert_allclose(found[: m * d].reshape(m, d)[j], Z.T @ slope, **close)


def check_gains_and_cuts(n, m, n_pairs):
    rng = np.random.default_rng(n)
    rows, first, second, weights = pairs_of(rng, n, n_pairs)
    t = rng.standard_normal((n, m)).astype(np.float32)
    gains = recorded.pair_gains(rows, torch.from_numpy(t)).numpy()
    apart = t[first].astype(np.float64) - t[second]
    np.testing.assert_allclose(gains, weights @ apart**2, atol=1e-4 * np.abs(weights).sum())
    places, whole = rng.integers(0, 6, (m, n)), rng.integers(-5, 6, n_pairs)
    steps = torch.zeros((m, 6), dtype=torch.int64)
    recorded.cut_steps(*map(torch.from_numpy, (first, second, whole, places)), steps)
    expected = np.zeros((m, 6), dtype=np.int64)
    for line, place in zip(expected, places, strict=True):
        np.add.at(line, np.minimum(place[first], place[second]), whole)
        np.subtract.at(line, np.maximum(place[first], place[second]), whole)
    np.testing.assert_array_equal(steps.numpy(), expected)


def check_loss(n_planes):
    """Squared hinge over blocks of several shapes."""
    rng = np.random.default_rng(n_planes)
    groups, at = [], 0
    for n_blocks, near, far in ((5, 3, 4), (1, 1, 1), (70, 2, 5), (3, 10, 10), (2, 30, 40)):
        groups.append(Group(at, near, far, torch.from_numpy(rng.random(n_blocks))))
        at += groups[-1].n_slots
    planes, w = rng.integers(0, 256, (3, at), dtype=np.uint8), rng.random(8 * n_planes) * 0.1
    way = recorded.RecordedLoss(torch.from_numpy(planes), groups, 0, 1.0, n_planes)
    found = evaluated(way, w)
    bits = np.unpackbits(planes[:n_planes].T.copy(), axis=1, bitorder="little").reshape(at, -1)[:, : 8 * n_planes]
    D, q, counts = bits @ w, np.zeros(at), np.zeros(3)
    for group in groups:
        for k, p in enumerate(group.weights.numpy()):
            slot = group.first + k * (group.n_near + group.n_far)
            near, far = np.split(np.arange(slot, slot + group.n_near + group.n_far), [group.n_near])
            margin = D[far][None, :] - D[near][:, None]
            short = np.maximum(1.0 - margin, 0.0)
            counts += p * np.sum(short**2), p * np.sum(margin > 0), np.sum(margin < 1)
            q[near], q[far] = 2.0 * p * short.sum(axis=1), -2.0 * p * short.sum(axis=0)
    np.testing.assert_allclose(found[:3], counts)
    np.testing.assert_allclose(way.q.numpy(), q, atol=1e-12)
    np.testing.assert_allclose(found[3:], bits.T @ q, atol=1e-10)
    sums = recorded.bit_sums(way.planes, n_planes, way.q).numpy()
    np.testing.assert_allclose(sums, bits.T @ q, atol=1e-10)
    np.testing.assert_allclose(recorded.distances(way.planes, n_planes, way.x).numpy(), D, atol=1e-12)


def some_codes(rng, n_words, n_queries):
    """Codes (W, 2048), queries (q, W) and weights."""
    words = torch.from_numpy(rng.integers(-(2**31), 2**31, (n_words, 2048)).astype(np.int32))
    queries = torch.from_numpy(rng.integers(-(2**31), 2**31, (n_queries, n_words)).astype(np.int32))
    weights = DeviceWeights(rng.integers(0, 10**6, 32 * n_words), queries.device)
    return words, queries, weights


def check_search(n, n_words, n_queries, is_filtered):
    """What is within limits, in any order; and None where there is no room for it."""
    rng = np.random.default_rng(n + n_queries)
    words, queries, weights = some_codes(rng, n_words, n_queries)
    limits = torch.from_numpy(rng.integers(0, weights.weights.sum() // 2, n_queries))
    limits[0] = int(weights.weights.sum()) // 2  # half of the codes
    allowed = torch.from_numpy(rng.integers(0, 256, 512, dtype=np.uint8)) if is_filtered else None
    how = Segment(words, 1000, n), 1024, n, Batch(queries, weights), limits, allowed
    mine, theirs = (np.stack(passes.near(*how, 2**20)) for passes in (triton_passes.TritonPasses(), TorchPasses()))
    assert mine.shape[1] > 10
    np.testing.assert_array_equal(mine[:, np.lexsort(mine)], theirs[:, np.lexsort(theirs)])
    assert triton_passes.TritonPasses().near(*how, mine.shape[1] // n_queries // 2) is None
    limits[:] = -1  # nothing
    assert all(len(values) == 0 for values in triton_passes.TritonPasses().near(*how, 2**20))
    limits[:] = scans.FAR  # all that is allowed
    all_of_it = triton_passes.TritonPasses().near(*how, 2**20)
    assert len(all_of_it[0]) == len(TorchPasses().near(*how, 2**20)[0]) > 0
    if n_queries > 3:
        kept, triton_passes._MOST_HITS = triton_passes._MOST_HITS, 8
        assert triton_passes.TritonPasses().near(*how, 2**20) is None
        triton_passes._MOST_HITS = kept


for case in ((1, 1, 1, 1), (7, 1, 3, 14), (133, 17, 2, 400), (40, 1025, 2, 80), (9, 2500, 3, 9), (30, 64, 1, 2400)):
    check_relaxed(*case)
for case in ((1, 1, 1), (133, 4, 400), (30, 16, 2400)):
    check_gains_and_cuts(*case)  # type: ignore[call-arg]
for planes in range(4):
    check_loss(planes)


def check_minima(n_words, n_queries, group, is_filtered):
    """The least distance in each group, and the k-th least of these as a limit of one query."""
    rng = np.random.default_rng(group)
    words, queries, weights = some_codes(rng, n_words, n_queries)
    allowed = torch.from_numpy(rng.random(2048) < 0.01) if is_filtered else None
    mine, theirs = (
        passes.minima(words, queries, weights, allowed, group)
        for passes in (triton_passes.TritonPasses(), TorchPasses())
    )
    np.testing.assert_array_equal(mine, theirs)
    n, scale = mine.shape[1], weights.for_one.scale
    for k in (1, n):
        limit, most = torch.zeros(1, dtype=torch.int64), torch.zeros(1, dtype=torch.int64)
        kernels.limit_of[(1,)](mine[0], n, k, scale, limit, most, SIZE=1 << max(n - 1, 1).bit_length())
        expected = int(np.sort(mine[0])[k - 1])
        assert (int(limit), int(most)) == (expected, expected // scale if expected < scans.FAR else -1)


for case in ((2, 3, 1024, False), (3, 1, 32, True), (1, 2, 32, False)):
    check_minima(*case)
for case in ((1500, 2, 1, False), (1500, 3, 2, True), (1080, 2, 5, False), (1090, 1, 150, True), (1060, 5, 70, False)):
    check_search(*case)
print("all kernels agree")
