"""Files for tests, written by hand so that every layout that the format allows can be had."""

from __future__ import annotations

import json
import math
import os
import random
from pathlib import Path
from typing import NamedTuple
from collections.abc import Sequence

# Bytes of an element, by name.
SIZES = {
    "BOOL": 1,
    "U8": 1,
    "I8": 1,
    "U16": 2,
    "I16": 2,
    "U32": 4,
    "I32": 4,
    "U64": 8,
    "I64": 8,
    "F16": 2,
    "BF16": 2,
    "F32": 4,
    "F64": 8,
    "C64": 8,
    "F8_E4M3": 1,
    "F8_E5M2": 1,
    "F8_E8M0": 1,
    "F8_E4M3FNUZ": 1,
    "F8_E5M2FNUZ": 1,
}


class Written(NamedTuple):
    name: str
    dtype: str
    shape: tuple[int, ...]
    data: bytes


def write_file(
    path: Path, tensors: Sequence[Written], metadata: dict[str, str] | None = None, padding: int = 0
) -> Path:
    """Tensors lie in the order given; `padding` spaces behind the header shift all of them."""
    header: dict[str, object] = {"__metadata__": metadata} if metadata else {}
    end = 0
    for name, dtype, shape, data in tensors:
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [end, end + len(data)]}
        end += len(data)
    text = json.dumps(header).encode() + b" " * padding
    path.write_bytes(len(text).to_bytes(8, "little") + text + b"".join(tensor.data for tensor in tensors))
    return path


def write_shards(folder: Path, tensors: Sequence[Written], count: int) -> Path:
    """An index and its shards, with the tensors dealt out in turn."""
    weight_map = {}
    for shard in range(count):
        name = f"model-{shard + 1:05}-of-{count:05}.safetensors"
        write_file(folder / name, tensors[shard::count], padding=shard)
        weight_map.update((tensor.name, name) for tensor in tensors[shard::count])
    index = folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"metadata": {}, "weight_map": weight_map}))
    return index


def write_sparse(path: Path, count: int, size: int) -> Path:
    """Tensors of `size` zeros that take no room on the disk."""
    table = {
        f"t{i:04}": {"dtype": "U8", "shape": [size], "data_offsets": [i * size, (i + 1) * size]} for i in range(count)
    }
    text = json.dumps(table).encode()
    with open(path, "wb") as f:
        f.write(len(text).to_bytes(8, "little") + text)
        f.truncate(8 + len(text) + count * size)
    return path


def make_tensor(chance: random.Random, name: str, dtype: str, shape: tuple[int, ...]) -> Written:
    data = chance.randbytes(math.prod(shape) * SIZES[dtype])
    return Written(name, dtype, shape, bytes(byte & 1 for byte in data) if dtype == "BOOL" else data)


def random_tensors(seed: int, dtypes: Sequence[str] = tuple(SIZES)) -> list[Written]:
    """Every dtype: scalars, tensors without elements, odd sizes that leave those behind them unaligned, a large one."""
    chance = random.Random(seed)
    tensors = []
    for i, dtype in enumerate(chance.sample(dtypes, len(dtypes)) * 2):
        shape = tuple(chance.choice([0, 1, 2, 3, 5, 17]) for _ in range(chance.randint(0, 3)))
        tensors.append(make_tensor(chance, f"layers.{i}.{dtype.lower()}", dtype, shape))
    tensors.append(make_tensor(chance, "large", dtypes[seed % len(dtypes)], (1021, 1031)))
    chance.shuffle(tensors)
    return tensors


def backends(path: Path) -> list[str]:
    """Those that can read this file: not every file system knows O_DIRECT."""
    known = ["auto", "mmap", "pread", "uring"]
    try:
        os.close(os.open(path, os.O_RDONLY | os.O_DIRECT))
    except OSError:
        return known
    return [*known, "direct"]
