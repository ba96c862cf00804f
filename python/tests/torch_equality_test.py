"""Tensors of torch against the safetensors library, on random files of all dtypes."""

import pytest
import safetensors
import safetensors.torch
import sluice
import torch
from support import Written, backends, random_tensors, write_file, write_shards


def same_bytes(one, other):
    return (
        one.dtype == other.dtype
        and one.shape == other.shape
        and torch.equal(
            one.contiguous().reshape(-1).view(torch.uint8), other.contiguous().reshape(-1).view(torch.uint8)
        )
    )


@pytest.mark.parametrize("seed", range(8))
def test_every_way_of_reading_delivers_what_safetensors_delivers(tmp_path, seed):
    path = write_file(tmp_path / "a.safetensors", random_tensors(seed), padding=seed)
    with safetensors.safe_open(path, "pt") as f:
        theirs = {name: f.get_tensor(name) for name in f.keys()}

    for backend in backends(path):
        ours = sluice.load_file(path, backend=backend, threads=seed % 4)
        assert ours.keys() == theirs.keys()
        assert all(same_bytes(ours[name], theirs[name]) for name in theirs)
        with sluice.safe_open(path, "pt", backend=backend) as f:
            assert all(same_bytes(f.get_tensor(name), theirs[name]) for name in theirs)


def test_what_safetensors_writes_is_read(tmp_path):
    tensors = {
        "a.weight": torch.randn(33, 65),
        "b": torch.arange(7, dtype=torch.int64),
        "c": torch.randn(5, 3).to(torch.float8_e4m3fn),
        "scalar": torch.tensor(2.5, dtype=torch.bfloat16),
        "empty": torch.empty(0, 4),
        "flags": torch.tensor([True, False]),
        "pairs": torch.randint(0, 256, (4, 6), dtype=torch.uint8).view(torch.float4_e2m1fn_x2),
    }
    safetensors.torch.save_file(tensors, tmp_path / "a.safetensors", {"format": "pt"})

    ours = sluice.load_file(tmp_path / "a.safetensors")

    assert all(same_bytes(ours[name], tensors[name]) for name in tensors)
    assert sluice.safe_open(tmp_path / "a.safetensors", "pt").metadata() == {"format": "pt"}


def test_shards_hold_together_what_their_files_hold(tmp_path):
    tensors = random_tensors(20)
    index = write_shards(tmp_path, tensors, 3)

    ours = sluice.load_file(index)

    assert ours.keys() == {tensor.name for tensor in tensors}
    for shard in tmp_path.glob("*.safetensors"):
        for name, tensor in safetensors.torch.load_file(shard).items():
            assert same_bytes(ours[name], tensor)


def test_slices_are_those_of_safetensors(tmp_path):
    weight = torch.arange(50 * 40, dtype=torch.float32).to(torch.bfloat16).reshape(50, 40)
    path = tmp_path / "a.safetensors"
    safetensors.torch.save_file({"w": weight}, path)

    with safetensors.safe_open(path, "pt") as theirs, sluice.safe_open(path, "pt") as ours:
        for index in [slice(3, 9), (slice(None), slice(8, 16)), (slice(40, None), slice(-5, None)), (2, slice(1, 3))]:
            assert same_bytes(ours.get_slice("w")[index], theirs.get_slice("w")[index])
        strided = ours.get_slice("w")[::7, ::3]
        assert same_bytes(strided, weight[::7, ::3].contiguous())
        assert strided.is_contiguous()


def test_numbers_of_four_bits_are_cut_where_bytes_end(tmp_path):
    pairs = torch.randint(0, 256, (4, 6), dtype=torch.uint8)
    path = tmp_path / "a.safetensors"
    safetensors.torch.save_file({"w": pairs.view(torch.float4_e2m1fn_x2)}, path)

    with sluice.safe_open(path, "pt") as f:
        part = f.get_slice("w")
        assert part.get_shape() == [4, 12]
        assert same_bytes(part[1:3, 2:8], pairs[1:3, 1:4].contiguous().view(torch.float4_e2m1fn_x2))
        with pytest.raises(sluice.Error):
            part[:, 1:3]
        with pytest.raises(sluice.Error):
            part[::2]


def test_a_dtype_that_torch_lacks_is_refused_before_reading(tmp_path):
    path = write_file(tmp_path / "a.safetensors", [Written("w", "F6_E2M3", (4,), bytes(3))])

    with pytest.raises(sluice.Error, match="F6_E2M3") as caught:
        sluice.load_file(path)
    assert "exclude" in caught.value.hint


def test_tensors_of_a_dictionary_do_not_look_shared(tmp_path):
    path = write_file(tmp_path / "a.safetensors", random_tensors(21))
    loaded = sluice.load_file(path)

    safetensors.torch.save_file(loaded, tmp_path / "b.safetensors")

    again = sluice.load_file(tmp_path / "b.safetensors")
    assert all(same_bytes(loaded[name], again[name]) for name in loaded)


def test_tensors_stay_when_slab_and_dictionary_go(tmp_path):
    path = write_file(tmp_path / "a.safetensors", random_tensors(22))
    slab = sluice.Slab()
    tensor = sluice.load_file(path, slab=slab)["large"]
    assert slab.in_use
    before = tensor.clone()
    del slab

    assert same_bytes(tensor, before)
    assert same_bytes(tensor, sluice.load_file(path)["large"])


def test_tensors_beyond_the_host_pass_one_at_a_time_through_a_buffer(tmp_path):
    """On the meta device, the only one beside the host that every machine has: shapes and dtypes, no values."""
    path = write_file(tmp_path / "a.safetensors", random_tensors(24))
    theirs = safetensors.torch.load_file(path)

    ours = sluice.load_file(path, device="meta")

    assert ours.keys() == theirs.keys()
    assert all(ours[name].is_meta and ours[name].shape == theirs[name].shape for name in theirs)
    assert all(ours[name].dtype == theirs[name].dtype for name in theirs)
    with pytest.raises(sluice.Error, match="a slab is host memory"):
        sluice.load_file(path, device="meta", slab=sluice.Slab())


def test_a_device_that_does_not_exist_is_a_usage_error(tmp_path):
    path = write_file(tmp_path / "a.safetensors", random_tensors(23))

    with pytest.raises(sluice.Error, match="toaster") as caught:
        sluice.load_file(path, device="toaster")
    assert caught.value.kind == "usage"
