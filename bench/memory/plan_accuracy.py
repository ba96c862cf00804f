"""Plans beside what happened: twelve requests and limits, peak memory and time.

    python3 bench/memory/plan_accuracy.py --model ltx-2-blocks/ --text-encoder gemma/
"""
import capped
import runs

# width, height, frames, steps, further flags, limit of the control group
REQUESTS = [
    (384, 256, 17, 2, [], None),
    (384, 256, 17, 2, ["--stage-from", "memory"], None),
    (384, 256, 17, 4, ["--stage-from", "disk"], None),
    (384, 256, 17, 4, ["--stage-from", "disk", "--resident-blocks", "1"], None),
    (512, 320, 49, 1, [], None),
    (512, 320, 25, 1, ["--memory-limit", "4G"], None),
    (512, 320, 25, 2, [], "3G"),
    (768, 512, 17, 1, [], "6G"),
    (768, 512, 25, 1, ["--memory-limit", "3G", "--no-audio"], None),
    (256, 256, 65, 1, ["--read-backend", "pread", "--memory-limit", "2500M"], None),
    (640, 384, 17, 2, ["--no-audio"], "4G"),
    (384, 256, 9, 2, ["--memory-limit", "1G"], None),
]

args = runs.arguments(__doc__)
rows = []
print(f"{'request':<58}{'memory':>22}{'':>8}{'time':>20}")
for width, height, frames, steps, more, limit in REQUESTS:
    extra = ["--width", str(width), "--height", str(height), "--frames", str(frames), "--sigmas", runs.sigmas(steps), *more]
    bytes_limit = capped.parse_size(limit) if limit else None
    plan = runs.plan(args, extra, bytes_limit)
    run = runs.generate(args, extra, bytes_limit)
    name = f"{width}x{height}x{frames}, {steps} steps, {' '.join(more)}{f' in {limit}' if limit else ''}"
    if not run.report:
        print(f"{name:<58} plan said {'fits' if plan['fits'] else 'does not fit'}: exit {run.result.code}, oom kills "
              f"{run.result.oom_kills}")
        rows.append({"request": name, "fits": plan["fits"], "code": run.result.code,
                     "oom_kills": run.result.oom_kills, "errors": run.result.errors[-500:]})
        continue
    planned, measured = plan["peak_anonymous"], run.peak_anonymous()
    rows.append({"request": name, "fits": plan["fits"], "code": run.result.code, "planned": planned, "measured": measured,
                 "planned_seconds": plan["seconds"], "seconds": run.seconds(), "oom_kills": run.result.oom_kills,
                 "phases": [{"name": p["name"], "planned": p["planned"]["peak_anonymous"], "measured": p["peak_anonymous"],
                             "seconds": p["seconds"],
                             "planned_seconds": next(q for q in plan["phases"] if q["name"] == p["name"])["seconds"]}
                            for p in run.report["phases"]]})
    print(f"{name:<58}{planned / 1e9:9.2f} {measured / 1e9:9.2f} GB{measured / planned - 1:+8.1%}{plan['seconds']:9.1f} "
          f"{run.seconds():8.1f} s {run.seconds() / plan['seconds'] - 1:+8.1%}", flush=True)
    for p in rows[-1]["phases"]:
        print(f"    {p['name']:<54}{p['planned'] / 1e9:9.2f} {p['measured'] / 1e9:9.2f} GB{p['measured'] / p['planned'] - 1:+8.1%}"
              f"{p['planned_seconds']:9.1f} {p['seconds']:8.1f} s {p['seconds'] / max(p['planned_seconds'], 1e-9) - 1:+8.1%}")
runs.keep(args, "plan_accuracy", rows)
