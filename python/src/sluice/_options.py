"""Arguments that several functions share, turned into what the extension takes."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence

from . import _bytes
from ._error import Error

Path = str | os.PathLike[str]
Globs = str | Iterable[str]
Size = int | str | None
Progress = Callable[[int, int], object] | None
Cast = tuple[str, str, str | None]  # glob, dtype, only from this dtype

# From warn() up to the caller of a public function that calls tell_warnings() itself.
_CALLER = 3


def open_checkpoint(path: Path, include: Globs = (), exclude: Globs = ()) -> _bytes.Checkpoint:
    """Reads headers only; files of a set that hold nothing wanted need not exist."""
    return _bytes.Checkpoint.open(os.fspath(path), as_globs(include), as_globs(exclude))


def read_options(backend: str, cache: str, threads: int, pool: Size = None) -> _bytes.ReadOptions:
    size = _bytes.parse_bytes(pool) if isinstance(pool, str) else pool
    if threads < 0 or (size is not None and size < 0):
        raise Error("threads and pool are not below 0", hint="leave them out for the default")
    return _bytes.ReadOptions(backend, cache, threads, size)


def as_globs(globs: Globs) -> list[str]:
    return [globs] if isinstance(globs, str) else list(globs)


def make_plan(
    checkpoint: _bytes.Checkpoint,
    *,
    include: Globs = (),
    exclude: Globs = (),
    rename: Mapping[str, str] | None = None,
    casts: Sequence[Cast] = (),
    rank: int = 0,
    world: int = 1,
    expert_parallel: bool = False,
    slices: Mapping[str, int] | None = None,
) -> _bytes.Plan:
    """From names, shapes and dtypes alone."""
    if rank < 0 or world < 1 or rank >= world:
        raise Error(f"rank {rank} of {world} does not exist", hint="0 <= rank < world")
    if world > 1 and not slices and not expert_parallel:
        raise Error(
            f"every one of {world} ranks would load everything",
            hint="say what is divided: slices={glob: dimension}, expert_parallel=True",
        )
    cuts = list((slices or {}).items()) if world > 1 else []
    return checkpoint.plan(
        as_globs(include),
        as_globs(exclude),
        list((rename or {}).items()),
        list(casts),
        rank,
        world,
        expert_parallel,
        cuts,
    )


def tell_warnings(lines: Iterable[str]) -> None:
    """To be called by public functions directly, so that the warning names their caller."""
    for line in lines:
        warnings.warn(line, RuntimeWarning, stacklevel=_CALLER)
