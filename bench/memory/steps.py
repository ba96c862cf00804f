"""Many steps staged from disk: whether memory or time grows.

    python3 bench/memory/steps.py --model transformer.safetensors --steps 40
"""
import statistics

import runs

args = runs.arguments(__doc__, width=256, height=256, frames=9, steps=40)
run = runs.generate(args, ["--width", str(args.width), "--height", str(args.height), "--frames", str(args.frames), "--sigmas",
                           runs.sigmas(args.steps), "--stage-from", "disk"], video=False)
if not run.report:
    runs.failed(run, "steps")
    raise SystemExit(1)
seconds, memory = run.report["steps"]["seconds"], run.report["steps"]["anonymous"]
slope = statistics.linear_regression(range(len(memory) - 1), memory[1:]).slope
print(f"{args.steps} steps: anonymous memory grows by {slope / 1e6:+.3f} MB a step ({memory[1] / 1e6:.1f} MB after the second, "
      f"{memory[-1] / 1e6:.1f} MB after the last); step {args.steps} takes {seconds[-1]:.2f} s, step 3 {seconds[2]:.2f} s: "
      f"{seconds[-1] / seconds[2]:.3f} x; median of the last five beside steps 3 to 7: "
      f"{statistics.median(seconds[-5:]) / statistics.median(seconds[2:7]):.3f} x")
runs.keep(args, "steps", {"seconds": seconds, "anonymous": memory, "slope": slope})
