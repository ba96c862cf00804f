"""Runs of sluice for the scripts beside this file: arguments, limits, reports, results kept as JSON."""
import argparse
import json
import pathlib
import tempfile

import capped

GB = 1e9


def arguments(description, **defaults):
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--bin", default="build/release/bin", help="folder of the programs")
    parser.add_argument("--model", required=True, help="checkpoint at full width (sluice-synth)")
    parser.add_argument("--text-encoder", help="Gemma folder; without it --inject is needed")
    parser.add_argument("--inject", help="prompt embeddings instead of a text encoder")
    parser.add_argument("--results", default="bench/memory/results", help="folder for the figures as JSON")
    for name, value in defaults.items():
        parser.add_argument("--" + name.replace("_", "-"), default=value, type=type(value))
    return parser.parse_args()


def flags(args):
    common = ["--model", args.model, "--prompt", PROMPT, "--variant", "distilled"]
    if args.text_encoder:
        common += ["--text-encoder", args.text_encoder]
    if args.inject:
        common += ["--inject", args.inject]
    return common


PROMPT = ("A lighthouse keeper climbs a spiral stair at dusk, lamp in hand, while rain beats on the windows and "
          "the sea roars below; the camera follows him up, past brass fittings and a sleeping cat, until the "
          "great lens comes into view and begins to turn, and a beam of warm light sweeps over the waves.")


def sigmas(steps):
    return ",".join(f"{1 - i / steps:.6f}" for i in range(steps))


class Run:
    """What one generate gave: capped.Result, its report (None if it failed) and the latents' bytes."""

    def __init__(self, result, report, latents):
        self.result, self.report, self.latents = result, report, latents

    def phase(self, name):
        return next(p for p in self.report["phases"] if p["name"] == name)

    def peak_anonymous(self):
        return max(p["peak_anonymous"] for p in self.report["phases"])

    def seconds(self):
        return sum(p["seconds"] for p in self.report["phases"])


def generate(args, extra, limit=None, video=True, on_line=None, environment=None):
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        command = [f"{args.bin}/sluice", "generate", *flags(args), *extra, "--latents", str(folder / "latents"),
                   "--report", str(folder / "report.json")]
        if video:
            command += ["-o", str(folder / "out.mp4")]
        result = capped.run(command, limit, environment, on_line)
        report = folder / "report.json"
        latents = folder / "latents"
        return Run(result, json.loads(report.read_text()) if report.exists() else None,
                   latents.read_bytes() if latents.exists() else None)


def plan(args, extra, limit=None):
    result = capped.run([f"{args.bin}/sluice", "plan", *flags(args), *extra, "--json"], limit)
    if result.code != 0:
        raise SystemExit(result.errors)
    return json.loads(result.output)


def keep(args, name, rows):
    folder = pathlib.Path(args.results)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.json").write_text(json.dumps(rows, indent=1) + "\n")


def failed(run, what):
    print(f"{what}: exit {run.result.code}, oom kills {run.result.oom_kills}\n{run.result.errors[-2000:]}")
