"""A checkpoint larger than the limit, from prompt to mp4, with the page cache counted.

    python3 bench/memory/big_model.py --model ltx-nf4/ --text-encoder gemma-nf4/ --limit 10G
"""
import capped
import runs

args = runs.arguments(__doc__, limit="10G", width=384, height=256, frames=17, steps=2, latents_only=0)
extra = ["--width", str(args.width), "--height", str(args.height), "--frames", str(args.frames), "--sigmas",
         runs.sigmas(args.steps)]
limit = capped.parse_size(args.limit)
run = runs.generate(args, extra, limit, video=not args.latents_only)
if not run.report:
    runs.failed(run, args.limit)
    raise SystemExit(1)
row = {"limit": limit, "request": f"{args.width}x{args.height}x{args.frames}, {args.steps} steps",
       "model": args.model.rstrip("/").split("/")[-1], "oom_kills": run.result.oom_kills,
       "seconds": run.result.seconds, "peak_anonymous": run.result.peak_anonymous,
       "peak_counted": run.result.peak_group, "phases": []}
print(f"exit {run.result.code}, {run.result.seconds:.0f} s, anonymous {run.result.peak_anonymous / 1e9:.2f} GB, counted "
      f"{run.result.peak_group / 1e9:.2f} GB of {limit / 1e9:.2f}, oom kills {run.result.oom_kills}")
for phase in run.report["phases"]:
    planned = phase["planned"]
    row["phases"].append({"name": phase["name"], "seconds": phase["seconds"], "bytes_read": phase["bytes_read"],
                          "peak_anonymous": phase["peak_anonymous"], "planned": planned["peak_anonymous"],
                          "weights": planned["weights"], "parts": planned["parts"]})
    print(f"{phase['name']:<14}{phase['seconds']:8.1f} s  read {phase['bytes_read'] / 1e9:6.2f} GB (planned "
          f"{planned['bytes_read'] / 1e9:.2f})  anonymous {phase['peak_anonymous'] / 1e9:5.2f} GB (planned "
          f"{planned['peak_anonymous'] / 1e9:.2f}: {phase['peak_anonymous'] / planned['peak_anonymous'] - 1:+.1%})  "
          + ", ".join(f"{w['component']}: {w['stage_from']} {w['resident_blocks']}/{w['blocks']}"
                      for w in planned["weights"]))
runs.keep(args, f"big_model_{row['model']}_{args.limit}_{args.width}x{args.height}x{args.frames}", row)
