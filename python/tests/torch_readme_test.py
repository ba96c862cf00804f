"""The examples of README.md, as they stand there."""

import os
import re
from pathlib import Path

import safetensors.torch
import torch

_README = Path(__file__).parent.parent / "README.md"


def test_examples_run(tmp_path, monkeypatch):
    model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.Linear(256, 64))
    tensors = {f"model.layers.{name}": tensor for name, tensor in model.state_dict().items()}
    safetensors.torch.save_file(tensors, tmp_path / "model.safetensors", {"format": "pt"})
    monkeypatch.chdir(tmp_path)
    names = {}

    examples = re.findall(r"```python\n(.*?)```", _README.read_text(), re.DOTALL)
    for example in examples:
        exec(compile(example, "README.md", "exec"), names)

    assert len(examples) == 3
    assert torch.equal(names["model"][0].weight, model[0].weight.bfloat16())
    assert torch.equal(names["rows"], model[0].weight[16:32])
    assert torch.equal(names["whole"], model[0].bias)
    assert names["weights"].keys() == tensors.keys()
    assert os.listdir(tmp_path) == ["model.safetensors"]
