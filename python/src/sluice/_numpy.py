"""The functions of Framework for numpy."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from . import _bytes
from ._error import Error
from ._frameworks import no_dtype

_TYPES = {
    "BOOL": np.bool_,
    "U8": np.uint8,
    "I8": np.int8,
    "U16": np.uint16,
    "I16": np.int16,
    "U32": np.uint32,
    "I32": np.int32,
    "U64": np.uint64,
    "I64": np.int64,
    "F16": np.float16,
    "F32": np.float32,
    "F64": np.float64,
    "C64": np.complex64,
}

# numpy knows these once the package ml_dtypes is there.
_EXTENSION_TYPES = {
    "BF16": "bfloat16",
    "F8_E4M3": "float8_e4m3fn",
    "F8_E5M2": "float8_e5m2",
    "F8_E8M0": "float8_e8m0fnu",
    "F8_E4M3FNUZ": "float8_e4m3fnuz",
    "F8_E5M2FNUZ": "float8_e5m2fnuz",
}


def _dtype(name: str) -> np.dtype[Any]:
    if name in _TYPES:
        return np.dtype(_TYPES[name])
    if name not in _EXTENSION_TYPES:
        raise no_dtype("numpy", name, "leave these tensors out with exclude=, or read them with framework='pt'")
    try:
        import ml_dtypes
    except ImportError:
        raise no_dtype("numpy", name, "pip install ml_dtypes, or framework='pt'") from None
    dtype: np.dtype[Any] = np.dtype(getattr(ml_dtypes, _EXTENSION_TYPES[name]))
    return dtype


def as_device(device: Any) -> str:
    if str(device) != "cpu":
        raise Error(f"numpy has no device {str(device)!r}", hint="device='cpu', or framework='pt'")
    return "cpu"


def is_host(device: Any) -> bool:
    return True


def empty(dtype: str, shape: tuple[int, ...], device: Any = "cpu") -> np.ndarray[Any, Any]:
    return np.empty(shape, _dtype(dtype))


def address(array: np.ndarray[Any, Any]) -> int:
    return int(array.ctypes.data)


def view(memory: _bytes.SlabMemory, offset: int, dtype: str, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    count = math.prod(shape)
    if count == 0:
        return empty(dtype, shape)
    return np.frombuffer(memoryview(memory), _dtype(dtype), count, offset).reshape(shape)


def select(array: np.ndarray[Any, Any], rest: tuple[Any, ...], copy: bool) -> np.ndarray[Any, Any]:
    selected: np.ndarray[Any, Any] = array[(*rest, ...)]
    return selected.copy() if copy else selected


def move(array: np.ndarray[Any, Any], device: Any) -> np.ndarray[Any, Any]:
    return array
