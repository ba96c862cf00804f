"""Medians, spread and ratios of a file of runs."""

import json
import statistics
from collections import defaultdict

PEERS = ("safetensors mmap, touch", "safetensors mmap, copy", "safetensors pread", "fastsafetensors without GDS",
         "runai streamer, clone")  # those that keep what they load

# (cache, ours, beside what, the least that is promised); `best` of several is taken anew in each round.
RATIOS = (
    ("warm", "sluice auto, touched", ("raw pread x4, touched", "raw pread x4, touched huge"), 0.9),
    ("warm", "sluice auto, touched", PEERS, 5.0),
    ("warm", "sluice auto, fresh", PEERS, 1.0),
    ("warm", "sluice auto, fresh", ("raw pread x4, fresh",), 0.9),
    ("cold", "sluice auto, touched", ("raw direct x2, touched huge", "raw direct x4, touched huge"), 0.95),
    ("warm", "sluice auto, touched", ("sluice pread, touched", "sluice direct, touched", "sluice uring, touched",
                                      "sluice mmap, touched"), 0.95),
    ("cold", "sluice auto, touched", ("sluice pread, touched", "sluice direct, touched", "sluice uring, touched",
                                      "sluice mmap, touched"), 0.95),
    ("warm", "sluice auto, fresh", ("sluice pread, fresh", "sluice direct, fresh"), 0.95),
    ("cold", "sluice auto, fresh", ("sluice pread, fresh", "sluice direct, fresh"), 0.95),
)


def read_runs(path):
    with open(path) as lines:
        return [json.loads(line) for line in lines]


def rate(run):
    return run["gib"] / run["seconds"]


def spread(values, digits=2):
    return f"{statistics.median(values):.{digits}f} ({min(values):.{digits}f} – {max(values):.{digits}f})"


def print_rates(runs, cache):
    print(f"\n| {cache} cache | GiB/s median (spread) | CPU s | page faults | in cache after | runs |")
    print("|---|---|---|---|---|---|")
    by_name = defaultdict(list)
    for run in runs:
        if run["cache"] == cache:
            by_name[run["name"]].append(run)
    for name, arm in sorted(by_name.items()):
        good = [run for run in arm if "error" not in run]
        if not good:
            print(f"| {name} | failed: {arm[0]['error'].splitlines()[-1]} | | | | |")
            continue
        median = lambda key: statistics.median(run[key] for run in good)
        print(f"| {name} | {spread([rate(run) for run in good])} | {median('cpu_seconds'):.2f} "
              f"| {median('page_faults'):.0f} | {median('cached_after'):.3f} | {len(good)} |")


def print_ratios(runs):
    rounds = defaultdict(dict)
    for run in runs:
        if "error" not in run and run["round"] >= 0:
            rounds[run["cache"], run["round"]][run["name"]] = rate(run)
    print("\n| cache | | beside the best of | ratio, median of rounds (spread) | wanted |")
    print("|---|---|---|---|---|")
    for cache, ours, others, wanted in RATIOS:
        ratios = []
        for (its_cache, _), arms in rounds.items():
            present = [arms[name] for name in others if name in arms]
            if its_cache == cache and ours in arms and present:
                ratios.append(arms[ours] / max(present))
        if ratios:
            print(f"| {cache} | {ours} | {', '.join(others)} | {spread(ratios)} | {wanted} |")


def print_tables(path):
    runs = read_runs(path)
    for cache in ("warm", "cold"):
        print_rates(runs, cache)
    print_ratios(runs)
