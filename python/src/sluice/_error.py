"""The one exception of this package."""

from __future__ import annotations

from collections.abc import Iterable

_LISTED = 8


class Error(Exception):
    """What went wrong and where, and what to do about it.

    kind: "usage", "bad_input", "corrupt_file", "mismatch", "does_not_fit", "io" or "internal", as the command line
        reports it with --json.
    message: file, tensor and numbers.  hint: the remedy, or "".
    """

    def __init__(self, message: str, kind: str = "usage", hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.kind = kind
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}\n  try: {self.hint}" if self.hint else self.message

    def __reduce__(self) -> tuple[object, ...]:
        return (Error, (self.message, self.kind, self.hint))


def list_first(items: Iterable[str]) -> str:
    """ "a, b, c and 5 more": the first eight."""
    items = list(items)
    more = f" and {len(items) - _LISTED} more" if len(items) > _LISTED else ""
    return ", ".join(items[:_LISTED]) + more
