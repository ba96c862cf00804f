"""Memory of decoding video: what is planned beside what is measured, and that a longer clip needs no more.

    python bench/decode/memory.py --bin build/release/bin

Makes the video autoencoder at its published widths with sluice-synth (1.4 GiB in bf16, removed at the end; --dir
says where) and decodes random latents in fresh processes.  Measured is the largest RssAnon while decoding, looked
at every 10 ms, less what the process had before; planned is DecodePlan::memory.  The clip lengths to compare are
decoded at --size in --dtype."""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

MIB = 1 << 20


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=Path, default=Path("build/release/bin"), help="bench_decode, sluice-synth")
    parser.add_argument("--dir", type=Path, help="where the checkpoint is made and removed again")
    parser.add_argument("--model", type=Path, help="a vae folder that is there already")
    parser.add_argument("--size", default="512x320", help="of the clips whose lengths are compared")
    parser.add_argument("--frames", type=int, nargs=2, default=[49, 97])
    parser.add_argument("--dtype", default="bf16", choices=["bf16", "f32"])
    parser.add_argument("--more", nargs="*", default=["256x256x17:stream", "384x256x25:whole", "768x512x9:tiled"],
                        metavar="WxHxF:WAY[:BUDGET]", help="further decodes to set beside their plan")
    parser.add_argument("--json", type=Path, help="write all numbers there")
    return parser.parse_args()


def decode(arguments, model, width, height, frames, way="auto", budget=""):
    command = [arguments.bin / "bench_decode", model, "--width", width, "--height", height, "--frames", frames,
               "--dtype", arguments.dtype, "--decode", way, "--scratch", model]
    if budget:
        command += ["--budget", budget]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr)
    row = json.loads(done.stdout)
    row["clip"] = f"{width}x{height}x{frames}"
    row["way"] = way + (f" in {budget}" if budget else "")
    print(f"{row['clip']:>14} {row['way']:>18}  planned {row['planned'] / MIB:7.0f} MiB  measured "
          f"{row['measured'] / MIB:7.0f} MiB  {row['measured'] / row['planned']:5.2f}  {row['seconds']:6.1f} s"
          f"  {row['tiles']}", flush=True)
    return row


def main():
    arguments = parse_arguments()
    folder = Path(tempfile.mkdtemp(dir=arguments.dir))
    try:
        model = arguments.model
        if model is None:
            subprocess.run([arguments.bin / "sluice-synth", "-o", folder / "model", "--preset", "22b", "--components",
                            "vae", "--layout", "diffusers"], check=True, stdout=subprocess.DEVNULL)
            model = folder / "model" / "vae"
        rows = []
        for text in arguments.more:
            size, way, *budget = text.split(":")
            rows.append(decode(arguments, model, *map(int, size.split("x")), way, *budget))
        width, height = map(int, arguments.size.split("x"))
        short, long = (decode(arguments, model, width, height, frames) for frames in arguments.frames)
        peaks = [row["before"] + row["measured"] for row in (short, long)]
        print(f"peak anonymous memory of {arguments.frames[1]} frames to that of {arguments.frames[0]}: "
              f"{peaks[1] / peaks[0]:.3f}")
        if arguments.json:
            arguments.json.write_text(json.dumps(rows + [short, long], indent=1))
    finally:
        shutil.rmtree(folder)


main()
