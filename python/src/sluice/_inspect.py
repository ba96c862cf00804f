"""Tables: what a checkpoint holds, and what a load of it would read.  Headers only."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from ._options import Globs, Path, make_plan, open_checkpoint, tell_warnings


class TensorInfo(NamedTuple):
    """A tensor of a file."""

    name: str
    dtype: str  # as in the header: "BF16"
    shape: tuple[int, ...]
    file: str
    offset: int  # of its first byte in that file
    size: int  # in bytes


class Target(NamedTuple):
    """A tensor as a load would deliver it."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    size: int  # in bytes


@dataclass(frozen=True)
class Plan:
    """What a load would deliver and read."""

    targets: list[Target]  # in the order in which they are complete
    target_bytes: int
    read_bytes: int


def tensors(path: Path) -> list[TensorInfo]:
    """All tensors of a checkpoint, sorted by name."""
    checkpoint = open_checkpoint(path)
    tell_warnings(checkpoint.warnings())
    files = [os.fspath(file) for file in checkpoint.files()]
    return [
        TensorInfo(name, dtype, shape, files[file], offset, size)
        for name, dtype, shape, file, offset, size in checkpoint.tensors()
    ]


def plan(
    path: Path,
    *,
    include: Globs = (),
    exclude: Globs = (),
    rename: Mapping[str, str] | None = None,
    rank: int = 0,
    world: int = 1,
    expert_parallel: bool = False,
    slices: Mapping[str, int] | None = None,
) -> Plan:
    """What load_into() or load_file() would read with these arguments; see there."""
    made = make_plan(
        open_checkpoint(path, include, exclude),
        include=include,
        exclude=exclude,
        rename=rename,
        rank=rank,
        world=world,
        expert_parallel=expert_parallel,
        slices=slices,
    )
    return Plan([Target._make(target) for target in made.targets()], made.target_bytes, made.read_bytes)
