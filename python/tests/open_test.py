"""safe_open and the tables, with arrays of numpy."""

import subprocess
import sys

import numpy as np
import pytest
import safetensors
import sluice
from support import SIZES, Written, random_tensors, write_file, write_shards


def numbers(name, count, start=0):
    return Written(name, "I32", (count,), np.arange(start, start + count, dtype=np.int32).tobytes())


def test_importing_brings_neither_torch_nor_numpy():
    code = "import sys, sluice; assert not {'torch', 'numpy'} & set(sys.modules)"

    subprocess.run([sys.executable, "-c", code], check=True)


def test_tables_are_those_of_safetensors(tmp_path):
    path = write_file(tmp_path / "a.safetensors", random_tensors(3), {"format": "pt", "ключ": "値"})

    with safetensors.safe_open(path, "np") as theirs, sluice.safe_open(path, "np") as ours:
        assert ours.keys() == sorted(theirs.keys())
        assert ours.metadata() == theirs.metadata()
        # Tensors without bytes may stand on either side of their neighbour.
        sized = {tensor.name for tensor in random_tensors(3) if tensor.data}
        assert [n for n in ours.offset_keys() if n in sized] == [n for n in theirs.offset_keys() if n in sized]
        for name in ours.keys():
            assert ours.get_slice(name).get_shape() == theirs.get_slice(name).get_shape()
            assert ours.get_slice(name).get_dtype() == theirs.get_slice(name).get_dtype()


def test_metadata_is_none_where_there_is_none(tmp_path):
    path = write_file(tmp_path / "a.safetensors", [numbers("a", 2)])

    assert sluice.safe_open(path, "numpy").metadata() is None


@pytest.mark.parametrize("seed", range(4))
def test_arrays_hold_the_bytes_of_the_file(tmp_path, seed):
    tensors = random_tensors(seed)
    path = write_file(tmp_path / "a.safetensors", tensors, padding=seed)

    with sluice.safe_open(path, "numpy") as f:
        for name, dtype, shape, data in tensors:
            array = f.get_tensor(name)
            assert array.shape == shape
            assert array.itemsize == SIZES[dtype]
            assert array.tobytes() == data


def test_slices_read_only_what_is_kept(tmp_path):
    array = np.arange(1000 * 64, dtype=np.float32).reshape(1000, 64)
    path = write_file(tmp_path / "a.safetensors", [numbers("x", 3), Written("a", "F32", array.shape, array.tobytes())])

    indices = [slice(10, 20), (slice(None), slice(3, 5)), (7, 8), ..., (slice(0, 0),), (slice(5, 900, 7), -1)]
    for arguments in ({}, {"backend": "pread"}, {"cache": "drop"}):
        with sluice.safe_open(path, "numpy", **arguments) as f:
            part = f.get_slice("a")
            for index in indices:
                np.testing.assert_array_equal(part[index], array[index])
            assert part[7, 8].shape == ()


def test_folders_and_indexes_are_one_checkpoint(tmp_path):
    tensors = random_tensors(5)
    index = write_shards(tmp_path, tensors, 3)

    for path in (index, tmp_path):
        with sluice.safe_open(path, "numpy") as f:
            assert f.keys() == sorted(tensor.name for tensor in tensors)
            assert all(f.get_tensor(tensor.name).tobytes() == tensor.data for tensor in tensors)


def test_tensors_lists_files_and_offsets(tmp_path):
    tensors = random_tensors(6)

    for name, dtype, shape, file, offset, size in sluice.tensors(write_shards(tmp_path, tensors, 2)):
        written = next(tensor for tensor in tensors if tensor.name == name)
        assert (dtype, shape) == (written.dtype, written.shape)
        with open(file, "rb") as f:
            f.seek(offset)
            assert f.read(size) == written.data


def test_a_name_that_is_not_there_is_an_error_that_tells_the_nearest(tmp_path):
    path = write_file(tmp_path / "a.safetensors", [numbers("layer.weight", 2)])

    with sluice.safe_open(path, "numpy") as f, pytest.raises(sluice.Error, match="no tensor 'layer.wieght'") as caught:
        f.get_tensor("layer.wieght")
    assert caught.value.hint == "'layer.weight' is there"


def test_a_closed_checkpoint_says_so(tmp_path):
    path = write_file(tmp_path / "a.safetensors", [numbers("a", 2)])
    with sluice.safe_open(path, "numpy") as f:
        pass

    with pytest.raises(sluice.Error, match="closed"):
        f.keys()


def test_without_ml_dtypes_bfloat16_is_refused_with_the_remedy(tmp_path, monkeypatch):
    path = write_file(tmp_path / "a.safetensors", [Written("a", "BF16", (2,), bytes(4))])
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)

    with sluice.safe_open(path, "numpy") as f, pytest.raises(sluice.Error, match="BF16") as caught:
        f.get_tensor("a")
    assert "pip install ml_dtypes" in caught.value.hint


def test_a_damaged_file_is_named_with_kind_and_remedy(tmp_path):
    path = write_file(tmp_path / "a.safetensors", [numbers("a", 100)])
    path.write_bytes(path.read_bytes()[:-1])

    with pytest.raises(sluice.Error, match="a.safetensors") as caught:
        sluice.safe_open(path, "numpy")
    assert caught.value.kind == "corrupt_file"
    assert caught.value.hint


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"framework": "jax"}, "'jax' is no framework"),
        ({"framework": "numpy", "device": "cuda"}, "numpy has no device 'cuda'"),
        ({"framework": "numpy", "backend": "tape"}, "'tape' is no read backend"),
        ({"framework": "numpy", "cache": "some"}, "'some' is no cache policy"),
    ],
)
def test_impossible_arguments_are_usage_errors(tmp_path, arguments, message):
    path = write_file(tmp_path / "a.safetensors", [numbers("a", 2)])

    with pytest.raises(sluice.Error, match=message) as caught:
        sluice.safe_open(path, **arguments)
    assert caught.value.kind == "usage"


def test_names_that_are_no_text_do_not_hide_the_error(tmp_path):
    with pytest.raises(sluice.Error) as caught:
        sluice.safe_open(bytes(tmp_path) + b"/\xff.safetensors", "numpy")
    assert caught.value.kind == "bad_input"
