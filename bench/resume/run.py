#!/usr/bin/env python3
"""Kills a generation at random steps and in the decoder, resumes it, and compares with an undisturbed run.

    python bench/resume/run.py --dir /somewhere -- sluice generate --model … --prompt …

Everything behind -- is the command, without outputs: they are given here (video, latents, trace).  Prints, too,
how large the latents of a step are that it keeps, and how long writing and flushing so many bytes takes there.
"""
import argparse
import hashlib
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import time

OUTPUTS = {"-o": "clip.mp4", "--latents": "latents.safetensors", "--trace": "trace.safetensors"}


def command(words, folder, *more):
    flags = [word for flag, name in OUTPUTS.items() for word in (flag, str(folder / name))]
    return [*words, *flags, *more]


def run(words, kill_at=None):
    """Runs to the end, or until a line of progress matches; returns the lines."""
    lines = []
    with subprocess.Popen(words, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as program:
        for line in program.stderr:
            lines.append(line.rstrip())
            if kill_at and kill_at(lines[-1]):
                program.send_signal(signal.SIGKILL)
                kill_at = None
    if program.returncode not in (0, -signal.SIGKILL):
        sys.exit("\n".join(lines[-4:]))
    return lines


def steps_of(lines):
    return max(int(found[1]) for line in lines if (found := re.match(r"denoise +\d+/(\d+)", line)))


def after_step(step):
    return lambda line: (found := re.match(r"denoise +(\d+)/", line)) and int(found[1]) >= step


def in_decoder(line):
    return (found := re.match(r"decode video +(\d+)/(\d+)", line)) and 0 < int(found[1]) < int(found[2])


def checksum(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def cost_of_keeping(folder):
    """Seconds that writing and flushing the latents of a step takes here, and their bytes."""
    content = os.urandom(max(file.stat().st_size for file in folder.glob("*.sluice-work/latents_after_*")))
    start = time.perf_counter()
    with open(folder / "probe", "wb") as file:
        file.write(content)
        os.fsync(file.fileno())
    seconds = time.perf_counter() - start
    os.remove(folder / "probe")
    return seconds, len(content)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dir", type=pathlib.Path, required=True, help="an existing folder with space for two clips")
    parser.add_argument("--kills", type=int, default=3, help="at random steps, one run each")
    parser.add_argument("--seed", type=int, default=random.randrange(2**32))
    parser.add_argument("words", nargs="+", metavar="command")
    options = parser.parse_args()
    print(f"seed {options.seed}")
    chance = random.Random(options.seed)
    folders = {name: options.dir / name for name in ("undisturbed", "killed")}
    for folder in folders.values():
        folder.mkdir()
    try:
        steps = steps_of(run(command(options.words, folders["undisturbed"])))
        expected = {name: checksum(folders["undisturbed"] / name) for name in OUTPUTS.values()}
        kills = [(f"step {step} of {steps}", after_step(step))
                 for step in sorted(chance.sample(range(1, steps), min(options.kills, steps - 1)))]
        same = True
        for where, kill_at in [*kills, ("the decoder", in_decoder)]:
            run(command(options.words, folders["killed"]), kill_at)
            seconds, size = cost_of_keeping(folders["killed"])
            run(command(options.words, folders["killed"], "--resume"))
            differ = [name for name in OUTPUTS.values() if checksum(folders["killed"] / name) != expected[name]]
            same = same and not differ
            print(f"killed at {where}: {'differ: ' + ', '.join(differ) if differ else 'same bytes'}; "
                  f"a step's latents are {size / 2**20:.2f} MiB, written in {seconds * 1000:.1f} ms", flush=True)
            for name in OUTPUTS.values():
                os.remove(folders["killed"] / name)
        sys.exit(0 if same else 1)
    finally:
        for folder in folders.values():
            shutil.rmtree(folder)


if __name__ == "__main__":
    main()
