"""The functions of Framework for torch, and loads into tensors wherever they are."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any

import torch

from . import _bytes
from ._error import Error
from ._frameworks import no_dtype
from ._options import Progress

_NAMES = {
    "BOOL": "bool",
    "U8": "uint8",
    "I8": "int8",
    "U16": "uint16",
    "I16": "int16",
    "U32": "uint32",
    "I32": "int32",
    "U64": "uint64",
    "I64": "int64",
    "F16": "float16",
    "BF16": "bfloat16",
    "F32": "float32",
    "F64": "float64",
    "C64": "complex64",
    "F8_E4M3": "float8_e4m3fn",
    "F8_E5M2": "float8_e5m2",
    "F8_E8M0": "float8_e8m0fnu",
    "F8_E4M3FNUZ": "float8_e4m3fnuz",
    "F8_E5M2FNUZ": "float8_e5m2fnuz",
    "F4": "float4_e2m1fn_x2",
}
_TYPES: dict[str, torch.dtype] = {name: getattr(torch, own) for name, own in _NAMES.items() if hasattr(torch, own)}
_FILE_NAMES = {dtype: name for name, dtype in _TYPES.items()}

# torch counts pairs of 4-bit numbers along the last dimension, files count numbers.
_PAIRED = "F4"


def _dtype(name: str) -> torch.dtype:
    if name not in _TYPES:
        raise no_dtype(f"torch {torch.__version__}", name, "leave these tensors out with exclude=")
    return _TYPES[name]


def _own_shape(dtype: str, shape: tuple[int, ...]) -> tuple[int, ...]:
    return (*shape[:-1], shape[-1] // 2) if dtype == _PAIRED else shape


def file_dtype(tensor: torch.Tensor) -> str | None:
    """What a file calls the tensor's dtype; None if it has no name for it."""
    return _FILE_NAMES.get(tensor.dtype)


def file_shape(tensor: torch.Tensor) -> tuple[int, ...]:
    shape = tuple(tensor.shape)
    return (*shape[:-1], shape[-1] * 2) if file_dtype(tensor) == _PAIRED and shape else shape


def as_device(device: Any) -> torch.device:
    try:
        return torch.device(device)
    except (RuntimeError, TypeError, ValueError) as error:
        raise Error(f"{device!r} is no device: {error}", hint="such as 'cpu' or 'cuda:0'") from error


def is_host(device: torch.device) -> bool:
    return device.type == "cpu"


def empty(dtype: str, shape: tuple[int, ...], device: Any = "cpu") -> torch.Tensor:
    return torch.empty(_own_shape(dtype, shape), dtype=_dtype(dtype), device=device)


def address(tensor: torch.Tensor) -> int:
    return tensor.data_ptr()


def view(memory: _bytes.SlabMemory, offset: int, dtype: str, shape: tuple[int, ...]) -> torch.Tensor:
    own_shape = _own_shape(dtype, shape)
    count = math.prod(own_shape)
    if count == 0:
        return empty(dtype, shape)
    # A storage of its own for each tensor: one of all would make every tensor look shared with every other.
    return torch.frombuffer(memory, dtype=_dtype(dtype), count=count, offset=offset).view(own_shape)


def select(tensor: torch.Tensor, rest: tuple[Any, ...], copy: bool) -> torch.Tensor:
    selected = tensor[(*rest, ...)]
    return selected.clone(memory_format=torch.contiguous_format) if copy else selected


def move(tensor: torch.Tensor, device: torch.device) -> torch.Tensor:
    return tensor.to(device)


def is_plain(tensor: torch.Tensor) -> bool:
    """Its memory is its values: no subclass that computes them, no view that negates them."""
    plain_type = type(tensor) in (torch.Tensor, torch.nn.Parameter)
    return plain_type and tensor.layout == torch.strided and not tensor.is_conj() and not tensor.is_neg()


def can_be_read_in_place(tensor: torch.Tensor) -> bool:
    return is_plain(tensor) and tensor.device.type == "cpu" and tensor.is_contiguous()


def _staging(size: int, tensors: Sequence[torch.Tensor]) -> torch.Tensor:
    if any(tensor.is_cuda for tensor in tensors):
        try:
            return torch.empty(size, dtype=torch.uint8, pin_memory=True)
        except RuntimeError as error:
            warnings.warn(f"no pinned memory, copying from plain memory instead: {error}", RuntimeWarning, stacklevel=2)
    return torch.empty(size, dtype=torch.uint8)


def load_tensors(
    plan: _bytes.Plan, tensors: Sequence[torch.Tensor | None], options: _bytes.ReadOptions, progress: Progress
) -> dict[str, Any]:
    """Loads the targets of a plan, whose dtypes and shapes those of `tensors` are; None: a target that the plan does
    not read.  What cannot be read in place passes, one at a time, through one host buffer of the largest's size.
    Gradients are not recorded; version counters count up."""
    targets = plan.targets()
    staged = {i: tensor for i, tensor in enumerate(tensors) if tensor is not None and not can_be_read_in_place(tensor)}
    staging = _staging(max((targets[i][3] for i in staged), default=0), list(staged.values()))

    def copy(i: int) -> None:
        _, dtype, shape, size = targets[i]
        arrived = staging[:size].view(_dtype(dtype)).view(_own_shape(dtype, shape))
        with torch.inference_mode(staged[i].is_inference()), torch.no_grad():
            staged[i].copy_(arrived)

    places: list[tuple[int, int] | None] = []
    for i, tensor in enumerate(tensors):
        if tensor is None:
            places.append((0, 0))
        else:
            places.append(None if i in staged else (tensor.data_ptr(), targets[i][3]))
    try:
        buffer = (staging.data_ptr(), staging.numel())
        return _bytes.load_into_memory(plan, places, buffer, copy, options, progress)
    finally:
        _count_up([tensor for i, tensor in enumerate(tensors) if tensor is not None and i not in staged])


def _count_up(tensors: Sequence[torch.Tensor]) -> None:
    """So that autograd notices tensors that it had saved; copy_() does so by itself."""
    for tensor in tensors:
        if not tensor.is_inference():
            torch.autograd.graph.increment_version(tensor)
