"""The most memory that a process holds while it loads, in a process of its own."""

import subprocess
import sys

import safetensors.torch
import torch

_LAYERS, _WIDTH = 32, 2048  # 8 MiB each in bfloat16
_MiB = 1 << 20

_PROGRAM = """
import sys
import sluice, torch

def memory(key):
    with open("/proc/self/status") as f:
        return next(int(line.split()[1]) << 10 for line in f if line.startswith(key + ":"))

def make(layers, width):
    with torch.device("meta"):
        module = torch.nn.ModuleList(torch.nn.Linear(width, width, bias=False) for _ in range(layers))
    return module.to(torch.bfloat16).to_empty(device="cpu")

path, small, layers, width, staged = sys.argv[1:]
sluice.load_into(make(1, 8), small)        # what is loaded and allocated once
module = make(int(layers), int(width))
if staged == "staged":
    for layer in module:
        layer.weight = torch.nn.Parameter(layer.weight.t())
before = memory("RssAnon")
with open("/proc/self/clear_refs", "w") as f:
    f.write("5")                            # VmHWM starts again
rest = memory("VmRSS") - before
report = sluice.load_into(module, path)
assert len(report.staged) == (int(layers) if staged == "staged" else 0)
print(memory("VmHWM") - rest - before, report.bytes)
"""


def save(path, layers, width):
    tensor = torch.randint(0, 256, (width, 2 * width), dtype=torch.uint8).view(torch.bfloat16)
    safetensors.torch.save_file({f"{i}.weight": tensor.clone() for i in range(layers)}, path)
    return path


def test_a_load_holds_the_model_its_pool_and_one_tensor(tmp_path):
    path, small = save(tmp_path / "a.safetensors", _LAYERS, _WIDTH), save(tmp_path / "small.safetensors", 1, 8)
    model, piece = _LAYERS * _WIDTH * _WIDTH * 2, _WIDTH * _WIDTH * 2
    assert model == 256 * _MiB

    for staged in ("in place", "staged"):
        command = [sys.executable, "-c", _PROGRAM, path, small, str(_LAYERS), str(_WIDTH), staged]
        output = subprocess.run(command, check=True, capture_output=True, text=True)
        grown, read = map(int, output.stdout.split())

        assert read == model
        assert grown >= model // 2  # it was not there before, so what is measured is the load
        assert grown <= model + 64 * _MiB + piece
