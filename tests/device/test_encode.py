"""Codes of items that go through a device: those of the CPU, but where a value is zero within rounding."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits

from cghash import CGHash
from cghash.codes import pack, unpack
from cghash.device import encoder
from cghash.device.encoder import LinearEncoder, RBFEncoder
from cghash.exceptions import InvalidInputError

torch = pytest.importorskip("torch")
has_gpu = torch.cuda.is_available()
on_each = pytest.mark.parametrize(
    "device",
    ["cpu", pytest.param("cuda", marks=[pytest.mark.gpu, pytest.mark.skipif(not has_gpu, reason="needs a GPU")])],
)


def disagreement(codes, values, n_bits):
    """The largest |value| at which a bit differs, as a share of the root mean square of values (n, ℓ)."""
    bits = unpack(np.asarray(codes), n_bits)
    wrong = np.abs(values[bits != (values > 0)])
    return float(wrong.max(initial=0.0) / np.sqrt(np.mean(values**2)))


@on_each
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize(("n", "d", "n_bits"), [(1, 1, 1), (300, 50, 8), (1000, 768, 64), (257, 33, 100)])
def test_linear_codes_differ_only_within_rounding(device, dtype, n, d, n_bits):
    rng = np.random.default_rng(n + d)
    coef, intercept = rng.normal(size=(n_bits, d)) * 10.0 ** rng.uniform(-9, 9, (n_bits, 1)), rng.normal(size=n_bits)
    X = torch.from_numpy(rng.normal(size=(n, d))).to(dtype)
    codes = LinearEncoder(coef, intercept, device).codes(X.to(device))
    assert codes.shape == (n, -(-n_bits // 8))
    values = X.double().numpy() @ coef.T + intercept
    values /= np.sqrt(np.mean(values**2, axis=0))
    assert disagreement(codes.cpu(), values, n_bits) < 2e-6


@on_each
@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
def test_rbf_codes_differ_only_within_rounding(device, dtype):
    rng = np.random.default_rng(3)
    X = torch.from_numpy(rng.normal(size=(500, 12))).to(dtype)
    coef, intercept, landmarks = rng.normal(size=(20, 40)), rng.normal(size=20), rng.normal(size=(40, 12))
    mean = rng.random(40)
    codes = RBFEncoder(coef, intercept, landmarks, 0.05, mean, device).codes(X.to(device))
    apart = ((X.double().numpy()[:, None] - landmarks) ** 2).sum(axis=2)
    values = (np.exp(-0.05 * apart) - mean) @ coef.T + intercept
    assert disagreement(codes.cpu(), values, 20) < 1e-5


@on_each
@pytest.mark.parametrize("hash_function", ["linear", "rbf"])
def test_a_model_encodes_host_memory_in_blocks(device, hash_function, monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 9))
    labels = rng.integers(0, 4, 400)
    model = CGHash(12, hash_function=hash_function, C=1e-4, random_state=0).fit(X[:200], labels[:200])
    monkeypatch.setattr(encoder, "BLOCK_BYTES", 3000)
    np.testing.assert_array_equal(model.encode(X, device=device), model.encode(X))
    np.testing.assert_array_equal(model.encode(X.astype(np.float32), device=device), model.encode(X.astype(np.float32)))
    assert model.encode(X[:0], device=device).shape == (0, 2)


@on_each
def test_files_are_encoded_in_blocks(device, tmp_path):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as parquet

    rng = np.random.default_rng(1)
    X = rng.normal(size=(300, 4)).astype(np.float32)
    model = CGHash(8, C=1e-4, random_state=0).fit(X, rng.integers(0, 4, 300))
    np.save(tmp_path / "items.npy", X)
    flat = pa.table({f"x{i}": X[:, i] for i in range(4)} | {"name": ["a"] * 300})
    parquet.write_table(flat, tmp_path / "flat.parquet", row_group_size=70)
    lists = pa.table({"vector": pa.FixedSizeListArray.from_arrays(pa.array(X.ravel()), 4)})
    parquet.write_table(lists, tmp_path / "lists.parquet", row_group_size=70)
    for name in ("items.npy", "flat.parquet", "lists.parquet"):
        np.testing.assert_array_equal(model.encode(tmp_path / name, device=device), model.encode(X))


def test_what_cannot_be_encoded_there():
    X = np.random.default_rng(0).normal(size=(60, 3))
    model = CGHash(1, random_state=0).fit(X, X[:, 0] > 0)
    with pytest.raises(InvalidInputError, match=r"X must have shape \(n, 3\), as in fit, got shape \(60, 2\)"):
        model.encode(X[:, :2], device="cpu")
    with pytest.raises(InvalidInputError, match="X must hold finite numbers"):
        model.encode(np.where(X > 1, np.nan, X), device="cpu")
    stumps = CGHash(1, hash_function="stump", random_state=0).fit(X, X[:, 0] > 0)
    with pytest.raises(InvalidInputError, match="device must be None for stump functions"):
        stumps.encode(X, device="cpu")


@pytest.mark.gpu
@pytest.mark.skipif(not has_gpu, reason="needs a GPU")
class TestOnTheGPU:
    def test_tensors_stay_there(self):
        X = np.random.default_rng(0).normal(size=(60, 3))
        model = CGHash(1, random_state=0).fit(X, X[:, 0] > 0)
        codes = model.encode(torch.from_numpy(X).cuda())
        assert codes.device.type == "cuda"
        np.testing.assert_array_equal(codes.cpu().numpy(), model.encode(X))
        assert model.build_index(torch.from_numpy(X).cuda()).device == "cuda:0"

    @pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
    def test_what_is_not_finite_is_said(self, dtype):
        X = torch.ones((500, 100), dtype=dtype, device="cuda")
        X[321, 99] = float("nan")
        with pytest.raises(InvalidInputError, match="X must hold finite numbers"):
            LinearEncoder(np.ones((64, 100)), np.zeros(64), "cuda").codes(X)


def test_packing_is_that_of_codes():
    rng = np.random.default_rng(4)
    bits = rng.integers(0, 2, (20, 45)).astype(bool)
    from cghash.device.encoder import packed_words

    words = packed_words(torch.from_numpy(bits))
    np.testing.assert_array_equal(words.view(torch.uint8)[:, :6].numpy(), pack(bits))


@pytest.mark.native
def test_tensors_on_the_cpu_are_items():
    X, y = load_digits(return_X_y=True)
    items, labels = (
        torch.tensor(X[:100], dtype=torch.float32),
        torch.tensor(y[:100]),
    )
    hasher = CGHash(3, C=1e-3, n_neighbors=3, random_state=0, n_jobs=1)
    expected = hasher.fit(items.numpy(), labels.numpy()).encode(items.numpy())
    for tensor in (items, items.bfloat16(), items.requires_grad_()):
        np.testing.assert_array_equal(hasher.encode(tensor), expected)
        np.testing.assert_array_equal(clone(hasher).fit(tensor, labels).encode(items.detach().numpy()), expected)
