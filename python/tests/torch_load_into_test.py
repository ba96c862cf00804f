"""load_into: what arrives in a module, what is refused before a byte is written, and what a report says."""

import pytest
import safetensors.torch
import sluice
import torch
from support import backends
from torch import nn


class Block(nn.Module):
    """Parameters and buffers, persistent and not, of several dtypes."""

    def __init__(self):
        super().__init__()
        self.up = nn.Linear(48, 96)
        self.down = nn.Linear(96, 48, bias=False).to(torch.bfloat16)
        self.norm = nn.BatchNorm1d(48)
        self.table = nn.Parameter(torch.randn(7, 5).to(torch.float8_e4m3fn), requires_grad=False)
        self.register_buffer("positions", torch.randint(0, 99, (48,)), persistent=False)


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(10, 4)
        self.head = nn.Linear(4, 10, bias=False)
        self.head.weight = self.embed.weight


def save(path, tensors):
    safetensors.torch.save_file({name: tensor.detach().clone().contiguous() for name, tensor in tensors.items()}, path)
    return path


def state_of(module):
    return {name: tensor.detach().clone() for name, tensor in module.state_dict().items()}


def raw(tensor):
    return bytes(tensor.detach().contiguous().reshape(-1).view(torch.uint8).numpy())


def assert_equal(module, tensors):
    for name, tensor in module.state_dict().items():
        assert (tensor.dtype, raw(tensor)) == (tensors[name].dtype, raw(tensors[name])), name


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.safetensors"


def test_every_backend_fills_the_parameters_where_they_are(path):
    source = Block()
    save(path, state_of(source))

    for backend in backends(path):
        module = Block()
        addresses = [tensor.data_ptr() for tensor in module.state_dict().values()]
        report = sluice.load_into(module, path, backend=backend)
        assert_equal(module, state_of(source))
        assert [tensor.data_ptr() for tensor in module.state_dict().values()] == addresses
        assert sorted(report.tensors) == sorted(source.state_dict())
        assert (report.staged, report.missing, report.unexpected, report.cast) == ([], [], [], [])
        assert report.bytes == report.target_bytes == sum(t.nbytes for t in source.state_dict().values())
        assert report.shards[0].path == path and report.shards[0].reason


def test_gradients_are_not_recorded_and_versions_count_up(path):
    module = nn.Linear(4, 4)
    save(path, state_of(nn.Linear(4, 4)))
    loss = (module(torch.ones(2, 4, requires_grad=True)) ** 2).sum()
    version = module.weight._version

    sluice.load_into(module, path)

    assert module.weight._version > version
    assert module.weight.requires_grad and module.weight.is_leaf and module.weight.grad_fn is None
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_tied_parameters_are_loaded_once(path):
    source = Tied()
    save(path, {"embed.weight": source.embed.weight})
    module = Tied()

    report = sluice.load_into(module, path)

    assert torch.equal(module.head.weight, source.embed.weight)
    assert module.head.weight is module.embed.weight
    assert (report.tensors, report.tied) == (["embed.weight"], {"head.weight": "embed.weight"})


def test_of_both_names_of_a_tied_parameter_the_last_counts_as_in_load_state_dict(path):
    tensors = {"embed.weight": torch.zeros(10, 4), "head.weight": torch.ones(10, 4)}
    save(path, tensors)
    module, other = Tied(), Tied()
    other.load_state_dict(tensors)

    report = sluice.load_into(module, path)

    assert torch.equal(module.embed.weight, other.embed.weight)
    assert report.bytes == 160


def test_all_that_differs_is_listed_at_once_and_nothing_is_written(path):
    module = nn.ModuleDict({"a": nn.Linear(4, 4), "b": nn.Linear(2, 2), "c": nn.Linear(3, 3, bias=False)})
    before = state_of(module)
    save(
        path,
        {
            "a.weight": torch.zeros(1, 4),
            "a.bias": torch.zeros(4, dtype=torch.float16),
            "b.weight": torch.zeros(2, 2),
            "c.weight": torch.zeros(3, 3),
            "d.weight": torch.zeros(1),
        },
    )

    with pytest.raises(sluice.Error) as caught:
        sluice.load_into(module, path)

    assert caught.value.kind == "mismatch"
    for part in (
        str(path),
        "1 missing: 'b.bias'",
        "1 unexpected: 'd.weight'",
        "'a.weight' is [1, 4], its destination [4, 4]",
        "'a.bias' is F16, its destination F32",
    ):
        assert part in caught.value.message
    assert "strict=False" in caught.value.hint
    assert_equal(module, before)


def test_not_strict_leaves_missing_ones_alone_and_reports_both(path):
    module = nn.Linear(4, 4)
    bias = module.bias.detach().clone()
    save(path, {"weight": torch.ones(4, 4), "extra": torch.ones(1000)})

    report = sluice.load_into(module, path, strict=False)

    assert (report.missing, report.unexpected, report.tensors) == (["bias"], ["extra"], ["weight"])
    assert torch.equal(module.bias, bias)
    assert torch.equal(module.weight, torch.ones(4, 4))
    assert report.bytes == 64


def test_not_strict_still_refuses_another_shape(path):
    save(path, {"weight": torch.ones(1, 4), "bias": torch.ones(4)})

    with pytest.raises(sluice.Error, match=r"'weight' is \[1, 4\]"):
        sluice.load_into(nn.Linear(4, 4), path, strict=False)


def test_rename_and_cast(path):
    source = Block()
    save(path, {f"model.block.{name}": tensor for name, tensor in state_of(source).items()})
    module = Block()
    module.up.half()
    module.down.float()

    with pytest.raises(sluice.Error, match="another dtype"):
        sluice.load_into(module, path, rename={"model.block.*": "*"})
    report = sluice.load_into(module, path, rename={"model.block.*": "*"}, cast="auto")

    assert sorted(report.cast) == ["down.weight", "up.bias", "up.weight"]
    assert torch.equal(module.up.weight, source.up.weight.half())
    assert torch.equal(module.down.weight, source.down.weight.float())
    assert torch.equal(module.norm.running_var, source.norm.running_var)


def test_parameters_that_are_not_contiguous_pass_through_one_buffer(path):
    source = nn.Sequential(nn.Linear(30, 20), nn.Linear(20, 1))
    save(path, state_of(source))
    module = nn.Sequential(nn.Linear(30, 20), nn.Linear(20, 1))
    module[0].weight = nn.Parameter(torch.zeros(30, 20).t())

    report = sluice.load_into(module, path, pool="128KiB")

    assert report.staged == ["0.weight"]
    assert module[0].weight.stride() == (1, 20)
    assert_equal(module, state_of(source))


@pytest.mark.parametrize("dtype", [torch.float8_e5m2, torch.float8_e8m0fnu, torch.complex64, torch.uint16, torch.bool])
def test_staging_knows_every_dtype(path, dtype):
    raw_bytes = torch.randint(0, 2, (6, 8 * dtype.itemsize), dtype=torch.uint8)
    tensor = raw_bytes.view(dtype)
    save(path, {"weight": tensor})
    module = nn.Module()
    module.register_buffer("weight", torch.zeros(8, 6, dtype=torch.uint8).to(dtype).t())

    assert sluice.load_into(module, path).staged == ["weight"]
    assert raw(module.weight) == raw(tensor)


def test_modules_of_inference_mode_are_loaded(path):
    source = nn.Linear(3, 3)
    save(path, state_of(source))
    with torch.inference_mode():
        module = nn.Linear(3, 3)
        module.weight = nn.Parameter(module.weight.t(), requires_grad=False)

    sluice.load_into(module, path)

    assert_equal(module, state_of(source))


def test_a_dry_run_compares_and_reads_nothing(path):
    save(path, state_of(nn.Linear(4, 4)))
    module = nn.Linear(4, 4)
    before = state_of(module)

    report = sluice.load_into(module, path, dry_run=True)

    assert (sorted(report.tensors), report.target_bytes, report.bytes) == (["bias", "weight"], 80, 0)
    assert_equal(module, before)


def test_ranks_get_their_rows_columns_and_experts(path):
    full = {
        "up.weight": torch.arange(32.0).reshape(8, 4),
        "down.weight": torch.arange(32.0).reshape(4, 8),
        **{f"experts.{i}.w": torch.full((2,), float(i)) for i in range(4)},
    }
    save(path, full)
    for rank in range(2):
        module = nn.Module()
        module.up, module.down = nn.Linear(4, 4, bias=False), nn.Linear(4, 4, bias=False)
        module.experts = nn.ModuleDict()
        for i in (0, 1) if rank == 0 else (2, 3):
            module.experts[str(i)] = nn.Module()
            module.experts[str(i)].w = nn.Parameter(torch.zeros(2))

        report = sluice.load_into(
            module, path, rank=rank, world=2, slices={"up.weight": 0, "down.weight": 1}, expert_parallel=True
        )

        assert torch.equal(module.up.weight, full["up.weight"][4 * rank : 4 * rank + 4])
        assert torch.equal(module.down.weight, full["down.weight"][:, 4 * rank : 4 * rank + 4])
        assert module.experts[str(2 * rank)].w.tolist() == [2 * rank] * 2
        assert report.target_bytes == 64 + 64 + 16


def test_ranks_without_a_division_are_refused(path):
    save(path, state_of(nn.Linear(4, 4)))

    with pytest.raises(sluice.Error, match="every one of 2 ranks"):
        sluice.load_into(nn.Linear(4, 4), path, world=2)


def test_progress_can_end_a_load_and_another_one_succeeds(path):
    source = Block()
    save(path, state_of(source))
    module = Block()

    def stop(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sluice.load_into(module, path, progress=stop)
    sluice.load_into(module, path)
    assert_equal(module, state_of(source))


def meta_module():
    return nn.Linear(4, 4, device="meta")


def lazy_module():
    return nn.LazyLinear(4)


def expanded_module():
    module = nn.Linear(4, 4)
    module.bias = nn.Parameter(torch.zeros(1).expand(4))
    return module


def hooked_module():
    module = nn.Linear(4, 4)
    module._register_state_dict_hook(lambda self, state, prefix, _: state.update(bias=torch.zeros(4)))
    return module


@pytest.mark.parametrize(
    "make, what, remedy",
    [
        (meta_module, "'weight' is on the meta device, 'bias' is", "to_empty"),
        (lazy_module, "'weight' is not initialized", "run the module once"),
        (expanded_module, "'bias' is expanded", "contiguous"),
        (hooked_module, "'bias' is neither", "would be lost"),
    ],
)
def test_what_nothing_can_be_read_into_is_named_with_the_remedy(path, make, what, remedy):
    save(path, state_of(nn.Linear(4, 4)))

    with pytest.raises(sluice.Error) as caught:
        sluice.load_into(make(), path)
    assert caught.value.kind == "usage"
    assert what in caught.value.message
    assert remedy in caught.value.hint


def test_extra_state_is_no_tensor_and_stays(path):
    class Counting(nn.Linear):
        def get_extra_state(self):
            return {"count": 1}

        def set_extra_state(self, state):
            pass

    source = Counting(2, 2)
    save(path, {name: tensor for name, tensor in source.state_dict().items() if isinstance(tensor, torch.Tensor)})
    module = Counting(2, 2)

    sluice.load_into(module, path)

    assert torch.equal(module.weight, source.weight)
