"""The demo model's scores through sluice and through diffusers, and the distance of their latents.

    VENV/bin/python bench/demo_scores/run.py --sluice build/release/bin/sluice

VENV holds torch, diffusers and transformers (README.md).  Exit status 1 if a score is more than 5 points from
diffusers', or final latents from the same noise in f32 differ by more than 1e-3.
"""

import argparse
import json
import pathlib
import random
import subprocess
import sys
import tempfile
import time
import wave

import numpy as np
import torch
from PIL import Image
from safetensors.torch import load_file, save_file

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "demo/training"))

import evaluate
import metrics
import to_diffusers
import world

WORDS = ("colour", "direction", "background", "tone", "shape")
SCORES = (*WORDS, "all but shape", "partial above 8 kHz")
POINTS = 5.0
LATENT_LIMIT = 1e-3


def score(scene, video, audio):
    """What is right about a clip: video [F, H, W, 3] in 0..1, audio [channels, samples]."""
    got = {**metrics.judge_video(video), **metrics.judge_audio(audio)}
    right = {word: got[word] == getattr(scene, word) for word in WORDS}
    right["all but shape"] = all(right[word] for word in WORDS if word != "shape")
    right["partial above 8 kHz"] = bool(got["partial"])
    return right


class Sluice:
    """One arm: the program with a compute dtype."""

    def __init__(self, program, dtype, model=ROOT / "demo/model/ltx-2.3-demo.safetensors", name=None):
        self.program, self.dtype, self.model = program, dtype, model
        self.name = f"sluice {name or dtype}"

    @classmethod
    def quantized(cls, program, form, folder):
        """The same model, quantized here; computed with in bf16."""
        source = ROOT / "demo/model/ltx-2.3-demo.safetensors"
        subprocess.run([program, "quantize", source, "-o", folder / form, "--format", form, "--quiet"], check=True)
        return cls(program, "bf16", folder / form, form)

    def generate(self, prompt, *flags):
        command = [
            self.program, "generate", "--quiet", "--overwrite", "--variant", "distilled",
            "--model", self.model, "--text-encoder", ROOT / "demo/model/text_encoder",
            "--width", world.SIZE, "--height", world.SIZE, "--frames", world.FRAMES, "--fps", world.FPS,
            "--prompt", prompt, "--compute-dtype", self.dtype, *flags,
        ]  # fmt: skip
        subprocess.run([str(word) for word in command], check=True)

    def clip(self, prompt, seed, folder):
        frames, sound = folder / "frames", folder / "sound.wav"
        self.generate(prompt, "--seed", seed, "--frames-dir", frames, "--wav", sound)
        files = sorted(frames.glob("frame_*.png"))
        video = np.stack([np.asarray(Image.open(file)) for file in files])
        with wave.open(str(sound)) as wav:
            assert wav.getsampwidth() == 2 and wav.getframerate() == world.RATE_OUT
            samples = np.frombuffer(wav.readframes(wav.getnframes()), "<i2").reshape(-1, wav.getnchannels())
        return torch.from_numpy(video).float() / 255, torch.from_numpy(samples.T / 32768).float()

    def latents(self, prompt, noise, folder):
        injected, trace = folder / "noise.safetensors", folder / "trace.safetensors"
        save_file({"video_noise": noise[0].contiguous(), "audio_noise": noise[1].contiguous()}, injected)
        self.generate(prompt, "--inject", injected, "--trace", trace)
        tensors = load_file(trace)
        return tensors["final.video"], tensors["final.audio"]


class Diffusers:
    """The other arm, in f32; also says which noise it drew."""

    name = "diffusers f32"

    def __init__(self):
        self.pipe = to_diffusers.load_pipeline(str(ROOT / "demo/model"))
        self.pipe.set_progress_bar_config(disable=True)

    def clip(self, prompt, seed, folder):
        return evaluate.make(self.pipe, prompt, 1024, seed)

    def latents(self, prompt, seed):
        inputs = []

        def keep(module, args, kwargs):
            inputs.append((kwargs["hidden_states"].clone(), kwargs["audio_hidden_states"].clone()))

        hook = self.pipe.transformer.register_forward_pre_hook(keep, with_kwargs=True)
        generator = torch.Generator().manual_seed(seed)
        final = evaluate.call(self.pipe, prompt, 1024, "latent", generator=generator)
        hook.remove()
        return inputs[0], final


def distance(ours, reference):
    return float((ours.float() - reference.float()).norm() / reference.float().norm())


def compare_scores(arms, scenes, seed, folder):
    """Percent right, by arm and score; and seconds per clip."""
    right = {arm.name: dict.fromkeys(SCORES, 0) for arm in arms}
    seconds = dict.fromkeys(right, 0.0)
    for i, scene in enumerate(scenes):
        prompt = world.caption(scene)
        for arm in arms:
            begin = time.monotonic()
            video, audio = arm.clip(prompt, seed + i, folder)
            seconds[arm.name] += time.monotonic() - begin
            for key, ok in score(scene, video, audio).items():
                right[arm.name][key] += ok
        print(f"{i + 1}/{len(scenes)} {prompt}", file=sys.stderr, flush=True)
    percent = {arm: {key: 100 * n / len(scenes) for key, n in row.items()} for arm, row in right.items()}
    return percent, {arm: total / len(scenes) for arm, total in seconds.items()}


def compare_latents(arms, diffusers, scenes, seed, folder):
    """Rows (case, arm, video, audio): distance of final latents from the same noise."""
    cases = []
    stored = load_file(ROOT / "demo/reference/reference.safetensors")
    told = json.loads((ROOT / "demo/reference/reference.json").read_text())
    noise = (stored["noise.video"], stored["noise.audio"])
    cases.append(("demo/reference", told["prompt"], noise, (stored["latents.video"], stored["latents.audio"])))
    for i, scene in enumerate(scenes):
        prompt = world.caption(scene)
        cases.append((f"seed {seed + i}", prompt, *diffusers.latents(prompt, seed + i)))
    rows = []
    for name, prompt, noise, final in cases:
        for arm in arms:
            ours = arm.latents(prompt, noise, folder)
            rows.append((f"{name}: {prompt}", arm.name, distance(ours[0], final[0]), distance(ours[1], final[1])))
    return rows


def print_scores(percent, count):
    arms = list(percent)
    print(f"| right of {count}, % | " + " | ".join(arms) + " |\n|---|" + "---:|" * len(arms))
    for key in SCORES:
        print(f"| {key} | " + " | ".join(f"{percent[arm][key]:.1f}" for arm in arms) + " |")


def quantized_scores(given):
    scenes = random.Random(given.seed).sample(world.all_scenes(), given.count)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        arms = [Sluice(given.sluice, "bf16")] + [Sluice.quantized(given.sluice, form, folder) for form in ("fp8", "nf4")]
        percent, _ = compare_scores(arms, scenes, given.seed, folder)
    print_scores(percent, given.count)


def main():
    flags = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    flags.add_argument("--sluice", required=True, help="the program")
    flags.add_argument("--count", type=int, default=30, help="prompts to score")
    flags.add_argument("--latents", type=int, default=4, help="prompts to compare latents of")
    flags.add_argument("--seed", type=int, default=100)
    flags.add_argument("--quantized", action="store_true", help="bf16, fp8 and NF4 beside each other, without diffusers")
    given = flags.parse_args()
    torch.set_num_threads(2)
    if given.quantized:
        return quantized_scores(given)
    diffusers, f32, bf16 = Diffusers(), Sluice(given.sluice, "f32"), Sluice(given.sluice, "bf16")
    scenes = random.Random(given.seed).sample(world.all_scenes(), given.count)  # as evaluate.py draws them
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        percent, seconds = compare_scores([diffusers, f32, bf16], scenes, given.seed, folder)
        latents = compare_latents([f32, bf16], diffusers, scenes[: given.latents], given.seed, folder)

    print_scores(percent, given.count)
    arms = list(percent)
    print("| seconds a clip | " + " | ".join(f"{seconds[arm]:.1f}" for arm in arms) + " |")
    print("\n| final latents from the same noise | arm | video | sound |\n|---|---|---:|---:|")
    for case, arm, video, audio in latents:
        print(f"| {case} | {arm} | {video:.1e} | {audio:.1e} |")

    far = [f"{arm}: {key}" for arm in arms for key in SCORES if abs(percent[arm][key] - percent[arms[0]][key]) > POINTS]
    far += [f"{arm}: {case}" for case, arm, *off in latents if arm == f32.name and max(off) > LATENT_LIMIT]
    if far:
        sys.exit("too far from diffusers: " + ", ".join(far))


if __name__ == "__main__":
    main()
