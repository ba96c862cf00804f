"""What a load did."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class ShardReport:
    """One file of a load."""

    path: Path
    backend: str  # what was used: "pread", "direct", "mmap", "uring", "uring direct", …
    reason: str  # why
    threads: int
    bytes: int  # delivered
    requests: int  # read calls
    touch_seconds: float
    cached_before: float  # share of the file in the page cache, 0 to 1


@dataclass(frozen=True)
class Report:
    """Figures of a load; zero after a dry run."""

    seconds: float = 0.0
    touch_seconds: float = 0.0  # of it, on first touches of memory that was never written to
    bytes: int = 0  # delivered from files
    requests: int = 0  # read calls
    page_faults: int = 0
    cpu_seconds: float = 0.0
    pool_bytes: int = 0  # buffers that were used
    shards: list[ShardReport] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)  # what the system refused, and what was done instead


@dataclass(frozen=True)
class ModuleReport(Report):
    """A load into a module; names are those of its state_dict()."""

    tensors: list[str] = field(default_factory=list)  # loaded, or to be loaded by a dry run
    missing: list[str] = field(default_factory=list)  # left as they were, the checkpoint has none (strict=False)
    unexpected: list[str] = field(default_factory=list)  # of the checkpoint, left out (strict=False)
    tied: dict[str, str] = field(default_factory=dict)  # name: the name that was loaded into the same memory
    staged: list[str] = field(default_factory=list)  # through a host buffer: on a device, not contiguous
    cast: list[str] = field(default_factory=list)  # to another dtype (cast="auto")
    target_bytes: int = 0  # of all loaded tensors


def figures(raw: dict[str, Any]) -> dict[str, Any]:
    """The extension's report as arguments of Report."""
    return {**raw, "shards": [ShardReport(**shard) for shard in raw["shards"]]}
