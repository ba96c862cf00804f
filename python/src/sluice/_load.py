"""A checkpoint as a dictionary of tensors."""

from __future__ import annotations

from typing import Any

from . import _bytes
from ._error import Error
from ._frameworks import Framework, find_framework
from ._options import Globs, Path, Progress, Size, make_plan, open_checkpoint, read_options, tell_warnings


def load_dictionary(
    framework: Framework,
    plan: _bytes.Plan,
    device: Any,
    slab: _bytes.Slab | None,
    options: _bytes.ReadOptions,
    progress: Progress,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The tensors by name, sorted, and the extension's report."""
    targets = plan.targets()
    for _, dtype, _, _ in targets:
        framework.empty(dtype, (0,))  # refuses what the framework lacks before anything is read
    if framework.is_host(device):
        memory, offsets, report = _bytes.load_into_slab(plan, slab or _bytes.Slab(), options, progress)
        tensors = [
            framework.view(memory, offset, dtype, shape) for (_, dtype, shape, _), offset in zip(targets, offsets)
        ]
    else:
        from ._torch import load_tensors

        tensors = [framework.empty(dtype, shape, device) for _, dtype, shape, _ in targets]
        report = load_tensors(plan, tensors, options, progress)
    by_name = {target[0]: tensor for target, tensor in zip(targets, tensors)}
    return dict(sorted(by_name.items())), report


def load_file(
    filename: Path,
    device: Any = "cpu",
    *,
    framework: str = "pt",
    include: Globs = (),
    exclude: Globs = (),
    backend: str = "auto",
    cache: str = "auto",
    threads: int = 0,
    pool: Size = None,
    slab: _bytes.Slab | None = None,
    progress: Progress = None,
) -> dict[str, Any]:
    """Loads a checkpoint of one or many files into a dictionary of tensors, sorted by name.

    filename: a file, an index.json or a folder.
    device: where torch's tensors are to be; beyond "cpu" they pass through one host buffer of the largest's size.
    framework: "pt" or "numpy" (bfloat16 and float8 need the package ml_dtypes).
    include, exclude: globs of names; without include all are wanted.
    backend: "auto", "mmap", "pread", "direct" (past the page cache) or "uring".
    cache: "auto", "keep", "drop" (leave nothing behind in the page cache) or "prefetch" (network mounts).
    threads: that read; 0: as the backend likes it.  pool: bytes of all read buffers together, 32 MiB by default.
    slab: a sluice.Slab to load into, again and again: touching new memory costs more than reading.  Tensors of the
        load before must be gone.  Without it, the tensors share memory of their own, which lives as long as they do.
    progress: called with MiB done and in total, a few times a second; what it raises ends the load.

    Raises Error, also where memory does not suffice, before anything is read.
    """
    found = find_framework(framework)
    on = found.as_device(device)
    if slab is not None and not found.is_host(on):
        raise Error(f"a slab is host memory, the tensors are to be on {on}", hint="device='cpu', or no slab")
    options = read_options(backend, cache, threads, pool)
    checkpoint = open_checkpoint(filename, include, exclude)
    plan = make_plan(checkpoint, include=include, exclude=exclude)
    tensors, report = load_dictionary(found, plan, on, slab, options, progress)
    tell_warnings(checkpoint.warnings() + report["warnings"])
    return tensors
