"""expect.py CHECKPOINT FOLDER: what the safetensors library reads, for published_test.

FOLDER/tensors.json lists name, dtype, shape and size in the order of names, FOLDER/tensors.bin has their bytes one
behind the other.
"""
import json
import pathlib
import sys

from safetensors import safe_open


def main(checkpoint: str, folder: pathlib.Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    rows = []
    with safe_open(checkpoint, framework="np") as file, open(folder / "tensors.bin", "wb") as data:
        for name in sorted(file.keys(), key=lambda name: name.encode()):
            entry, content = file.get_slice(name), file.get_tensor(name).tobytes()
            rows.append({"name": name, "dtype": entry.get_dtype(), "shape": entry.get_shape(), "size": len(content)})
            data.write(content)
    (folder / "tensors.json").write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main(sys.argv[1], pathlib.Path(sys.argv[2]))
