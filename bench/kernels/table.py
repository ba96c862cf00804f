#!/usr/bin/env python3
"""Runs bench_linear several times, arms in random order, and prints the rate of every format of the weight as a
share of oneDNN's product with a weight that was packed before, in the same run."""

import argparse
import collections
import json
import statistics
import subprocess


def rates(binary, rounds, arms):
    text = subprocess.run(
        [binary, f"--benchmark_repetitions={rounds}", "--benchmark_enable_random_interleaving=true",
         f"--benchmark_filter={arms}", "--benchmark_format=json"],
        check=True, capture_output=True, text=True).stdout
    found = collections.defaultdict(list)
    for run in json.loads(text)["benchmarks"]:
        if run["run_type"] == "iteration":
            found[run["name"].split("/iterations")[0]].append(run["GFLOP/s"])
    return {name: statistics.median(values) for name, values in found.items()}


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--bin", default="build/release/bin")
    options.add_argument("--rounds", type=int, default=5)
    given = options.parse_args()
    print("| computed in | layer | weight | GFLOP/s | of prepacked |\n|---|---|---|---|---|")
    for dtype in ("bf16", "f32"):
        for layer in ("4096x4096", "4096x16384", "16384x4096"):
            found = rates(f"{given.bin}/bench_linear", given.rounds, f"^{dtype}/{layer}/")
            best = found[f"{dtype}/{layer}/prepacked"]
            for name, rate in sorted(found.items()):
                print(f"| {dtype} | {layer} | {name.split('/')[2]} | {rate:.0f} | {rate / best:.2f} |", flush=True)


if __name__ == "__main__":
    main()
