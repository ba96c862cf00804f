#!/usr/bin/env python3
"""How fast `sluice quantize` is beside the disk it works on, how much memory it holds, and that a run which is
killed and taken up gives the bytes of one that is not.

    bench/quantize/run.py --bin build/release/bin --folder /mnt/disk/bench --blocks 48
    bench/quantize/run.py --bin build/release/bin --folder /mnt/disk/bench --source model.safetensors

Writes a synthetic checkpoint with the published widths (unless --source names one), then, a round after the
other: the raw rate of reading it and of writing as much as the result has (O_DIRECT, large blocks), and the
quantizing itself.  What is shown is the median of each; the ratio is of the same round.
"""
import argparse
import ctypes
import hashlib
import json
import mmap
import os
import random
import shutil
import signal
import statistics
import subprocess
import sys
import threading
import time
from pathlib import Path

BLOCK = 8 << 20
GIB = 1 << 30


def in_threads(count, work):
    threads = [threading.Thread(target=work, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def buffer():
    """A block in huge pages, touched: a request of the disk holds 254 pages of memory, huge or small."""
    huge = 2 << 20
    memory = mmap.mmap(-1, BLOCK + huge)
    memory.madvise(mmap.MADV_HUGEPAGE)
    memory.write(os.urandom(1 << 16) * ((BLOCK + huge) >> 16))
    begin = -ctypes.addressof(ctypes.c_char.from_buffer(memory)) % huge
    return memoryview(memory)[begin : begin + BLOCK]


def files_of(source):
    return [source] if source.is_file() else sorted(source.rglob("*.safetensors"))


def drop_from_cache(source):
    """What is cached would be read faster than the disk can."""
    for path in files_of(source):
        descriptor = os.open(path, os.O_RDONLY)
        os.fsync(descriptor)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(descriptor)


def read_rate(path, threads):
    """Bytes a second of reading the whole file past the page cache."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECT)
    size = os.fstat(descriptor).st_size
    buffers = [buffer() for _ in range(threads)]

    def work(number):
        for offset in range(number * BLOCK, size, threads * BLOCK):
            os.preadv(descriptor, [buffers[number]], offset)

    start = time.monotonic()
    in_threads(threads, work)
    seconds = time.monotonic() - start
    os.close(descriptor)
    return size / seconds


def write_rate(path, size, threads):
    """Bytes a second of writing a new file past the page cache, flushed."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_DIRECT)
    buffers = [buffer() for _ in range(threads)]

    def work(number):
        for offset in range(number * BLOCK, size, threads * BLOCK):
            os.pwrite(descriptor, buffers[number], offset)

    start = time.monotonic()
    in_threads(threads, work)
    os.fsync(descriptor)
    seconds = time.monotonic() - start
    os.close(descriptor)
    os.unlink(path)
    return size / seconds


def command(args, source, target, extra=()):
    return [args.bin / "sluice", "quantize", source, "-o", target, "--format", args.format, "--json", "--quiet",
            "--shard-size", args.shard_size, *args.pass_on, *extra]


def quantize(args, source, target):
    shutil.rmtree(target, ignore_errors=True)
    done = subprocess.run(command(args, source, target), stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)


def folder_hash(folder):
    total = hashlib.blake2b()
    for file in sorted(p for p in folder.rglob("*") if p.is_file()):
        total.update(str(file.relative_to(folder)).encode() + b"\0")
        with open(file, "rb") as stream:
            while piece := stream.read(BLOCK):
                total.update(piece)
    return total.hexdigest()


def kill_and_take_up(args, source, target, seconds, kills):
    """Kills the run at random moments, then lets it end; tells the moments and what was there already."""
    shutil.rmtree(target, ignore_errors=True)
    moments = sorted(random.uniform(0.1, 0.8) * seconds for _ in range(kills))
    waits = [b - a for a, b in zip([0.0] + moments, moments)]
    for wait in waits:
        process = subprocess.Popen(command(args, source, target), stdout=subprocess.DEVNULL)
        time.sleep(max(wait, 0.05 * seconds))
        process.send_signal(signal.SIGKILL)
        process.wait()
        if target.exists():
            sys.exit("the run was over before it was killed: take a larger checkpoint")
    done = subprocess.run(command(args, source, target), stdout=subprocess.PIPE, check=True)
    return moments, json.loads(done.stdout)["shards_taken_up"]


def make_source(args):
    source = args.folder / "source.safetensors"
    subprocess.run([args.bin / "sluice-synth", "-o", source, "--blocks", str(args.blocks), "--components",
                    args.components, "--overwrite"], check=True, stdout=subprocess.DEVNULL)
    return source


def measure(args, source, target):
    rounds = []
    out = quantize(args, source, target)["bytes_out"]  # also warms what can be warmed
    largest = max(files_of(source), key=lambda path: path.stat().st_size)
    for _ in range(args.rounds):
        drop_from_cache(source)
        read = max(read_rate(largest, threads) for threads in (2, 4))
        write = max(write_rate(args.folder / "raw", out // BLOCK * BLOCK, threads) for threads in (1, 2))
        drop_from_cache(source)
        result = quantize(args, source, target)
        rate = result["bytes_in"] / result["seconds"]
        moved = (result["bytes_in"] + result["bytes_out"]) / result["seconds"]
        rounds.append({"read": read, "write": write, "quantize": rate, "moved": moved,
                       "ratio": rate / min(read, write), "moved_ratio": moved / min(read, write),
                       "peak": result["peak_anonymous"], "cpu": result["cpu_seconds"] / result["seconds"]})
        last = rounds[-1]
        print(f"  read {read / GIB:.2f}, write {write / GIB:.2f}, quantize {rate / GIB:.2f} GiB/s "
              f"({last['moved'] / GIB:.2f} read and written): {last['ratio']:.2f}", flush=True)
    return {key: statistics.median(one[key] for one in rounds) for key in rounds[0]}, out


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=Path, required=True, help="folder with sluice and sluice-synth")
    parser.add_argument("--folder", type=Path, required=True, help="for source and result, on the disk in question")
    parser.add_argument("--source", type=Path, help="a checkpoint to take instead of a synthetic one")
    parser.add_argument("--blocks", type=int, default=4, help="0.72 GiB each; the published model has 48")
    parser.add_argument("--components", default="transformer", help="of the synthetic checkpoint")
    parser.add_argument("--format", choices=["fp8", "nf4"], default="nf4")
    parser.add_argument("--shard-size", default="2GiB")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--kills", type=int, default=3, help="0: none")
    parser.add_argument("--keep", action="store_true", help="leave source and result there")
    parser.add_argument("pass_on", nargs="*", help="further flags of sluice quantize, behind --")
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    source, target = args.source or make_source(args), args.folder / f"quantized-{args.format}"

    size = sum(path.stat().st_size for path in files_of(source))
    print(f"{args.format}, {size / GIB:.1f} GiB")
    figures, out = measure(args, source, target)
    print(f"median: read {figures['read'] / GIB:.2f}, write {figures['write'] / GIB:.2f}, "
          f"quantize {figures['quantize'] / GIB:.2f} GiB/s of the source, "
          f"{figures['moved'] / GIB:.2f} read and written; {out / GIB:.1f} GiB written")
    print(f"of min(read, write): {figures['ratio']:.2f}; with what is written {figures['moved_ratio']:.2f}")
    print(f"peak anonymous memory {figures['peak'] / (1 << 20):.0f} MiB, {figures['cpu']:.2f} cores busy")
    if args.kills > 0:
        wanted = folder_hash(target)
        seconds = size / figures["quantize"]
        moments, taken_up = kill_and_take_up(args, source, target, seconds, args.kills)
        same = folder_hash(target) == wanted
        print(f"killed at {', '.join(f'{m:.1f} s' for m in moments)} of {seconds:.1f} s, {taken_up} shards taken "
              f"up: {'same bytes' if same else 'OTHER BYTES'}")
        if not same:
            sys.exit(1)
    if not args.keep:
        shutil.rmtree(target, ignore_errors=True)
        if args.source is None:
            source.unlink()


if __name__ == "__main__":
    main()
