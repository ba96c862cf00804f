"""Loads safetensors checkpoints at the speed of the disk, in bounded memory.

    with sluice.safe_open("model.safetensors", framework="pt") as f:     # as safetensors.safe_open
        part = f.get_slice("embedding.weight")[:1000]                     # reads these rows only
    weights = sluice.load_file("model.safetensors")                       # a dictionary of tensors
    report = sluice.load_into(module, "model.safetensors")                # into a torch.nn.Module that exists

A path is a .safetensors file, a *.safetensors.index.json, or a folder that holds either.  Sizes are bytes, or text
such as "64MiB".  A glob is a name in which "*" stands for any text and "?" for one character.  Errors are sluice.Error.
"""

from ._bytes import Slab
from ._bytes import version as __version__
from ._error import Error
from ._inspect import Plan, Target, TensorInfo, plan, tensors
from ._load import load_file
from ._module import load_into
from ._open import TensorSlice, safe_open
from ._report import ModuleReport, Report, ShardReport

__all__ = [
    "Error",
    "ModuleReport",
    "Plan",
    "Report",
    "ShardReport",
    "Slab",
    "Target",
    "TensorInfo",
    "TensorSlice",
    "__version__",
    "load_file",
    "load_into",
    "plan",
    "safe_open",
    "tensors",
]
