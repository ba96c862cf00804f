#!/usr/bin/env python3
"""Runs the benches of single kernels, and prints each one's rate and its share of what the machine does at most
(counter of_peak).  --document puts the table between the lines <!-- kernels --> and <!-- /kernels --> of a document.
"""

import argparse
import collections
import json
import pathlib
import statistics
import subprocess

BENCHES = ["micro_product", "linear", "attention", "conv", "sound_kernels", "rows", "widen"]


def measure(program, rounds, only):
    """Name of a bench -> its runs, as Google Benchmark tells them."""
    text = subprocess.run(
        [program, f"--benchmark_repetitions={rounds}", "--benchmark_enable_random_interleaving=true",
         f"--benchmark_filter={only}", "--benchmark_format=json"], check=True, capture_output=True, text=True).stdout
    found = collections.defaultdict(list)
    for run in json.loads(text)["benchmarks"]:
        if run["run_type"] == "iteration":
            found[run["name"].split("/iterations")[0]].append(run)
    return found


def cell(runs, counter):
    values = [run[counter] for run in runs if counter in run]
    if not values:
        return ""
    digits = 2 if counter == "of_peak" else 0
    return f"{statistics.median(values):.{digits}f} ({min(values):.{digits}f} – {max(values):.{digits}f})"


def rate(runs):
    for counter, unit in (("GFLOP/s", 1), ("GB/s", 1), ("Gelem/s", 1), ("items_per_second", 1e9)):
        values = [run[counter] / unit for run in runs if counter in run]
        if values:
            name = "Gelem/s" if counter == "items_per_second" else counter
            return f"{statistics.median(values):.{0 if statistics.median(values) > 50 else 2}f} {name}"
    return f"{statistics.median(run['cpu_time'] for run in runs):.0f} {runs[0]['time_unit']}"


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--bin", type=pathlib.Path, default=pathlib.Path("build/release/bin"))
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--benches", default=",".join(BENCHES))
    options.add_argument("--filter", default=".", help="of Google Benchmark")
    options.add_argument("--document", type=pathlib.Path)
    given = options.parse_args()
    lines = ["| bench | kernel | rate | of the peak (spread) |", "|---|---|---:|---:|"]
    for bench in given.benches.split(","):
        for name, runs in measure(given.bin / f"bench_{bench}", given.rounds, given.filter).items():
            lines.append(f"| {bench} | {name} | {rate(runs)} | {cell(runs, 'of_peak')} |")
            print(lines[-1], flush=True)
    if given.document:
        begin, end = "<!-- kernels -->\n", "<!-- /kernels -->"
        head, rest = given.document.read_text().split(begin)
        given.document.write_text(head + begin + "\n".join(lines) + "\n" + end + rest.split(end)[1])


if __name__ == "__main__":
    main()
