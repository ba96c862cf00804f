"""Encoding video beside diffusers: the same work with the same weights, arms in turns, each in a fresh process.

    python bench/encode/run.py --bin build/release/bin

Makes the video autoencoder at its published widths with sluice-synth (1.4 GiB in bf16, removed at the end; --dir
says where) and encodes random frames of --size.  Every process encodes twice, and the second time counts.  Prints a
row each, and the median of the ratios within a round."""

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

MIB = 1 << 20
REFERENCE = Path(__file__).parent.parent / "step" / "reference.py"


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=Path, default=Path("build/release/bin"), help="bench_encode, sluice-synth")
    parser.add_argument("--dir", type=Path, help="where the checkpoint is made and removed again")
    parser.add_argument("--model", type=Path, help="a folder with vae/ that is there already")
    parser.add_argument("--size", type=int, nargs=3, default=[512, 320, 49], metavar=("W", "H", "FRAMES"))
    parser.add_argument("--dtypes", nargs="+", default=["bf16", "f32"], choices=["bf16", "f32"])
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path, help="write all numbers there")
    return parser.parse_args()


def result_of(command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


def sluice(arguments, model, dtype):
    width, height, frames = arguments.size
    row = result_of([arguments.bin / "bench_encode", model / "vae", "--width", width, "--height", height, "--frames",
                     frames, "--dtype", dtype, "--rounds", 2, "--threads", arguments.threads])
    return row | {"seconds": row["seconds"][-1]}


def diffusers(arguments, model, dtype):
    row = result_of([sys.executable, REFERENCE, "encode", model, "--size", *arguments.size, "--dtype", dtype,
                     "--threads", arguments.threads])
    return {"seconds": row["seconds"][-1]}


def compare(arguments, model, dtype):
    rows = []
    for round_ in range(arguments.rounds):
        arms = [("sluice", sluice), ("diffusers", diffusers)]
        row = {name: run(arguments, model, dtype) for name, run in (arms if round_ % 2 == 0 else reversed(arms))}
        row |= {"dtype": dtype, "ratio": row["diffusers"]["seconds"] / row["sluice"]["seconds"]}
        ours = row["sluice"]
        print(f"{dtype:>5}  sluice {ours['seconds']:6.1f} s  diffusers {row['diffusers']['seconds']:6.1f} s  "
              f"{row['ratio']:5.2f}   planned {ours['planned'] / MIB:6.0f} MiB  measured "
              f"{ours['measured'] / MIB:6.0f} MiB", flush=True)
        rows.append(row)
    print(f"{dtype:>5}  median of the ratios {statistics.median(row['ratio'] for row in rows):.2f}")
    return rows


def main():
    arguments = parse_arguments()
    folder = Path(tempfile.mkdtemp(dir=arguments.dir))
    try:
        model = arguments.model
        if model is None:
            model = folder / "model"
            subprocess.run([arguments.bin / "sluice-synth", "-o", model, "--preset", "22b", "--components", "vae",
                            "--layout", "diffusers"], check=True, stdout=subprocess.DEVNULL)
        rows = [row for dtype in arguments.dtypes for row in compare(arguments, model, dtype)]
        if arguments.json:
            arguments.json.write_text(json.dumps(rows, indent=1))
    finally:
        shutil.rmtree(folder)


main()
