"""A whole step, a whole decode and the sound: this program beside diffusers, in one run.

    python bench/step/run.py --bin build/release/bin --results bench/step/results.json
    python bench/step/tables.py bench/step/results.json docs/performance.md

Makes a checkpoint of the published widths with --blocks transformer blocks (sluice-synth; fp8 and nf4 by sluice
quantize; removed at the end) and measures every arm in fresh processes, in shuffled order within a round, so
that what else the machine does falls on all alike.  An arm's peak anonymous memory is the largest RssAnon of
its process, looked at every 20 ms.  Needs the packages of the reference (torch, diffusers 0.42, safetensors)."""

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

HERE = Path(__file__).resolve().parent


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=Path, default=Path("build/release/bin"), help="where bench_step is")
    parser.add_argument("--dir", type=Path, help="where the checkpoint is made and removed again")
    parser.add_argument("--blocks", type=int, default=2)
    parser.add_argument("--grid", type=int, nargs=3, default=[4, 16, 16], help="latent frames, height, width")
    parser.add_argument("--audio-tokens", type=int, default=26)
    parser.add_argument("--text-tokens", type=int, default=1024)
    parser.add_argument("--size", type=int, nargs=3, default=[512, 320, 49], help="of the decode: width, height, frames")
    parser.add_argument("--sound-latents", type=int, default=125, help="25 a second")
    parser.add_argument("--rounds", type=int, default=5, help="fresh processes an arm")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--seed", type=int, default=0, help="of inputs and order")
    parser.add_argument("--work", default="step,video,sound", help="only these kinds of work")
    parser.add_argument("--decode-dtypes", default="bf16,f32", help="of the decode")
    parser.add_argument("--results", type=Path, default=Path("results.json"))
    return parser.parse_args()


def make_inputs(arguments, path):
    import torch
    from safetensors.torch import save_file

    generator = torch.Generator().manual_seed(arguments.seed)

    def normal(*shape):
        return torch.randn(shape, generator=generator)

    frames, height, width = arguments.grid
    save_file(
        {
            "latents": normal(1, frames * height * width, 128),
            "audio_latents": normal(1, arguments.audio_tokens, 128),
            "text": normal(1, arguments.text_tokens, 4096),
            "audio_text": normal(1, arguments.text_tokens, 2048),
            "timestep": torch.tensor([700.0]),
        },
        str(path),
    )


def make_models(arguments, folder):
    """folder/bf16, the whole model, and its transformer in fp8 and nf4."""
    quiet = dict(check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    subprocess.run([arguments.bin / "sluice-synth", "-o", folder / "bf16", "--blocks", str(arguments.blocks), "--layout",
                    "diffusers", "--components", "transformer", "--components", "vae", "--components", "audio_vae",
                    "--components", "vocoder"], **quiet)
    for format_ in ("fp8", "nf4"):
        subprocess.run([arguments.bin / "sluice", "quantize", folder / "bf16", "-o", folder / format_, "--format", format_,
                        "--components", "transformer"], **quiet)


class Arm:
    def __init__(self, name, command):
        self.name, self.command = name, [str(word) for word in command]
        self.results = {"seconds": [], "cpu_seconds": [], "peak": 0, "kinds": []}

    def run(self):
        process = subprocess.Popen(self.command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        done = threading.Event()

        def watch():
            while not done.wait(0.02):
                self.results["peak"] = max(self.results["peak"], anonymous_bytes(process.pid))

        watcher = threading.Thread(target=watch)
        watcher.start()
        output, errors = process.communicate()
        done.set()
        watcher.join()
        if process.returncode != 0:
            sys.exit(f"{' '.join(self.command)}\n{errors}")
        parts = [json.loads(line) for line in output.strip().splitlines()]  # several: parts of one work
        numbers = parts[-1]
        if not isinstance(numbers["seconds"], list):
            numbers["seconds"] = [sum(part["seconds"] for part in parts)]
        for key in ("seconds", "cpu_seconds"):
            self.results[key] += numbers.get(key, [])
        for key in ("kinds", "minor_faults"):
            if key in numbers:
                self.results[key] = numbers[key]
        print(f"{self.name}: {numbers['seconds']} s, load {os.getloadavg()[0]:.1f}", file=sys.stderr)


def anonymous_bytes(pid):
    try:
        for line in open(f"/proc/{pid}/status"):
            if line.startswith("RssAnon:"):
                return int(line.split()[1]) * 1024
    except (FileNotFoundError, ProcessLookupError):
        pass
    return 0


def arms_of(arguments, folder):
    inputs, model = folder / "inputs.safetensors", folder / "bf16"
    threads = ["--threads", arguments.threads]
    reference = [sys.executable, HERE / "reference.py"]
    step = ["--inputs", inputs, "--grid", *arguments.grid, *threads, "--steps", 1]
    width, height, frames = arguments.size
    arms = {"step": [Arm(f"matmul-{d}", [*reference, "matmul", model, "--dtype", d, "--steps", 5, *threads]) for d in ("bf16", "f32")]}
    for dtype in ("bf16", "f32"):
        arms["step"] += [Arm(f"sluice-{dtype}", [arguments.bin / "bench_step", model / "transformer", "--dtype", dtype, "--profile",
                                                 "--output", folder / f"sluice-{dtype}.safetensors", "--warmup", 2, *step]),
                         Arm(f"diffusers-{dtype}", [*reference, "step", model, "--dtype", dtype, "--profile",
                                                    "--output", folder / f"diffusers-{dtype}.safetensors", *step])]
    arms["step"] += [Arm(f"sluice-{f}", [arguments.bin / "bench_step", folder / f / "transformer", "--profile", "--warmup", 2, *step])
                     for f in ("fp8", "nf4")]
    arms["step"] += [Arm(f"sluice-lora32-{d}", [arguments.bin / "bench_step", model / "transformer", "--dtype", d, "--lora-rank", 32,
                                                "--warmup", 2, *step]) for d in ("bf16", "f32")]
    arms["video"] = []
    for dtype in arguments.decode_dtypes.split(","):
        arms["video"] += [Arm(f"sluice-{dtype}", [arguments.bin / "bench_decode", model / "vae", "--dtype", dtype, "--width", width,
                                                  "--height", height, "--frames", frames, "--decode", "stream", "--rounds", 2, *threads]),
                          Arm(f"diffusers-{dtype}", [*reference, "video", model, "--dtype", dtype, "--size", *arguments.size, *threads])]
    arms["sound"] = [Arm("sluice-f32", [arguments.bin / "bench_sound", model, "--latents", arguments.sound_latents]),
                     Arm("diffusers-f32", [*reference, "sound", model, "--dtype", "f32", "--sound-latents",
                                           arguments.sound_latents, *threads])]
    return {work: list_ for work, list_ in arms.items() if work in arguments.work.split(",")}


def count_flops(arguments, folder):
    command = [sys.executable, HERE / "reference.py", "flops", folder / "bf16", "--grid", *arguments.grid, "--size", *arguments.size,
               "--sound-latents", arguments.sound_latents, "--text-tokens", arguments.text_tokens, "--audio-tokens", arguments.audio_tokens]
    output = subprocess.run([str(word) for word in command], check=True, capture_output=True, text=True).stdout
    return json.loads(output.strip().splitlines()[-1])


def compare(path, reference):
    """Largest difference of any value, relative to the largest value of the reference."""
    from safetensors.torch import load_file

    ours, theirs = load_file(str(path)), load_file(str(reference))
    return {k: ((ours[k] - theirs[k]).abs().max() / theirs[k].abs().max()).item() for k in theirs}


def processor():
    for line in open("/proc/cpuinfo"):
        if line.startswith("model name"):
            return line.split(":")[1].strip()
    return "unknown"


def main():
    arguments = parse_arguments()
    folder = Path(tempfile.mkdtemp(prefix="sluice-bench-", dir=arguments.dir))
    try:
        make_models(arguments, folder)
        make_inputs(arguments, folder / "inputs.safetensors")
        arms = arms_of(arguments, folder)
        order = random.Random(arguments.seed)
        for _ in range(arguments.rounds):
            for list_ in arms.values():
                for arm in order.sample(list_, len(list_)):
                    arm.run()
        results = {"machine": f"{arguments.threads} threads on {processor()}", "rounds": arguments.rounds,
                   "grid": arguments.grid, "size": arguments.size, "sound_latents": arguments.sound_latents,
                   "audio_tokens": arguments.audio_tokens, "text_tokens": arguments.text_tokens,
                   "flops": count_flops(arguments, folder),
                   "arms": {work: {arm.name: arm.results for arm in list_} for work, list_ in arms.items()}}
        if "step" in arms:
            truth = folder / "diffusers-f32.safetensors"
            results["errors"] = {f"{who}-{dtype}": max(compare(folder / f"{who}-{dtype}.safetensors", truth).values())
                                 for who in ("sluice", "diffusers") for dtype in ("bf16", "f32")}
        arguments.results.write_text(json.dumps(results, indent=1) + "\n")
    finally:
        shutil.rmtree(folder)


main()
