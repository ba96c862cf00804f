"""One transformer step, this program against diffusers, on synthetic blocks of the published width.

    python bench/step/run.py --bin build/release/bin

Makes a transformer of --blocks blocks with sluice-synth, and measures each arm in fresh processes, in shuffled
order, so that what else the machine does falls on all alike.  An arm's peak anonymous memory is the largest
RssAnon of its process, from start to end, looked at every 20 ms.  Processor seconds (of all threads) are the
steadier measure on a machine that does something else besides.  Needs the packages of the reference (torch,
diffusers 0.42, safetensors)."""

import argparse
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

HERE = Path(__file__).resolve().parent
ARMS = [(who, dtype) for dtype in ("f32", "bf16") for who in ("sluice", "diffusers")]


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=Path, default=Path("build/release/bin"), help="where bench_step is")
    parser.add_argument("--dir", type=Path, help="where the checkpoint is made and removed again")
    parser.add_argument("--blocks", type=int, default=4)
    parser.add_argument("--grid", type=int, nargs=3, default=[4, 16, 16], help="latent frames, height, width")
    parser.add_argument("--audio-tokens", type=int, default=26)
    parser.add_argument("--text-tokens", type=int, default=1024)
    parser.add_argument("--rounds", type=int, default=5, help="fresh processes an arm")
    parser.add_argument("--steps", type=int, default=1, help="timed steps a process, after one warm-up step")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--seed", type=int, default=0, help="of inputs and order")
    parser.add_argument("--arms", default="", help="only these, e.g. sluice-f32,sluice-bf16")
    parser.add_argument("--json", type=Path, help="write all numbers there")
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


def anonymous_bytes(pid):
    try:
        for line in open(f"/proc/{pid}/status"):
            if line.startswith("RssAnon:"):
                return int(line.split()[1]) * 1024
    except (FileNotFoundError, ProcessLookupError):
        pass
    return 0


def run_arm(command):
    """Its JSON, and the peak of its anonymous memory."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    peak, done = [0], threading.Event()

    def watch():
        while not done.wait(0.02):
            peak[0] = max(peak[0], anonymous_bytes(process.pid))

    watcher = threading.Thread(target=watch)
    watcher.start()
    output, errors = process.communicate()
    done.set()
    watcher.join()
    if process.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\n{errors}")
    return json.loads(output.splitlines()[-1]), peak[0]


def compare(path, reference):
    """Largest difference of any value, relative to the largest value of the reference."""
    from safetensors.torch import load_file

    ours, theirs = load_file(str(path)), load_file(str(reference))
    return {k: ((ours[k] - theirs[k]).abs().max() / theirs[k].abs().max()).item() for k in theirs}


def measure(arguments, folder):
    model, inputs = folder / "transformer", folder / "inputs.safetensors"
    make_inputs(arguments, inputs)
    arms = [arm for arm in ARMS if not arguments.arms or "-".join(arm) in arguments.arms.split(",")]
    results = {arm: {"seconds": [], "cpu_seconds": [], "peak": 0} for arm in arms}
    order = random.Random(arguments.seed)
    for _ in range(arguments.rounds):
        for who, dtype in order.sample(arms, len(arms)):
            program = [arguments.bin / "bench_step"] if who == "sluice" else [sys.executable, HERE / "diffusers_step.py"]
            options = dict(inputs=inputs, dtype=dtype, steps=arguments.steps, threads=arguments.threads,
                           output=folder / f"{who}-{dtype}.safetensors")
            command = program + [model, "--grid", *map(str, arguments.grid)]
            for key, value in options.items():
                command += [f"--{key}", str(value)]
            numbers, peak = run_arm(command)
            result = results[who, dtype]
            for key in ("seconds", "cpu_seconds"):
                result[key] += numbers[key]
            result["peak"] = max(result["peak"], peak)
            print(f"{who} {dtype}: {numbers['seconds']} s, {peak / 2**30:.2f} GiB, load {os.getloadavg()[0]:.1f}",
                  file=sys.stderr)
    return results


def report(results, folder):
    print("| arm | median s | min | max | median cpu s | peak anonymous GiB |\n|---|---|---|---|---|---|")
    for (who, dtype), result in results.items():
        s, cpu = result["seconds"], statistics.median(result["cpu_seconds"])
        print(f"| {who} {dtype} | {statistics.median(s):.2f} | {min(s):.2f} | {max(s):.2f} | {cpu:.2f} "
              f"| {result['peak'] / 2**30:.2f} |")
    for dtype in ("f32", "bf16"):
        ours, theirs = results.get(("sluice", dtype)), results.get(("diffusers", dtype))
        if not ours or not theirs:
            continue
        speed, cpu = (statistics.median(theirs[k]) / statistics.median(ours[k]) for k in ("seconds", "cpu_seconds"))
        difference = compare(folder / f"sluice-{dtype}.safetensors", folder / f"diffusers-{dtype}.safetensors")
        print(f"{dtype}: {speed:.2f} times as fast ({cpu:.2f} by processor time), "
              f"{ours['peak'] / theirs['peak']:.3f} of the memory; largest difference {difference}")
    truth = folder / "diffusers-f32.safetensors"
    if truth.exists():
        for who in ("sluice", "diffusers"):
            if (who, "bf16") in results:
                print(f"{who} bf16 against f32: {compare(folder / f'{who}-bf16.safetensors', truth)}")


def main():
    arguments = parse_arguments()
    folder = Path(tempfile.mkdtemp(prefix="sluice-bench-", dir=arguments.dir))
    try:
        subprocess.run(
            [arguments.bin / "sluice-synth", "-o", folder, "--blocks", str(arguments.blocks), "--components",
             "transformer", "--layout", "diffusers"], check=True)
        results = measure(arguments, folder)
        report(results, folder)
        if arguments.json:
            arguments.json.write_text(json.dumps({"-".join(arm): result for arm, result in results.items()}))
    finally:
        shutil.rmtree(folder)


main()
