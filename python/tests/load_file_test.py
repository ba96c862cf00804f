"""load_file with arrays of numpy: filters, slabs, progress, cancellation."""

import gc
import os
import pickle
import signal
import threading

import numpy as np
import pytest
import sluice
from sluice import _bytes
from support import Written, backends, random_tensors, write_file, write_shards, write_sparse


def load(path, **arguments):
    return sluice.load_file(path, framework="numpy", **arguments)


def assert_holds(loaded, tensors):
    assert list(loaded) == sorted(tensor.name for tensor in tensors)
    for name, _, shape, data in tensors:
        assert loaded[name].shape == shape
        assert loaded[name].tobytes() == data


@pytest.mark.parametrize("seed", range(6))
def test_every_backend_and_cache_policy_delivers_the_bytes_of_the_file(tmp_path, seed):
    tensors = random_tensors(seed)
    path = write_file(tmp_path / "a.safetensors", tensors, padding=seed)

    for backend in backends(path):
        for cache in ("auto", "keep", "drop", "prefetch"):
            for threads in (0, 1, 3):
                assert_holds(load(path, backend=backend, cache=cache, threads=threads, pool="1MiB"), tensors)


def test_shards_become_one_dictionary(tmp_path):
    tensors = random_tensors(7)

    assert_holds(load(write_shards(tmp_path, tensors, 4)), tensors)


def test_globs_decide_what_is_read(tmp_path):
    tensors = [Written(name, "U8", (4,), name.encode()) for name in ("a.w1", "a.b2", "c.w3")]
    path = write_file(tmp_path / "a.safetensors", tensors)

    assert list(load(path, include="*.w?")) == ["a.w1", "c.w3"]
    assert list(load(path, include=["a.*"], exclude="*.b2")) == ["a.w1"]
    plan = sluice.plan(path, exclude="a.*")
    assert (plan.read_bytes, plan.target_bytes, plan.targets) == (4, 4, [("c.w3", "U8", (4,), 4)])


def test_shards_that_hold_nothing_wanted_need_not_be_there(tmp_path):
    tensors = [Written(name, "U8", (4,), name.encode()) for name in ("a.w1", "a.b2", "c.w3")]
    index = write_shards(tmp_path, tensors, 3)
    (tmp_path / "model-00002-of-00003.safetensors").unlink()

    assert_holds(load(index, exclude="*.b2"), [tensors[0], tensors[2]])


def test_a_glob_that_matches_nothing_is_an_error(tmp_path):
    path = write_file(tmp_path / "a.safetensors", [Written("a", "U8", (1,), b"x")])

    with pytest.raises(sluice.Error, match="nosuch"):
        load(path, include="nosuch*")


def test_tensors_keep_their_memory_alive(tmp_path):
    tensors = random_tensors(8)
    loaded = load(write_file(tmp_path / "a.safetensors", tensors))
    array = loaded["large"]
    del loaded
    gc.collect()

    assert array.tobytes() == next(tensor.data for tensor in tensors if tensor.name == "large")


def test_a_slab_is_used_again_once_its_tensors_are_gone(tmp_path):
    slab = sluice.Slab()
    first, second = random_tensors(9), random_tensors(10)
    loaded = load(write_file(tmp_path / "a.safetensors", first), slab=slab)
    assert_holds(loaded, first)
    address, size = loaded["large"].ctypes.data, slab.size
    del loaded

    loaded = load(write_file(tmp_path / "a.safetensors", first), slab=slab)

    assert (loaded["large"].ctypes.data, slab.size) == (address, size)
    del loaded
    assert_holds(load(write_file(tmp_path / "b.safetensors", second), slab=slab), second)


def test_a_slab_whose_tensors_are_alive_is_not_overwritten(tmp_path):
    slab, tensors = sluice.Slab(), random_tensors(11)
    path = write_file(tmp_path / "a.safetensors", tensors)
    loaded = load(path, slab=slab)
    assert slab.in_use

    with pytest.raises(sluice.Error, match="still alive"):
        load(path, slab=slab)
    assert_holds(loaded, tensors)


def test_progress_goes_from_nothing_to_all(tmp_path):
    path = write_file(tmp_path / "a.safetensors", [Written("a", "U8", (5000001,), bytes(5000001))])
    told = []

    load(path, progress=lambda done, total: told.append((done, total)))

    assert told[0] == (0, 5)
    assert told[-1] == (5, 5)
    assert told == sorted(told)


def test_what_progress_raises_ends_the_load_and_arrives(tmp_path):
    tensors = random_tensors(12)
    path = write_file(tmp_path / "a.safetensors", tensors)

    def refuse(done, total):
        raise LookupError("enough")

    with pytest.raises(LookupError, match="enough"):
        load(path, progress=refuse)
    assert_holds(load(path), tensors)


def test_a_signal_ends_a_load_that_runs(tmp_path):
    """A sparse file that takes seconds to read, into one buffer again and again.  No bytecode runs meanwhile, so only
    the load itself can notice the signal."""
    count, size = 512, 64 << 20
    path = write_sparse(tmp_path / "a.safetensors", count, size)
    plan = _bytes.Checkpoint.open(str(path), [], []).plan([], [], [], [], 0, 1, False, [])
    buffer, completed = np.empty(size, np.uint8), []
    options = _bytes.ReadOptions("pread", "drop", 1, None)

    def stop(number, frame):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    try:
        with pytest.raises(KeyboardInterrupt):
            place = (buffer.ctypes.data, size)
            _bytes.load_into_memory(plan, [None] * count, place, completed.append, options, None)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert len(completed) < count


def test_threads_may_load_at_the_same_time(tmp_path):
    tensors = random_tensors(13)
    path = write_file(tmp_path / "a.safetensors", tensors)
    loaded = [None] * 4

    def work(i):
        loaded[i] = load(path, progress=lambda done, total: None)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(len(loaded))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    for result in loaded:
        assert_holds(result, tensors)


def test_what_does_not_fit_is_refused_before_reading(tmp_path):
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    path = write_sparse(tmp_path / "a.safetensors", 1, 2 * memory)

    with pytest.raises(sluice.Error, match="not enough memory") as caught:
        load(path)
    assert caught.value.kind == "does_not_fit"


def test_errors_survive_pickling():
    error = pickle.loads(pickle.dumps(sluice.Error("what", "io", "remedy")))

    assert (str(error), error.kind, error.hint) == ("what\n  try: remedy", "io", "remedy")
