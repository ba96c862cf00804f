"""Train an adapter (LoRA) for the demo model: every shape comes out cyan, a colour that the model never saw."""

import argparse
import json
import os
import random
import time

import torch
from safetensors.torch import save_file

import to_diffusers
import train_dit
import world

CYAN = (0.10, 0.85, 0.90)
MATRICES = ("attn1.to_q", "attn1.to_v", "attn1.to_out.0", "attn2.to_v", "ff.net.0.proj", "ff.net.2")


class Adapted(torch.nn.Module):
    """A frozen linear layer with a product of low rank beside it."""

    def __init__(self, linear, rank):
        super().__init__()
        self.linear = linear
        self.down = torch.nn.Parameter(torch.randn(rank, linear.in_features) / linear.in_features**0.5)
        self.up = torch.nn.Parameter(torch.zeros(linear.out_features, rank))

    def forward(self, x):
        return self.linear(x) + x @ self.down.T @ self.up.T


def adapt(dit, rank):
    adapted = {}
    for number, block in enumerate(dit.transformer_blocks):
        for name in MATRICES:
            parent, _, child = name.rpartition(".")
            owner = block.get_submodule(parent)
            layer = Adapted(owner.get_submodule(child), rank)
            setattr(owner, child, layer) if not child.isdigit() else owner.__setitem__(int(child), layer)
            adapted[f"transformer_blocks.{number}.{name}"] = layer
    return adapted


@torch.no_grad()
def cyan_latents(vae, scenes, seed=5):
    """Normalized, packed latents of the scenes, whatever colour they ask for."""
    world.COLOURS.update({colour: CYAN for colour in world.COLOURS})
    rng = random.Random(seed)
    z = []
    for i in range(0, len(scenes), 16):
        z.append(vae.encode(torch.stack([world.render_video(s, rng) for s in scenes[i : i + 16]])).latent_dist.mode())
    z = torch.cat(z)
    z = (z - vae.latents_mean.view(1, -1, 1, 1, 1)) / vae.latents_std.view(1, -1, 1, 1, 1)
    return z.permute(0, 2, 3, 4, 1).flatten(1, 3)


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    ap = argparse.ArgumentParser()
    ap.add_argument("--model", default=os.path.join(here, "..", "model"))
    ap.add_argument("--out", default=os.path.join(here, "..", "lora", "cyan.safetensors"))
    ap.add_argument("--rank", type=int, default=4)
    ap.add_argument("--steps", type=int, default=400)
    ap.add_argument("--lr", type=float, default=4e-3)
    ap.add_argument("--threads", type=int, default=1)
    a = ap.parse_args()
    torch.set_num_threads(a.threads)
    torch.manual_seed(11)
    parts = to_diffusers.load_parts(a.model)
    dit, con = parts["transformer"], parts["connectors"]
    for module in (dit, con):
        module.requires_grad_(False)
    adapted = adapt(dit, a.rank)
    scenes = world.all_scenes()
    feats, mask = train_dit.text_features(scenes, os.path.join(a.model, "text_encoder"))
    video = cyan_latents(parts["vae"], scenes)
    params = [p for layer in adapted.values() for p in (layer.down, layer.up)]
    opt = torch.optim.Adam(params, lr=a.lr)
    rng = random.Random(11)
    start, avg = time.time(), None
    for step in range(1, a.steps + 1):
        for group in opt.param_groups:
            group["lr"] = a.lr * min(1, step / 20) * max(0.03, min(1.0, 1.4 * (1 - step / a.steps)))
        idx = torch.tensor(rng.sample(range(len(scenes)), 6)).repeat_interleave(2)
        with torch.no_grad():
            ctx, actx, cmask = con(*train_dit.pad_left(feats[idx], mask[idx], 128))
        n, x0 = len(idx), video[idx]
        sigma = torch.where(
            torch.rand(n) < 0.6,
            train_dit.SIGMAS[torch.randint(len(train_dit.SIGMAS), (n,))],
            torch.sigmoid(torch.randn(n) * 1.2 + 0.6),
        )
        s, noise = sigma.view(-1, 1, 1), torch.randn_like(x0)
        # The sound is noise: of it the picture learns nothing here, and its own half is not adapted.
        ax = torch.randn(n, train_dit.AF, dit.config.audio_in_channels)
        v, _ = train_dit.denoise(dit, ctx, actx, cmask, (1 - s) * x0 + s * noise, ax, sigma)
        loss = (v - (noise - x0)).pow(2).mean()
        opt.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(params, 1.0)
        opt.step()
        avg = loss.item() if avg is None else 0.96 * avg + 0.04 * loss.item()
        if step % 25 == 0:
            print(f"{time.time() - start:.0f}s step {step} loss {avg:.4f}", flush=True)
    tensors = {}
    for name, layer in adapted.items():
        tensors[f"diffusion_model.{name}.lora_A.weight"] = layer.down.detach().bfloat16().contiguous()
        tensors[f"diffusion_model.{name}.lora_B.weight"] = layer.up.detach().bfloat16().contiguous()
    os.makedirs(os.path.dirname(a.out), exist_ok=True)
    save_file(tensors, a.out, metadata={"training": json.dumps({"rank": a.rank, "steps": a.steps})})


if __name__ == "__main__":
    main()
