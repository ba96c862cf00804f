"""Compares sluice's text encoder with transformers, state by state, in float32.

    python bench/text_parity.py --sluice build/release/bin/sluice --text-encoder FOLDER

FOLDER is a Gemma 3 text encoder in transformers' format. Every prompt is encoded by both; the reference sees it as
the pipelines show it, padded on the left to --max-length. A row a prompt: tokens, and of all states the largest
max|difference| / max|reference| and |difference| / |reference| (2-norms), each with its state. Exit 1 if token ids
differ or one of both is above --tolerance.

Needs torch, transformers, safetensors.
"""

import argparse
import pathlib
import subprocess
import sys
import tempfile

import torch
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM, AutoTokenizer

PROMPTS = [
    "a cat walks over the table",
    "",
    "   spaces at both ends   ",
    "A woman says: 'Hello there, how are you today?' and a man answers: 'Fine, thanks!'",
    "cinematic shot, shallow depth of field, warm golden light, 24 fps, 1280x704, 5 seconds",
    "worst quality, inconsistent motion, blurry, jittery, distorted",
    "ein Mädchen läuft über die Straße und lächelt, été à la plage, señor, naïve café",
    "日本語のテキスト と 한국어, 一只猫走过桌子",
    "emoji 🎬🎥 family 👨‍👩‍👧‍👦 flag 🇩🇪",
    "two  three   four    spaces, a tab\tand\n\nlines\n",
    "1234567890 !?.,;:'\"()[]{}-_/\\|@#$%^&*~`+=",
    "<start_of_turn>user\nhello<end_of_turn>",
    "a red ball bounces down a staircase; each bounce makes a hollow wooden sound",
    "waves crash on the rocks; the sound of the sea and the wind is heard in the background",
    "x",
    "The quick brown fox jumps over the lazy dog. " * 4,
    "A drone rises slowly from the floor of a narrow canyon at dawn. Mist hangs over a shallow river, and the first "
    "sunlight catches the upper edge of the red cliffs. As the camera climbs, a lone hiker in a yellow coat comes "
    "into view on a ledge, turns, and looks up. Water murmurs far below, a bird calls twice, and a low wind rises "
    "towards the end of the shot.",
    "Interior of a watchmaker's shop, close up. An old man with steel spectacles bends over an open pocket watch, "
    "tweezers in hand. Behind him dozens of clocks tick out of step. He sets a tiny wheel, breathes out, and the "
    "watch begins to run; its tick joins the others. The camera pulls back through the window into a rainy street, "
    "where a tram passes with a ringing bell and its lights smear across the wet stones. People hurry under "
    "umbrellas. A child stops, presses both hands against the glass, and the old man looks up and smiles. "
    "Warm light inside, blue dusk outside, fine film grain, slow and steady movement, natural sound without music.",
    "def frames(seconds, rate): return 8 * round(seconds * rate / 8) + 1",
    "Ω ≈ ∫ f(x) dx → ∞, ½ of ⅔, x² + y² = r², 20 °C",
]


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sluice", required=True, type=pathlib.Path, help="the program")
    parser.add_argument("--text-encoder", required=True, type=pathlib.Path, help="folder with config, weights, tokenizer")
    parser.add_argument("--max-length", type=int, default=1024, help="length of the padded row (default 1024)")
    parser.add_argument("--tolerance", type=float, default=1e-5)
    return parser.parse_args()


def encode_with_sluice(program, folder, prompt, out):
    command = [program, "encode", "--text-encoder", folder, "--prompt", prompt, "--hidden-states", "-o", out]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    tensors = load_file(out)
    return tensors["input_ids"][0], tensors["hidden_states"][0]


@torch.no_grad()
def encode_with_reference(model, tokenizer, prompt, max_length):
    ids = torch.tensor(tokenizer(prompt.strip(), truncation=True, max_length=max_length)["input_ids"])
    padding = max_length - len(ids)
    row = torch.cat([torch.zeros(padding, dtype=torch.int64), ids])[None]
    mask = (torch.arange(max_length) >= padding).long()[None]
    # The model below the output head, whether or not a vision tower stands beside it.
    states = model.model(input_ids=row, attention_mask=mask, output_hidden_states=True).hidden_states
    return ids, torch.stack(states, dim=-1)[0, padding:]


def worst_state(got, want):
    """(largest error, its state) by maximum and by 2-norm."""
    difference, want = (got.double() - want.double()).flatten(0, 1), want.double().flatten(0, 1)
    by_maximum = difference.abs().amax(0) / want.abs().amax(0)
    by_norm = difference.norm(dim=0) / want.norm(dim=0)
    return by_maximum.max(0), by_norm.max(0)


def main():
    arguments = parse_arguments()
    tokenizer = AutoTokenizer.from_pretrained(arguments.text_encoder)
    model = AutoModelForCausalLM.from_pretrained(arguments.text_encoder, dtype=torch.float32).eval()
    failed = 0
    print("tokens  max error  state  norm error  state  prompt")
    with tempfile.TemporaryDirectory() as folder:
        for number, prompt in enumerate(PROMPTS):
            out = pathlib.Path(folder) / f"{number}.safetensors"
            ids, got = encode_with_sluice(arguments.sluice, arguments.text_encoder, prompt, out)
            want_ids, want = encode_with_reference(model, tokenizer, prompt, arguments.max_length)
            if not torch.equal(ids, want_ids):
                print(f"{len(ids):6}  token ids differ: {ids.tolist()}, not {want_ids.tolist()}")
                failed += 1
                continue
            (maximum, state), (norm, norm_state) = worst_state(got, want)
            good = maximum.item() <= arguments.tolerance and norm.item() <= arguments.tolerance
            failed += not good
            print(
                f"{len(ids):6}  {maximum.item():9.2e}  {state.item():5}  {norm.item():10.2e}  {norm_state.item():5}  "
                f"{prompt[:40]!r}{'' if good else '  ABOVE TOLERANCE'}"
            )
            out.unlink()
    print(f"{len(PROMPTS) - failed} of {len(PROMPTS)} prompts within {arguments.tolerance:g}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
