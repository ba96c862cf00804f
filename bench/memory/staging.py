"""Weights from disk beside weights in memory, interleaved: the ratio of a step, and whether latents are the same.

    python3 bench/memory/staging.py --model transformer.safetensors --width 512 --height 512 --rounds 5
"""
import itertools
import statistics

import runs

args = runs.arguments(__doc__, width=512, height=512, frames=25, steps=4, rounds=5, every=0)
size = ["--width", str(args.width), "--height", str(args.height), "--frames", str(args.frames), "--sigmas",
        runs.sigmas(args.steps)]
arms = {"memory": ["--stage-from", "memory"], "disk": ["--stage-from", "disk", "--read-backend", "direct"]}
times = {name: [] for name in arms}
latents = set()
steps = {name: [] for name in arms}
for round_ in range(args.rounds):
    order = list(arms) if round_ % 2 else list(arms)[::-1]
    for name in order:
        run = runs.generate(args, size + arms[name], video=False)
        if not run.report:
            runs.failed(run, name)
            raise SystemExit(1)
        seconds = run.report["steps"]["seconds"]
        times[name].append(statistics.median(seconds[1:]))  # the first step of both reads everything
        steps[name].append(seconds)
        latents.add(run.latents)
ratios = [disk / memory for disk, memory in zip(times["disk"], times["memory"])]
print(f"{args.width}x{args.height}x{args.frames}: step from memory {statistics.median(times['memory']):.2f} s, from disk "
      f"{statistics.median(times['disk']):.2f} s; ratio {statistics.median(ratios):.3f} ({min(ratios):.3f} - {max(ratios):.3f})")
variants = []
if args.every:
    for stage, backend, blocks, scratch in itertools.chain(
            itertools.product(["disk"], ["direct", "pread", "uring", "mmap", "auto"], ["0", "1"], ["2MiB", "64MiB"]),
            itertools.product(["auto", "memory", "device"], ["auto", "pread"], [None], ["64MiB"])):
        extra = ["--stage-from", stage, "--read-backend", backend, "--attention-budget", scratch]
        if blocks:
            extra += ["--resident-blocks", blocks]
        run = runs.generate(args, size + extra, video=False)
        variants.append(" ".join(extra))
        if run.latents is None:
            runs.failed(run, variants[-1])
        latents.add(run.latents)
print(f"latents of all {2 * args.rounds + len(variants)} runs are {'the same' if len(latents) == 1 else 'DIFFERENT'}")
runs.keep(args, "staging", {"request": f"{args.width}x{args.height}x{args.frames}", "times": times, "ratios": ratios,
                            "same_latents": len(latents) == 1, "runs": 2 * args.rounds + len(variants)})
