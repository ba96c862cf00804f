"""Writes the measured tables of docs/memory.md from the results of the scripts beside this file.

    python3 bench/memory/tables.py bench/memory/results docs/memory.md
"""
import json
import pathlib
import statistics
import sys

results, document = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])


def gb(value):
    return f"{value / 1e9:.2f}"


def big_models():
    lines = ["### A checkpoint beside a limit", "",
             "| checkpoint | request | limit, GB | seconds | anonymous, GB | counted with page cache, GB | out-of-memory kills |",
             "|---|---|---:|---:|---:|---:|---:|"]
    phases = ["", "Its phases, planned / measured:", "",
              "| checkpoint | phase | seconds | read, GB | anonymous planned, GB | measured, GB | weights |", "|---|---|---:|---:|---:|---:|---|"]
    for path in sorted(results.glob("big_model_*.json")):
        row = json.loads(path.read_text())
        lines.append(f"| {row['model']} | {row['request']} | {gb(row['limit'])} | {row['seconds']:.0f} | {gb(row['peak_anonymous'])} | "
                     f"{gb(row['peak_counted'])} | {row['oom_kills']} |")
        for phase in row["phases"]:
            where = ", ".join(f"{w['component']}: {w['stage_from']}" + (f", {w['resident_blocks']} of {w['blocks']} stay"
                              if w["stage_from"] == "disk" else "") for w in phase["weights"])
            phases.append(f"| {row['model']}, {row['request'].split(',')[0]} | {phase['name']} | {phase['seconds']:.1f} | {gb(phase['bytes_read'])} | "
                          f"{gb(phase['planned'])} | {gb(phase['peak_anonymous'])} | {where} |")
    return lines + phases


def accuracy():
    rows = json.loads((results / "plan_accuracy.json").read_text())
    lines = ["### Plans and what happened", "", "| request | peak planned, GB | measured, GB | | time planned, s | measured, s | |",
             "|---|---:|---:|---:|---:|---:|---:|"]
    for row in rows:
        if "measured" not in row:
            lines.append(f"| {row['request']} | {'fits' if row['fits'] else 'does not fit'} | exit {row['code']} | | | | |")
            continue
        lines.append(f"| {row['request']} | {gb(row['planned'])} | {gb(row['measured'])} | {row['measured'] / row['planned'] - 1:+.0%} | "
                     f"{row['planned_seconds']:.1f} | {row['seconds']:.1f} | {row['seconds'] / row['planned_seconds'] - 1:+.0%} |")
    return lines


def staging():
    lines = ["### From disk beside from memory", ""]
    for path in sorted(results.glob("staging*.json")):
        row = json.loads(path.read_text())
        ratios = row["ratios"]
        lines.append(f"{row['request']}: a step takes {statistics.median(row['times']['disk']):.2f} s from disk, "
                     f"{statistics.median(row['times']['memory']):.2f} s from memory; ratio {statistics.median(ratios):.3f} "
                     f"({min(ratios):.3f} to {max(ratios):.3f}, {len(ratios)} rounds); latents of {row['runs']} runs "
                     f"{'the same to the bit' if row['same_latents'] else 'DIFFER'}.")
    return lines


def steps():
    row = json.loads((results / "steps.json").read_text())
    seconds = row["seconds"]
    return ["### Many steps from disk", "",
            f"{len(seconds)} steps: anonymous memory grows by {row['slope'] / 1e6:+.3f} MB a step; the last step takes "
            f"{seconds[-1] / seconds[2]:.2f} x step 3."]


text = document.read_text()
begin, end = "<!-- tables -->\n", "<!-- /tables -->"
tables = []
for name, section in (("big_model_*.json", big_models), ("plan_accuracy.json", accuracy), ("staging*.json", staging), ("steps.json", steps)):
    if any(results.glob(name)):
        tables += section() + [""]
head, rest = text.split(begin)
document.write_text(head + begin + "\n".join(tables) + end + rest.split(end)[1])
