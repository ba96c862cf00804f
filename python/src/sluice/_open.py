"""One tensor at a time, or a part of one."""

from __future__ import annotations

import difflib
from types import TracebackType
from typing import Any

from . import _bytes
from ._error import Error
from ._frameworks import find_framework
from ._load import load_dictionary
from ._options import Path, make_plan, open_checkpoint, read_options, tell_warnings
from ._slicing import Selection, select

# Up to this, a read for each run costs less than asking how best to read them all.
_FEW_RUNS = 64

_Tensor = tuple[str, str, tuple[int, ...], int, int, int]


class TensorSlice:
    """A tensor that is read where it is indexed: with slices, integers and '...'."""

    def __init__(self, owner: safe_open, tensor: _Tensor) -> None:
        self._owner = owner
        self._tensor = tensor

    def get_shape(self) -> list[int]:
        return list(self._tensor[2])

    def get_dtype(self) -> str:
        """As in the file: "BF16"."""
        return self._tensor[1]

    def __getitem__(self, index: Any) -> Any:
        """Reads the smallest box that holds what is asked for; steps within it are taken in memory."""
        return self._owner._read_box(self._tensor, select(index, self._tensor[2]))


class safe_open:
    """A checkpoint of one or many files, opened lazily, as safetensors.safe_open.

        with sluice.safe_open("model.safetensors", framework="pt", device="cpu") as f:
            for name in f.keys():
                tensor = f.get_tensor(name)

    filename: a file, an index.json or a folder.  framework: "pt" or "numpy".  device: of torch's tensors.
    backend, cache, threads: as for load_file().  With backend and cache "auto", whole tensors and slices of few runs
    are read through the page cache, without asking how each of them is best read.
    """

    def __init__(
        self,
        filename: Path,
        framework: str = "pt",
        device: Any = "cpu",
        *,
        backend: str = "auto",
        cache: str = "auto",
        threads: int = 0,
    ) -> None:
        self._framework = find_framework(framework)
        self._device = self._framework.as_device(device)
        self._options = read_options(backend, cache, threads)
        self._plain = backend == "auto" and cache == "auto"
        self._opened: _bytes.Checkpoint | None = open_checkpoint(filename)
        tell_warnings(self._opened.warnings())

    def __enter__(self) -> safe_open:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._opened = None

    @property
    def _checkpoint(self) -> _bytes.Checkpoint:
        if self._opened is None:
            raise Error("the checkpoint is closed", hint="read inside of the with block")
        return self._opened

    def keys(self) -> list[str]:
        """The names of all tensors, sorted."""
        return [tensor[0] for tensor in self._checkpoint.tensors()]

    def offset_keys(self) -> list[str]:
        """The names in the order of the files and of the bytes in them: the fastest order to read in."""
        return [tensor[0] for tensor in sorted(self._checkpoint.tensors(), key=lambda t: (t[3], t[4], t[5]))]

    def metadata(self) -> dict[str, str] | None:
        """What writers left beside the tensors, of all files; None if there is nothing."""
        return self._checkpoint.metadata() or None

    def get_tensor(self, name: str) -> Any:
        """The whole tensor, in memory of its own."""
        tensor = self._find(name)
        if not self._plain:
            return self._read_box(tensor, select(..., tensor[2]))
        _, dtype, shape, _, _, size = tensor
        read = self._framework.empty(dtype, shape)
        self._checkpoint.read(name, self._framework.address(read), size)
        return self._framework.move(read, self._device)

    def get_tensors(self) -> dict[str, Any]:
        """All tensors, as load_file()."""
        plan = make_plan(self._checkpoint)
        tensors, report = load_dictionary(self._framework, plan, self._device, None, self._options, None)
        tell_warnings(report["warnings"])
        return tensors

    def get_slice(self, name: str) -> TensorSlice:
        """The tensor, of which only what is indexed is read: get_slice("weight")[:, :16]."""
        return TensorSlice(self, self._find(name))

    def _find(self, name: str) -> _Tensor:
        tensor = self._checkpoint.find(name)
        if tensor is None:
            close = difflib.get_close_matches(name, self.keys(), n=1)
            hint = f"{close[0]!r} is there" if close else "keys() lists the names"
            raise Error(f"{self._checkpoint.path}: there is no tensor {name!r}", hint=hint)
        return tensor

    def _read_box(self, tensor: _Tensor, selection: Selection) -> Any:
        name, dtype, *_ = tensor
        if dtype == "F4" and selection.strided:
            raise Error(f"{name!r} is F4, two numbers a byte: no steps", hint="read it whole")
        plan = self._checkpoint.plan_box(name, selection.box)
        read = self._framework.empty(dtype, selection.shape)
        place = (self._framework.address(read), plan.target_bytes)
        if self._plain and plan.runs <= _FEW_RUNS:
            plan.read_box(*place)
        else:
            _bytes.load_into_memory(plan, [place], (0, 0), None, self._options, None)
        selected = self._framework.select(read, selection.rest, selection.strided)
        return self._framework.move(selected, self._device)
