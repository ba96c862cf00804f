#!/usr/bin/env python3
"""sluice beside other loaders and beside raw reads, on files that it makes: warm and cold, interleaved.

    python bench/peers/run.py --bin build/release/bin --dir /somewhere/with/space

Every run is a fresh process.  A round runs all arms once, in shuffled order; neither a slow minute nor what a neighbour
left in memory meets the same arm each time.  Ratios are taken between arms of one round; their median and spread are
what to quote.  One uncounted round goes first.  Needs Python with torch, safetensors, fastsafetensors and
runai-model-streamer, and g++ with liburing for the raw reads.
"""

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from loaders import LOADERS
from tables import print_tables

HERE = Path(__file__).resolve().parent

# Arms of sluice and of raw_read, by where the bytes end up.  touched: in memory that was written to before the clock
# started; fresh: in memory that is new; ring: in buffers that are used again, nothing is kept.
SLUICE = {
    "sluice auto, touched": "--into touched",
    "sluice pread, touched": "--into touched --read-backend pread",
    "sluice direct, touched": "--into touched --read-backend direct",
    "sluice uring, touched": "--into touched --read-backend uring",
    "sluice mmap, touched": "--into touched --read-backend mmap",
    "sluice auto, fresh": "--into fresh",
    "sluice pread, fresh": "--into fresh --read-backend pread",
    "sluice direct, fresh": "--into fresh --read-backend direct",
    "sluice auto, ring": "--into nowhere",
    "sluice auto, touched, drop": "--into touched --cache drop",
}
RAW = {
    "raw pread x4, touched": "--mode pread --prefault",
    "raw pread x4, touched huge": "--mode pread --prefault --huge",
    "raw pread x4, fresh": "--mode pread",
    "raw pread x4, ring": "--mode pread --dest ring",
    "raw direct x2, touched huge": "--mode direct --threads 2 --prefault --huge",
    "raw direct x4, touched huge": "--mode direct --threads 4 --prefault --huge",
    "raw dontcache x4, touched huge": "--mode dontcache --prefault --huge",
}


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=Path, default=Path("build/release/bin"), help="where sluice is")
    parser.add_argument("--dir", type=Path, help="where the file is made and removed again")
    parser.add_argument("--gib", type=float, default=4.0)
    parser.add_argument("--tensors", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--cache", choices=("warm", "cold", "both"), default="both")
    parser.add_argument("--only", nargs="*", help="arms whose name contains one of these")
    parser.add_argument("--out", type=Path, default=Path("peers.jsonl"), help="a line a run is appended there")
    parser.add_argument("--tables", type=Path, help="print the tables of such a file, and nothing else")
    return parser.parse_args()


def build_raw_read(folder):
    program = folder / "raw_read"
    source = HERE / "raw_read.cpp"
    subprocess.run(["g++", "-std=c++20", "-O2", "-pthread", source, "-luring", "-o", program], check=True)
    return program


def commands(arguments, raw_read, path):
    """name -> command line"""
    arms = {name: [sys.executable, HERE / "loaders.py", name, path] for name in LOADERS}
    for name, flags in SLUICE.items():
        arms[name] = [arguments.bin / "sluice", "load", path, "--json", "--quiet", *flags.split()]
    for name, flags in RAW.items():
        arms[name] = [raw_read, path, *flags.split()]
    if arguments.only:
        arms = {name: arm for name, arm in arms.items() if any(part in name for part in arguments.only)}
    return arms


def set_cache(path, cache):
    """Empties or fills the page cache for one file."""
    file = os.open(path, os.O_RDONLY)
    try:
        # Emptied first also for warm: what a mapping's faults left lies in smaller pieces, and is slower to copy.
        os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
        if cache == "warm":
            while os.read(file, 8 << 20):
                pass
    finally:
        os.close(file)


def cached_share(path):
    done = subprocess.run(
        ["fincore", "--bytes", "--noheadings", "--output", "RES", path], capture_output=True, text=True, check=True
    )
    return int(done.stdout.split()[0]) / os.path.getsize(path)


def run_arm(command, path):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode or not lines:
        return {"error": (done.stderr or done.stdout).strip()[-400:]}
    result = json.loads(lines[-1])
    if "cpu_seconds" not in result:  # raw_read
        result["cpu_seconds"] = result["user_s"] + result["sys_s"]
        result["page_faults"] = result["minor_faults"]
    return result


def measure(arguments, path, raw_read):
    arms = commands(arguments, raw_read, path)
    caches = ["warm", "cold"] if arguments.cache == "both" else [arguments.cache]
    gib = os.path.getsize(path) / 2**30
    with open(arguments.out, "a") as out:
        for number in range(-1, arguments.rounds):
            for cache in caches:
                names = list(arms)
                random.Random(f"{number} {cache}").shuffle(names)
                for name in names:
                    set_cache(path, cache)
                    before = cached_share(path)
                    result = run_arm(arms[name], path)
                    result.update(name=name, cache=cache, round=number, gib=gib, cached_before=before,
                                  cached_after=cached_share(path))
                    if number >= 0 or "error" in result:
                        print(json.dumps(result), file=out, flush=True)
                print(f"round {number} {cache}", file=sys.stderr)


def main():
    arguments = parse_arguments()
    if arguments.tables:
        print_tables(arguments.tables)
        return
    folder = Path(tempfile.mkdtemp(prefix="sluice-peers-", dir=arguments.dir))
    try:
        path = folder / "model.safetensors"
        make = [sys.executable, HERE / "make_file.py", path, "--gib", str(arguments.gib), "--tensors", str(arguments.tensors)]
        subprocess.run(make, check=True)
        measure(arguments, path, build_raw_read(folder))
    finally:
        shutil.rmtree(folder)
    print_tables(arguments.out)


if __name__ == "__main__":
    main()
