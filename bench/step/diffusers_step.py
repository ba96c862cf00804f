"""The other arm of run.py: the same steps with diffusers' LTX2VideoTransformer3DModel.  Same arguments and
output as bench_step."""

import argparse
import json
import time

import torch
from diffusers import LTX2VideoTransformer3DModel
from safetensors.torch import load_file, save_file

DTYPES = {"f32": torch.float32, "bf16": torch.bfloat16}


def parse_arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("--inputs", required=True)
    parser.add_argument("--grid", type=int, nargs=3, required=True)
    parser.add_argument("--fps", type=float, default=24)
    parser.add_argument("--dtype", choices=DTYPES, default="bf16")
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--warmup", type=int, default=1)
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--output")
    return parser.parse_args()


@torch.inference_mode()
def main():
    arguments = parse_arguments()
    if arguments.threads:
        torch.set_num_threads(arguments.threads)
    dtype = DTYPES[arguments.dtype]
    model = LTX2VideoTransformer3DModel.from_pretrained(arguments.model, torch_dtype=dtype)
    inputs = load_file(arguments.inputs)
    frames, height, width = arguments.grid
    call = dict(
        hidden_states=inputs["latents"].to(dtype),
        audio_hidden_states=inputs["audio_latents"].to(dtype),
        encoder_hidden_states=inputs["text"].to(dtype),
        audio_encoder_hidden_states=inputs["audio_text"].to(dtype),
        timestep=inputs["timestep"],
        sigma=inputs["timestep"],
        num_frames=frames,
        height=height,
        width=width,
        fps=arguments.fps,
        audio_num_frames=inputs["audio_latents"].shape[1],
        use_cross_timestep=True,
        return_dict=False,
    )
    seconds, cpu_seconds = [], []
    for step in range(-arguments.warmup, arguments.steps):
        begin, cpu_begin = time.monotonic(), time.process_time()
        video, audio = model(**call)
        if step >= 0:
            seconds.append(time.monotonic() - begin)
            cpu_seconds.append(time.process_time() - cpu_begin)
    if arguments.output:
        save_file({"video": video.float().contiguous(), "audio": audio.float().contiguous()}, arguments.output)
    checksum = video.double().abs().mean().item()
    print(json.dumps({"seconds": seconds, "cpu_seconds": cpu_seconds, "mean_abs_velocity": checksum}))


main()
