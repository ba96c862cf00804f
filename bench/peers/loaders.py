#!/usr/bin/env python3
"""One peer loads one file, in a process of its own, and prints one JSON line.

    python loaders.py NAME FILE

Timed is what lies between the loader's first call and the moment at which every byte of every tensor is in memory.
A loader that only maps is made to fetch: `touch` reads one byte of each page, `copy` copies each tensor into one that
is allocated in the timed part.  Imports are not timed.
"""

import json
import os
import resource
import sys
import time

PAGE = 4096
THREADS = 4


def safetensors_touch(path):
    import torch
    from safetensors.torch import load_file

    tensors = list(load_file(path, backend="mmap").values())
    for tensor in tensors:
        tensor.reshape(-1).view(torch.uint8)[::PAGE].sum()
    return tensors


def safetensors_copy(path):
    import torch
    from safetensors import safe_open

    kept = []
    with safe_open(path, "pt", backend="mmap") as file:
        for name in file.keys():
            tensor = file.get_tensor(name)
            kept.append(torch.empty_like(tensor).copy_(tensor))
    return kept


def safetensors_pread(path):
    from safetensors.torch import load_file

    return list(load_file(path, backend="pread").values())


def fastsafetensors_nogds(path):
    from fastsafetensors import SafeTensorsFileLoader

    loader = SafeTensorsFileLoader(None, "cpu", nogds=True, max_threads=THREADS)
    loader.add_filenames({0: [path]})
    buffer = loader.copy_files_to_device()
    return [buffer.get_tensor(name) for name in loader.get_keys()], loader, buffer


def runai(path, keep):
    os.environ["RUNAI_STREAMER_CONCURRENCY"] = str(THREADS)
    from runai_model_streamer import SafetensorsStreamer

    kept = []
    with SafetensorsStreamer() as streamer:
        streamer.stream_file(path)
        # Its buffer is used again: a caller that keeps a tensor clones it.
        for _, tensor in streamer.get_tensors():
            if keep:
                kept.append(tensor.clone())
    return kept


LOADERS = {
    "safetensors mmap, touch": safetensors_touch,
    "safetensors mmap, copy": safetensors_copy,
    "safetensors pread": safetensors_pread,
    "fastsafetensors without GDS": fastsafetensors_nogds,
    "runai streamer, clone": lambda path: runai(path, keep=True),
    "runai streamer, not kept": lambda path: runai(path, keep=False),
}


def processor_seconds(usage):
    return usage.ru_utime + usage.ru_stime


def main():
    name, path = sys.argv[1:]
    import torch

    # Thousands of small copies: the barriers of several threads would make them slower.
    torch.set_num_threads(1)
    before = resource.getrusage(resource.RUSAGE_SELF)
    start = time.perf_counter()
    kept = LOADERS[name](path)
    seconds = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_SELF)
    print(
        json.dumps(
            {
                "seconds": seconds,
                "cpu_seconds": processor_seconds(after) - processor_seconds(before),
                "page_faults": after.ru_minflt - before.ru_minflt,
                "peak_rss": after.ru_maxrss << 10,
            }
        ),
        flush=True,
    )
    del kept
    os._exit(0)  # some peers end badly


if __name__ == "__main__":
    main()
