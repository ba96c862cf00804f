"""The extension module: the byte layer for the files of this package.  Private, but for Slab and version."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

version: str

_Memory = tuple[int, int]  # address, size

class Checkpoint:
    @staticmethod
    def open(path: str, include: Sequence[str], exclude: Sequence[str]) -> Checkpoint:
        """Of a set with an index only the files that hold something wanted."""

    @property
    def path(self) -> str: ...
    def tensors(self) -> list[tuple[str, str, tuple[int, ...], int, int, int]]:
        """(name, dtype, shape, index into files(), offset, size), sorted by name."""

    def find(self, name: str) -> tuple[str, str, tuple[int, ...], int, int, int] | None: ...
    def files(self) -> list[Path]: ...
    def metadata(self) -> dict[str, str]: ...
    def warnings(self) -> list[str]: ...
    def read(self, name: str, address: int, size: int) -> None: ...
    def plan(
        self,
        include: Sequence[str],
        exclude: Sequence[str],
        renames: Sequence[tuple[str, str]],
        casts: Sequence[tuple[str, str, str | None]],
        rank: int,
        world: int,
        expert_parallel: bool,
        cuts: Sequence[tuple[str, int]],
    ) -> Plan: ...
    def plan_box(self, name: str, box: Sequence[tuple[int, int]]) -> Plan: ...

class Plan:
    def targets(self) -> list[tuple[str, str, tuple[int, ...], int]]:
        """(name, dtype, shape, size), in the order in which they are complete."""

    def match(self, wanted: Sequence[tuple[str, str, tuple[int, ...]]], ignore_unexpected: bool) -> None:
        """Error(mismatch) unless the targets are these, of the same dtypes and shapes."""

    def without(self, left_out: Sequence[bool]) -> Plan:
        """The same targets, of which those left out are not read."""

    def read_box(self, address: int, size: int) -> None:
        """Of a plan by plan_box(): one buffered read for each run."""

    @property
    def runs(self) -> int:
        """Contiguous ranges of the files that it reads."""

    @property
    def target_bytes(self) -> int: ...
    @property
    def read_bytes(self) -> int: ...

class ReadOptions:
    def __init__(self, backend: str, cache: str, threads: int, pool: int | None) -> None: ...

class Slab:
    """Memory that load_file(slab=...) loads into: taken from the system once, kept until the object goes."""

    def __init__(self) -> None: ...
    @property
    def size(self) -> int:
        """Bytes that it holds; 0 before the first load."""

    @property
    def in_use(self) -> bool:
        """Tensors in it are alive."""

class SlabMemory:
    """The bytes of a slab, through the buffer protocol."""

    def __buffer__(self, flags: int, /) -> memoryview: ...

def load_into_memory(
    plan: Plan,
    places: Sequence[_Memory | None],
    staging: _Memory,
    complete: Callable[[int], None] | None,
    options: ReadOptions,
    progress: Callable[[int, int], object] | None,
) -> dict[str, Any]: ...
def load_into_slab(
    plan: Plan, slab: Slab, options: ReadOptions, progress: Callable[[int, int], object] | None
) -> tuple[SlabMemory, list[int], dict[str, Any]]: ...
def parse_bytes(text: str) -> int: ...
