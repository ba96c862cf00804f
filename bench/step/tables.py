"""Writes the measured tables of docs/performance.md from what run.py and the kernels' benches left.

    python bench/step/tables.py bench/step/results.json docs/performance.md
"""
import json
import pathlib
import statistics
import sys

results = json.loads(pathlib.Path(sys.argv[1]).read_text())
document = pathlib.Path(sys.argv[2])


def median(work, arm):
    return statistics.median(results["arms"][work][arm]["seconds"])


def spread(seconds):
    return f"{statistics.median(seconds):.2f} ({min(seconds):.2f} – {max(seconds):.2f})"


def matmul_rate(dtype):
    """GFLOP/s of LibTorch's 1024 x 4096 x 4096 product in this run."""
    return 2 * 1024 * 4096 * 4096 / median("step", f"matmul-{dtype}") / 1e9


def arms_table(work, flops, reference):
    lines = ["| arm | seconds: median (spread) | of diffusers' speed | GFLOP/s | peak anonymous, GiB |", "|---|---:|---:|---:|---:|"]
    for name, arm in results["arms"][work].items():
        if name.startswith("matmul"):
            continue
        base = reference(name)
        ratio = f"{median(work, base) / statistics.median(arm['seconds']):.2f} x" if base in results["arms"][work] else ""
        lines.append(f"| {name} | {spread(arm['seconds'])} | {ratio} | {flops / statistics.median(arm['seconds']) / 1e9:.0f} | "
                     f"{arm['peak'] / 2**30:.2f} |")
    return lines


def step():
    flops, blocks = results["flops"]["step"], results["flops"]["blocks"]
    frames, height, width = results["grid"]
    lines = [f"### A step of {blocks} blocks", "",
             f"{frames * height * width} video tokens, {results['audio_tokens']} audio tokens, {results['text_tokens']} text tokens; "
             f"{flops / 1e9:.0f} GFLOP.", ""]
    lines += arms_table("step", flops, lambda name: "diffusers-f32" if name.endswith("-f32") else "diffusers-bf16")
    lines.append("")
    for dtype in ("bf16", "f32"):
        ideal = flops / matmul_rate(dtype) / 1e9
        lines.append(f"{dtype}: LibTorch's own product makes {matmul_rate(dtype):.0f} GFLOP/s in this run, so the ideal is {ideal:.2f} s: "
                     f"sluice takes {median('step', f'sluice-{dtype}') / ideal:.2f} x that, diffusers "
                     f"{median('step', f'diffusers-{dtype}') / ideal:.2f} x.  ")
    base = median("step", "sluice-bf16")
    lines.append(f"Quantized weights, of bf16's time: fp8 {median('step', 'sluice-fp8') / base:.3f} x, "
                 f"nf4 {median('step', 'sluice-nf4') / base:.3f} x.  ")
    beside = {d: median("step", f"sluice-lora32-{d}") / median("step", f"sluice-{d}") for d in ("bf16", "f32")}
    lines.append("Adapters of rank 32 beside every matrix, of the time without: " +
                 ", ".join(f"{dtype} {ratio:.3f} x" for dtype, ratio in beside.items()) + ".  ")
    errors = results["errors"]
    lines.append("Largest difference from diffusers in f32, of the largest value: " +
                 ", ".join(f"{name} {error:.1e}" for name, error in errors.items()) + ".  ")
    lines.append(f"Page faults in sluice's bf16 step after two others: {results['arms']['step']['sluice-bf16']['minor_faults'][-1]}.")
    return lines + [""] + kinds()


def kinds():
    lines = ["Where the time goes, by kind of work, in shares of the step:", "", "| arm | linear | attention | elementwise | other |",
             "|---|---:|---:|---:|---:|"]
    for name, arm in results["arms"]["step"].items():
        if not arm["kinds"]:
            continue
        parts = arm["kinds"]
        total = sum(parts.values())
        cells = [f"{parts[kind] / total:.1%}" if kind in parts else "" for kind in ("linear", "attention", "elementwise", "other")]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return lines


def video():
    width, height, frames = results["size"]
    flops = results["flops"]["video"]
    peers = [arm for arm in results["arms"]["video"] if arm.startswith("diffusers")]
    best = min(peers, key=lambda arm: median("video", arm))
    runs = len(results["arms"]["video"][best]["seconds"])
    lines = [f"### Video decode, {width}x{height}, {frames} frames", "", f"{flops / 1e12:.1f} TFLOP; compared with {best}; {runs} runs of each.", ""]
    return lines + arms_table("video", flops, lambda name: best)


def sound():
    flops = results["flops"]["sound"]
    lines = [f"### Sound, {results['sound_latents'] / 25:.0f} s", "", f"{flops / 1e12:.2f} TFLOP, audio autoencoder and vocoder.", ""]
    return lines + arms_table("sound", flops, lambda name: "diffusers-f32")


tables = [f"{results['machine']}; every figure from one run, arms interleaved, {results['rounds']} fresh processes an arm.", ""]
for work, section in (("step", step), ("video", video), ("sound", sound)):
    if work in results["arms"]:
        tables += section() + [""]
begin, end = "<!-- tables -->\n", "<!-- /tables -->"
head, rest = document.read_text().split(begin)
document.write_text(head + begin + "\n".join(tables) + end + rest.split(end)[1])
