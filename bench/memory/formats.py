"""A step with bf16, fp8 and NF4 weights, all mapped, interleaved.

    python3 bench/memory/formats.py --model bf16.safetensors --models fp8/,nf4/ --rounds 5
"""
import copy
import statistics

import runs

args = runs.arguments(__doc__, models="", width=512, height=512, frames=25, steps=3, rounds=5)
size = ["--width", str(args.width), "--height", str(args.height), "--frames", str(args.frames), "--sigmas",
        runs.sigmas(args.steps)]
arms = [args.model, *args.models.split(",")]
times = {arm: [] for arm in arms}
for round_ in range(args.rounds):
    for arm in arms[round_ % len(arms):] + arms[:round_ % len(arms)]:
        with_model = copy.copy(args)
        with_model.model = arm
        run = runs.generate(with_model, size, video=False)
        if not run.report:
            runs.failed(run, arm)
            raise SystemExit(1)
        times[arm].append(statistics.median(run.report["steps"]["seconds"][1:]))
for arm in arms:
    ratios = [own / base for own, base in zip(times[arm], times[args.model])]
    print(f"{arm.rstrip('/').split('/')[-1]}: {statistics.median(times[arm]):.2f} s a step, {statistics.median(ratios):.3f} x "
          f"({min(ratios):.3f} - {max(ratios):.3f}) of {args.model.split('/')[-1]}")
runs.keep(args, "formats", times)
