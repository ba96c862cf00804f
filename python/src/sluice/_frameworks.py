"""Tensors of torch and numpy behind one set of functions, so that neither is imported unless it is asked for."""

from __future__ import annotations

import importlib
from typing import Any, Protocol

from . import _bytes
from ._error import Error

_MODULES = {
    "pt": "torch",
    "torch": "torch",
    "pytorch": "torch",
    "np": "numpy",
    "numpy": "numpy",
}


class Framework(Protocol):
    """What _torch and _numpy have in common.  Dtypes and shapes are those of the file."""

    def as_device(self, device: Any) -> Any:
        """Error if the framework has no such device."""

    def is_host(self, device: Any) -> bool: ...

    def empty(self, dtype: str, shape: tuple[int, ...], device: Any = "cpu") -> Any:
        """Memory that is not cleared.  Error if the framework lacks the dtype."""

    def address(self, tensor: Any) -> int: ...

    def view(self, memory: _bytes.SlabMemory, offset: int, dtype: str, shape: tuple[int, ...]) -> Any:
        """A tensor in the slab, which it keeps alive."""

    def select(self, tensor: Any, rest: tuple[Any, ...], copy: bool) -> Any:
        """tensor[rest], never a scalar; copied if that lets memory go."""

    def move(self, tensor: Any, device: Any) -> Any: ...


def find_framework(name: str) -> Framework:
    module = _MODULES.get(name)
    if module is None:
        raise Error(f"{name!r} is no framework", hint="give 'pt' or 'numpy'")
    try:
        importlib.import_module(module)
    except ImportError as error:
        raise Error(f"framework {name!r} needs {module}: {error}", hint=f"pip install {module}") from error
    found: Framework = importlib.import_module(f"._{module}", __package__)
    return found


def no_dtype(framework: str, dtype: str, hint: str) -> Error:
    return Error(f"{framework} has no dtype for {dtype}", hint=hint)
