"""Which device is meant, memory on it, and errors that say what to change."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

from .exceptions import DeviceMemoryError, InvalidInputError, MissingDependencyError, MissingDeviceError

_KINDS = ("cpu", "cuda")


def import_torch() -> Any:
    """The torch module, or word of how to get it."""
    try:
        import torch
    except ImportError as error:
        raise MissingDependencyError(
            'device needs torch: pip install "cghash[gpu]" (in a checkout: pip install ".[gpu]")'
        ) from error
    return torch


def is_tensor(values: Any) -> bool:
    """Whether values are a torch tensor; torch is not imported to find out."""
    return type(values).__module__.partition(".")[0] == "torch" and hasattr(values, "device")


def is_on_gpu(values: Any) -> bool:
    """Whether values are a torch tensor in a GPU's memory."""
    return is_tensor(values) and values.device.type == "cuda"


def in_host_memory(values: Any) -> Any:
    """The numbers of a tensor as an array, bfloat16 as float32, which NumPy has; all else as it is."""
    if not is_tensor(values):
        return values
    tensor = values.detach().cpu()
    return (tensor.float() if str(tensor.dtype) == "torch.bfloat16" else tensor).numpy()


def device_of(device: Any) -> Any:
    """The torch device that is meant: "cuda", "cuda:1", "cpu" (torch on CPU tensors) or a torch.device.

    >>> device_of("cpu")
    device(type='cpu')
    """
    torch = import_torch()
    try:
        found = torch.device(device)
    except (RuntimeError, TypeError) as error:
        raise InvalidInputError(f'device must be "cuda", "cuda:0", … or "cpu", got {device!r}') from error
    if found.type not in _KINDS:
        raise InvalidInputError(f'device must be "cuda", "cuda:0", … or "cpu", got {device!r}')
    if found.type == "cuda":
        return _gpu(torch, found)
    return torch.device("cpu")


def _gpu(torch: Any, device: Any) -> Any:
    if not torch.cuda.is_available():
        built = "" if torch.version.cuda else ", which is built without CUDA"
        raise MissingDeviceError(
            f"device={str(device)!r} was asked for, but torch {torch.__version__}{built} finds no NVIDIA GPU here; "
            "leave device out to work on the CPU"
        )
    number = torch.cuda.current_device() if device.index is None else device.index
    if number >= torch.cuda.device_count():
        raise MissingDeviceError(
            f"device={str(device)!r} was asked for, but there are {torch.cuda.device_count()} GPUs"
        )
    return torch.device("cuda", number)


def free_bytes(device: Any) -> int | None:
    """What can still be taken of a GPU's memory; None for CPU tensors, which are not limited here."""
    if device.type != "cuda":
        return None
    torch = import_torch()
    free, _ = torch.cuda.mem_get_info(device)
    return int(free + torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device))


@contextmanager
def memory_for(what: str, n_bytes: int | None, device: Any, lower: str, ahead: bool = False) -> Iterator[None]:
    """Turn a device's lack of memory into an error that says how much was needed, if it is known, and what to lower.

    `ahead` asks for it first, which takes longer than a search.
    """
    torch = import_torch()
    try:
        free = free_bytes(device) if ahead else None
        if free is not None and n_bytes is not None and n_bytes > free:
            raise DeviceMemoryError(_lack(what, n_bytes, device, free, lower))
        with torch.cuda.device(device) if device.type == "cuda" else nullcontext():  # which kernels are started on
            yield
    except torch.OutOfMemoryError as error:
        raise DeviceMemoryError(_lack(what, n_bytes, device, free_bytes(device), lower)) from error


def _lack(what: str, n_bytes: int | None, device: Any, free: int | None, lower: str) -> str:
    left = "" if free is None else f", {_size(free)} are free"
    needed = "more" if n_bytes is None else _size(n_bytes)
    return f"{what} needs {needed} of the memory of {device}{left}: {lower}"


def _size(n_bytes: int) -> str:
    """
    >>> _size(3 * 2**29)
    '1.50 GiB'
    """
    for unit, name in ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB")):
        if n_bytes >= unit:
            return f"{n_bytes / unit:.2f} {name}"
    return f"{n_bytes} bytes"
