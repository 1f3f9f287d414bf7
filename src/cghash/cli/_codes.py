"""Codes: of items through a model, or read as they are; and their ids."""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from ._inputs import Labelled, check_standard_input, load_model
from ._options import options

if TYPE_CHECKING:
    from ..estimator import CodeEstimator
    from ..reading import Items

_CODES, _ITEMS = 1 << 20, 1 << 14  # at a time


source_options = options(
    click.argument("codes", required=False),
    click.option("--items", metavar="FILE", help="Items, which the model turns into codes; in place of CODES."),
    click.option("--model", metavar="FILE", help="Model of the codes."),
    click.option("--ids", metavar="FILE", help="Whole numbers, one a code: .npy, .csv, .txt or .parquet."),
    click.option("--id-column", metavar="NAME", help="Column of the codes or items that holds their ids."),
)


def model_of_bits(path: str, n_bits: int | None) -> CodeEstimator:
    """A model, or its first bits."""
    model = load_model(path)
    if n_bits is None or n_bits == model.n_bits_:
        return model
    if not 1 <= n_bits < model.n_bits_:
        raise click.UsageError(f"--model must have {n_bits} bits or more, got {model.n_bits_}")
    return model.truncate(n_bits)


@dataclass(frozen=True)
class Coded:
    """Codes (n, n_bytes), some at a time, and their ids."""

    n_bits: int
    weights: Any  # None without a model
    n: int
    ids: Any
    blocks: Iterator[Any]
    model: CodeEstimator | None = None

    def pieces(self) -> Iterator[tuple[Any, Any]]:
        first = 0
        for block in self.blocks:
            yield block, None if self.ids is None else self.ids[first : first + len(block)]
            first += len(block)


@dataclass(frozen=True)
class Source:
    """What the command line says of codes."""

    codes: str | None
    items: str | None
    model: str | None
    ids: str | None
    id_column: str | None

    def __post_init__(self) -> None:
        if (self.codes is None) == (self.items is None):
            raise click.UsageError("give CODES, or --items with --model")
        if self.items is not None and self.model is None:
            raise click.UsageError("--items needs --model, which turns them into codes")
        if self.ids is not None and self.id_column is not None:
            raise click.UsageError("--ids and --id-column cannot go together")
        check_standard_input(codes=self.codes, items=self.items, ids=self.ids)

    def read(self, n_bits: int | None, quiet: bool) -> Coded:
        """The codes; n_bits are those of the index, or of the codes where there is neither index nor model."""
        model = None if self.model is None else model_of_bits(self.model, n_bits)
        if self.items is not None:
            assert model is not None
            assert self.model is not None
            read = Labelled(self.items, id_column=self.id_column).read_for(model, self.model, quiet)
            return self._coded(model.n_bits_, model, read, code_blocks(model, read.X, quiet=quiet))
        assert self.codes is not None
        read = Labelled(self.codes, id_column=self.id_column).read()
        if model is None and n_bits is None:
            _warn_of_bits(read)
        n_bits = model.n_bits_ if model is not None else n_bits or 8 * read.X.shape[1]
        packed = packed_codes(read, n_bits)
        blocks = (packed[first : first + _CODES] for first in range(0, len(packed), _CODES))
        return self._coded(n_bits, model, read, blocks)

    def _coded(self, n_bits: int, model: CodeEstimator | None, read: Items, blocks: Iterator[Any]) -> Coded:
        weights = None if model is None else model.weights_
        return Coded(n_bits, weights, len(read.X), self.ids_of(read), blocks, model)

    def ids_of(self, read: Items) -> Any:
        """Whole numbers, one a row, or None where there are none."""
        from ..exceptions import InvalidInputError
        from ..reading import plain_labels, read_labels

        if self.ids is not None:
            found = read_labels(self.ids, len(read.X))
        elif read.ids is not None:
            found = plain_labels(read.ids)
        else:
            return None
        if found.ndim != 1 or found.dtype.kind not in "iu":
            first = found.flat[0] if found.size else found
            raise InvalidInputError(
                f"ids must be whole numbers, one a code, got {first!s}; without ids, answers give row numbers from 0"
            )
        return found


def packed_codes(read: Items, n_bits: int) -> Any:
    """The packed codes of a file: uint8, or a table of numbers such as `cghash encode` writes."""
    import numpy as np

    from ..exceptions import InvalidInputError

    X, n_bytes = read.X, -(-n_bits // 8)
    if looks_packed(read, n_bits):
        return np.asarray(X, dtype=np.uint8)
    raise InvalidInputError(
        f"{read.name} must hold packed codes, uint8 of shape (n, {n_bytes}) for {n_bits} bits, "
        f"got shape {X.shape}, dtype {X.dtype}; {_what_to_do(read, n_bits)}"
    )


def _what_to_do(read: Items, n_bits: int) -> str:
    if read.X.shape[1] == n_bits and read.X.max() <= 1:
        return "bits? 'cghash encode' without --bits writes packed codes"
    if read.X.dtype.kind in "bu":
        return "the codes of another model?"
    return f"a model turns items into codes: --items {read.name} --model MODEL"


def _warn_of_bits(read: Items) -> None:
    """Warn of bytes that are all 0 and 1, which bits that were not packed are."""
    import warnings

    from ..exceptions import CGHashWarning

    if read.X.shape[1] > 1 and read.X.max() <= 1:
        said = "holds only 0 and 1, taken as bytes of packed codes; of bits, cghash.codes.pack makes packed codes"
        warnings.warn(f"{read.name} {said}", CGHashWarning, stacklevel=2)


def looks_packed(read: Items, n_bits: int) -> bool:
    """Whether a file can hold packed codes; numbers other than uint8 only in a table with names."""
    import numpy as np

    X = read.X
    if X.shape[1] != -(-n_bits // 8):
        return False
    return X.dtype == np.uint8 or (read.names is not None and bool(np.all((X >= 0) & (X < 256) & (np.floor(X) == X))))


def code_blocks(
    model: CodeEstimator, X: Any, bits: bool = False, quiet: bool = False, device: str | None = None
) -> Iterator[Any]:
    """Codes or bits of items, some rows at a time."""
    from .._progress import Progress
    from ..codes import unpack

    step = _ITEMS if device is None else 16 * _ITEMS
    starts = range(0, len(X), step)
    with Progress(not quiet and len(starts) >= 4, lines=False) as progress:
        progress("encoding", 0, len(starts))
        for done, first in enumerate(starts, 1):
            block = X[first : first + step]
            if device is None:
                yield model.transform(block) if bits else model.encode(block)
            else:
                codes = model.encode(block, device=device)
                yield unpack(codes, model.n_bits_) if bits else codes
            _release(X)
            progress("encoding", done, len(starts))


def _release(X: Any) -> None:
    """Give back the memory of a mapped file's part that was read; the kernel would, but only when others need it."""
    mapped = getattr(X, "_mmap", None)
    if mapped is not None and hasattr(mmap, "MADV_DONTNEED"):
        mapped.madvise(mmap.MADV_DONTNEED)
