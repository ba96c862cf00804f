"""The other side of run.py: the same work with diffusers and LibTorch.  One kind of work a call:

    step     the transformer's step            video    the video autoencoder's decode
    sound    audio VAE and vocoder             encode   the video autoencoder's encode
    matmul   the rate of LibTorch's product, for the ideal
    flops    operations of step, video and sound, counted on shapes alone

Prints one JSON line: seconds (and processor seconds) of each timed round, and for `step` how the time divides
by kind of work."""

import argparse
import contextlib
import json
import time

import torch

DTYPES = {"f32": torch.float32, "bf16": torch.bfloat16}
# Names of LibTorch's operators by kind of work; what is in none is elementwise: casts, norms, rope, sums.
KINDS = {"linear": ("aten::addmm", "aten::mm", "aten::bmm", "aten::linear", "mkldnn::"),
         "attention": ("aten::_scaled_dot_product", "aten::scaled_dot_product")}


def parse_arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("work", choices=["step", "video", "sound", "encode", "matmul", "flops"])
    parser.add_argument("model", help="diffusers folder with transformer/, vae/, audio_vae/, vocoder/")
    parser.add_argument("--inputs", help="safetensors of step")
    parser.add_argument("--grid", type=int, nargs=3, default=[4, 16, 16], help="latent frames, height, width")
    parser.add_argument("--fps", type=float, default=24)
    parser.add_argument("--size", type=int, nargs=3, default=[512, 320, 49], help="of video and encode: width, height, frames")
    parser.add_argument("--sound-latents", type=int, default=125, help="25 a second")
    parser.add_argument("--text-tokens", type=int, default=1024)
    parser.add_argument("--audio-tokens", type=int, default=26)
    parser.add_argument("--dtype", choices=DTYPES, default="bf16")
    parser.add_argument("--steps", type=int, default=1, help="timed rounds")
    parser.add_argument("--warmup", type=int, default=1)
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--output")
    return parser.parse_args()


def transformer(arguments, dtype=None):
    from diffusers import LTX2VideoTransformer3DModel

    if dtype is None:
        config = LTX2VideoTransformer3DModel.load_config(f"{arguments.model}/transformer")
        return LTX2VideoTransformer3DModel.from_config(config)
    return LTX2VideoTransformer3DModel.from_pretrained(f"{arguments.model}/transformer", torch_dtype=dtype)


def step_call(arguments, inputs, dtype):
    frames, height, width = arguments.grid
    return dict(
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


def step_inputs(arguments, make):
    tokens = arguments.grid[0] * arguments.grid[1] * arguments.grid[2]
    return {"latents": make(1, tokens, 128), "audio_latents": make(1, arguments.audio_tokens, 128),
            "text": make(1, arguments.text_tokens, 4096), "audio_text": make(1, arguments.text_tokens, 2048)}


def video_latents(arguments, make):
    width, height, frames = arguments.size
    return make(1, 128, (frames - 1) // 8 + 1, height // 32, width // 32)


def sound_models(arguments, dtype, load=True):
    from diffusers import AutoencoderKLLTX2Audio
    from diffusers.pipelines.ltx2 import vocoder

    path = f"{arguments.model}/vocoder"
    network = getattr(vocoder, json.load(open(f"{path}/config.json"))["_class_name"])
    if not load:
        audio_config = AutoencoderKLLTX2Audio.load_config(f"{arguments.model}/audio_vae")
        return AutoencoderKLLTX2Audio.from_config(audio_config), network.from_config(network.load_config(path))
    return (AutoencoderKLLTX2Audio.from_pretrained(f"{arguments.model}/audio_vae", torch_dtype=dtype),
            network.from_pretrained(path, torch_dtype=dtype))


def video_model(arguments, dtype=None):
    from diffusers import AutoencoderKLLTX2Video

    path = f"{arguments.model}/vae"
    if dtype is None:
        return AutoencoderKLLTX2Video.from_config(AutoencoderKLLTX2Video.load_config(path))
    return AutoencoderKLLTX2Video.from_pretrained(path, torch_dtype=dtype)


def work_of(arguments, dtype):
    """A function that does the work once, and gives a tensor."""
    if arguments.work == "step":
        from safetensors.torch import load_file

        model, call = transformer(arguments, dtype), step_call(arguments, load_file(arguments.inputs), dtype)
        return lambda: model(**call)
    if arguments.work == "video":
        model, latents = video_model(arguments, dtype), video_latents(arguments, torch.randn).to(dtype)
        return lambda: model.decode(latents, return_dict=False)
    if arguments.work == "encode":
        width, height, frames = arguments.size
        model, clip = video_model(arguments, dtype), torch.rand(1, 3, frames, height, width).to(dtype)
        return lambda: (model.encode(clip).latent_dist.mean,)
    if arguments.work == "sound":
        autoencoder, network = sound_models(arguments, dtype)
        latents = torch.randn(1, 8, arguments.sound_latents, 16).to(dtype)
        return lambda: (network(autoencoder.decode(latents, return_dict=False)[0]),)
    x, weight = torch.randn(1024, 4096).to(dtype), torch.randn(4096, 4096).to(dtype)
    return lambda: (torch.ops.mkldnn._linear_pointwise(x, weight, None, "none", [], ""),)


def kind_seconds(profile):
    seconds = {"linear": 0.0, "attention": 0.0, "elementwise": 0.0}
    for event in profile.key_averages():
        kind = next((k for k, names in KINDS.items() if event.key.startswith(names)), "elementwise")
        seconds[kind] += event.self_cpu_time_total / 1e6
    return seconds


@torch.inference_mode()
def measure(arguments):
    work = work_of(arguments, DTYPES[arguments.dtype])
    result = {"seconds": [], "cpu_seconds": []}
    for round_ in range(-arguments.warmup, arguments.steps):
        begin, cpu_begin = time.monotonic(), time.process_time()
        output = work()
        if round_ >= 0:
            result["seconds"].append(time.monotonic() - begin)
            result["cpu_seconds"].append(time.process_time() - cpu_begin)
    if arguments.profile:
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
            work()
        result["kinds"] = kind_seconds(profile)
    if arguments.output:
        from safetensors.torch import save_file

        named = {name: tensor.float().contiguous() for name, tensor in zip(("video", "audio"), output)}
        save_file(named, arguments.output)
    return result


@torch.inference_mode()
def count_flops(arguments):
    from torch.utils.flop_counter import FlopCounterMode

    def counted(call):
        with FlopCounterMode(display=False) as counter:
            call()
        return counter.get_total_flops()

    with torch.device("meta"):
        step = transformer(arguments)
        inputs = step_inputs(arguments, torch.randn) | {"timestep": torch.tensor([700.0])}
        video, latents = video_model(arguments), video_latents(arguments, torch.randn)
        flops = {"step": counted(lambda: step(**step_call(arguments, inputs, torch.float32))),
                 "blocks": step.config.num_layers,
                 "video": counted(lambda: video.decode(latents, return_dict=False))}
    autoencoder, network = sound_models(arguments, torch.float32, load=False)
    sound = torch.zeros(1, 8, arguments.sound_latents, 16)
    flops["sound"] = counted(lambda: network(autoencoder.decode(sound, return_dict=False)[0]))
    return flops


def main():
    arguments = parse_arguments()
    if arguments.threads:
        torch.set_num_threads(arguments.threads)
    with contextlib.redirect_stdout(None):
        result = count_flops(arguments) if arguments.work == "flops" else measure(arguments)
    print(json.dumps(result))


main()
