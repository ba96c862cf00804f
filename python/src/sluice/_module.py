"""A checkpoint streamed into a torch.nn.Module that exists already."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING

from . import _bytes
from ._error import Error, list_first
from ._options import Cast, Globs, Path, Progress, Size, make_plan, open_checkpoint, read_options, tell_warnings
from ._report import ModuleReport, figures

if TYPE_CHECKING:
    import torch

_HINT = (
    "rename={glob: name} for other names, cast='auto' for other dtypes, strict=False to leave out what differs in name"
)


def _why_impossible(tensor: torch.Tensor, own: set[int]) -> tuple[str, str] | None:
    """Why nothing can be read into a tensor of a module, and what to do about it."""
    from torch.nn.parameter import is_lazy

    from ._torch import file_dtype

    if is_lazy(tensor):
        return "is not initialized", "run the module once, so that its shapes are known"
    if tensor.is_meta:
        return "is on the meta device", "give it memory: module.to_empty(device=...)"
    if tensor.is_sparse or tensor.is_sparse_csr or tensor.is_mkldnn or tensor.is_quantized:
        return "is sparse, quantized or in oneDNN's layout", "load before it is converted"
    if file_dtype(tensor) is None:
        return f"is {tensor.dtype}, which files do not know", "leave it out of state_dict()"
    if any(stride == 0 and extent > 1 for stride, extent in zip(tensor.stride(), tensor.shape)):
        return "is expanded, several of its elements are one", "make it contiguous"
    if id(tensor) not in own:
        return "is neither parameter nor buffer", "what a hook of state_dict() made would be lost: load without it"
    return None


def _slots(module: torch.nn.Module) -> dict[str, torch.Tensor]:
    """The module's parameters and buffers under the names of its state_dict()."""
    import torch

    own = {id(tensor) for tensor in chain(module.parameters(), module.buffers())}
    # What get_extra_state() gave is no tensor, so in no file.
    state = module.state_dict(keep_vars=True).items()
    slots = {name: value for name, value in state if isinstance(value, torch.Tensor)}
    wrong = {name: reason for name, tensor in slots.items() if (reason := _why_impossible(tensor, own))}
    if wrong:
        what = list_first(f"{name!r} {reason}" for name, (reason, _) in wrong.items())
        remedies = sorted({remedy for _, remedy in wrong.values()})
        raise Error(f"the module cannot be loaded into: {what}", hint="; ".join(remedies))
    return slots


def _memory_of(tensor: torch.Tensor) -> object:
    """Equal for tensors that are one under two names."""
    from ._torch import is_plain

    if not is_plain(tensor) or tensor.numel() == 0:
        return id(tensor)
    return (tensor.device, tensor.data_ptr(), tensor.dtype, tuple(tensor.shape), tensor.stride())


def _needed_casts(plan: _bytes.Plan, slots: Mapping[str, torch.Tensor]) -> list[Cast]:
    """Rules that turn what the plan delivers into the dtypes of the slots: one for each pair of dtypes where all
    tensors of the first want the second, else one a tensor."""
    from ._torch import file_dtype

    wanted: dict[str, dict[str, list[str]]] = {}  # dtype in the file: dtype of the slot: names
    for name, dtype, _, _ in plan.targets():
        to = file_dtype(slots[name]) if name in slots else None
        if to is not None:
            wanted.setdefault(dtype, {}).setdefault(to, []).append(name)
    casts: list[Cast] = []
    for dtype, by_slot in wanted.items():
        if len(by_slot) == 1:
            casts += [("*", to, dtype) for to in by_slot if to != dtype]
        else:
            casts += [(name, to, dtype) for to, names in by_slot.items() if to != dtype for name in names]
    return casts


@dataclass
class _Match:
    """Which target goes where, decided before anything is read."""

    tensors: list[torch.Tensor | None]  # by target; None: not read
    loaded: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    unexpected: list[str] = field(default_factory=list)
    tied: dict[str, str] = field(default_factory=dict)


def _match(plan: _bytes.Plan, slots: Mapping[str, torch.Tensor], strict: bool) -> _Match:
    """Error(mismatch) lists all that is missing, unexpected, or of another shape or dtype.  Of several names of one
    memory the checkpoint must have one; has it more, the last one counts, as in load_state_dict()."""
    from ._torch import file_dtype, file_shape

    names = [target[0] for target in plan.targets()]
    available = set(names)
    groups: dict[object, list[str]] = {}
    for name, tensor in slots.items():
        groups.setdefault(_memory_of(tensor), []).append(name)

    match = _Match([None] * len(names))
    chosen: set[str] = set()
    wanted: list[str] = []
    for group in groups.values():
        present = [name for name in group if name in available]
        wanted += present
        if not present:
            match.missing.append(group[0])
            continue
        chosen.add(present[-1])
        match.tied.update((name, present[-1]) for name in group if name != present[-1])
    if strict:
        wanted += match.missing
    try:
        table = [(name, str(file_dtype(slots[name])), file_shape(slots[name])) for name in wanted]
        plan.match(table, not strict)
    except Error as error:
        raise Error(error.message, error.kind, _HINT) from None
    for i, name in enumerate(names):
        if name in chosen:
            match.tensors[i] = slots[name]
            match.loaded.append(name)
        elif name not in slots:
            match.unexpected.append(name)
    return match


def load_into(
    module: torch.nn.Module,
    path: Path,
    *,
    strict: bool = True,
    rename: Mapping[str, str] | None = None,
    cast: bool | str = False,
    include: Globs = (),
    exclude: Globs = (),
    rank: int = 0,
    world: int = 1,
    slices: Mapping[str, int] | None = None,
    expert_parallel: bool = False,
    backend: str = "auto",
    cache: str = "auto",
    threads: int = 0,
    pool: Size = None,
    progress: Progress = None,
    dry_run: bool = False,
) -> ModuleReport:
    """Streams a checkpoint into the parameters and buffers of a module, in place.

    Contiguous tensors in host memory are read straight into place; others pass, one at a time, through one host buffer
    of the largest's size.  Beside the model, memory is needed for that buffer and for the pool.  All names, dtypes and
    shapes are compared first, exactly ([1, 4] does not spread over [4, 4]): Error names all that differs, and nothing
    has been written.  A load that fails later, or is ended by `progress` or Ctrl-C, leaves the module half loaded.

    path: a file, an index.json or a folder.
    strict: False leaves unexpected tensors out and missing ones as they are, and reports both.
    rename: {glob: name}, in order; each "*" of the name stands for what the same "*" of the glob matched.
    cast: "auto" converts to the module's dtypes where that rounds to nearest or loses nothing; False refuses.
    include, exclude: globs of names as in the file; without include all are wanted.
    rank, world: this process's share: of tensors that match slices={glob: dimension} its part along that dimension, and
        with expert_parallel its contiguous range of "experts.N.".  Only that is read.
    backend, cache, threads, pool, progress: as for load_file().
    dry_run: compares and reports only.

    Tied tensors are loaded once.  Gradients are not recorded; version counters count up, so that backward() refuses
    what was saved before.
    """
    if cast not in (False, "auto"):
        raise Error(f"cast={cast!r} is not known", hint="'auto' or False")
    from ._torch import can_be_read_in_place, load_tensors

    options = read_options(backend, cache, threads, pool)
    slots = _slots(module)
    checkpoint = open_checkpoint(path, include, exclude)

    def plan_with(casts: list[Cast]) -> _bytes.Plan:
        return make_plan(
            checkpoint,
            include=include,
            exclude=exclude,
            rename=rename,
            casts=casts,
            rank=rank,
            world=world,
            slices=slices,
            expert_parallel=expert_parallel,
        )

    plan = plan_with([])
    before = {name: dtype for name, dtype, _, _ in plan.targets()}
    if cast == "auto" and (casts := _needed_casts(plan, slots)):
        plan = plan_with(casts)
    match = _match(plan, slots, strict)
    plan = plan.without([tensor is None for tensor in match.tensors])
    raw = None if dry_run else load_tensors(plan, match.tensors, options, progress)

    kept = [(target, tensor) for target, tensor in zip(plan.targets(), match.tensors) if tensor is not None]
    report = ModuleReport(
        **(figures(raw) if raw else {}),
        tensors=match.loaded,
        missing=match.missing,
        unexpected=match.unexpected,
        tied=match.tied,
        staged=[target[0] for target, tensor in kept if not can_be_read_in_place(tensor)],
        cast=[target[0] for target, _ in kept if before[target[0]] != target[1]],
        target_bytes=sum(target[3] for target, _ in kept),
    )
    tell_warnings(checkpoint.warnings() + report.warnings)
    return report
