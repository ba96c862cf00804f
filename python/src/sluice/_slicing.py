"""What an index asks for: the box of the tensor that must be read, and what is left to do in memory."""

from __future__ import annotations

import operator
from typing import Any, NamedTuple


class Selection(NamedTuple):
    box: list[tuple[int, int]]  # begin and end by dimension
    rest: tuple[Any, ...]  # index of what was read: steps taken, dimensions of integers dropped

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(end - begin for begin, end in self.box)

    @property
    def strided(self) -> bool:
        """More is read than is kept."""
        return any(isinstance(part, slice) and part.step != 1 for part in self.rest)


def _spread(index: Any, dims: int) -> list[Any]:
    """One entry a dimension: the ellipsis filled in."""
    parts = list(index) if isinstance(index, tuple) else [index]
    ellipses = [i for i, part in enumerate(parts) if part is Ellipsis]
    if len(ellipses) > 1:
        raise IndexError("an index has at most one '...'")
    given = len(parts) - len(ellipses)
    if given > dims:
        raise IndexError(f"{given} indices for a tensor of {dims} dimensions")
    at = ellipses[0] if ellipses else len(parts)
    return parts[:at] + [slice(None)] * (dims - given) + parts[at + 1 :]


def _one(index: Any, extent: int, dim: int) -> tuple[tuple[int, int], Any]:
    if isinstance(index, slice):
        begin, end, step = index.indices(extent)
        if step < 0:
            raise IndexError(f"dimension {dim}: a step is above 0")
        count = len(range(begin, end, step))
        end = begin + (count - 1) * step + 1 if count else begin
        return (begin, end), slice(None, None, step)
    if isinstance(index, bool) or not hasattr(index, "__index__"):
        raise TypeError(f"dimension {dim}: slices, integers and '...' are indices here, not {type(index).__name__}")
    at = operator.index(index)
    if not -extent <= at < extent:
        raise IndexError(f"dimension {dim}: {at} is outside of {extent} elements")
    at %= extent
    return (at, at + 1), 0


def select(index: Any, shape: tuple[int, ...]) -> Selection:
    """IndexError and TypeError as a tensor in memory raises them."""
    resolved = [_one(part, extent, dim) for dim, (part, extent) in enumerate(zip(_spread(index, len(shape)), shape))]
    return Selection([box for box, _ in resolved], tuple(rest for _, rest in resolved))
