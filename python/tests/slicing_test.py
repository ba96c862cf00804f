"""What is read for an index, against numpy's own indexing."""

import random

import numpy as np
import pytest
from sluice._slicing import select


def read(array, index):
    box, rest = select(index, array.shape)
    return array[tuple(slice(begin, end) for begin, end in box)][(*rest, ...)]


def random_index(chance, extent):
    if extent and chance.random() < 0.3:
        return chance.randrange(-extent, extent)
    bounds = [chance.choice([None, chance.randint(-9, 9)]) for _ in range(2)]
    return slice(*bounds, chance.choice([None, 1, 2, 3]))


@pytest.mark.parametrize("seed", range(50))
def test_an_index_selects_what_it_selects_in_memory(seed):
    chance = random.Random(seed)
    shape = tuple(chance.choice([0, 1, 3, 6]) for _ in range(chance.randint(0, 4)))
    array = np.arange(np.prod(shape, dtype=int)).reshape(shape)
    for _ in range(20):
        index = tuple(random_index(chance, extent) for extent in shape[: chance.randint(0, len(shape))])
        if chance.random() < 0.3:
            index = (*index, ...)

        np.testing.assert_array_equal(read(array, index), array[index])


def test_an_ellipsis_stands_for_the_dimensions_that_are_not_named():
    array = np.arange(24).reshape(2, 3, 4)

    np.testing.assert_array_equal(read(array, (..., 1)), array[..., 1])
    np.testing.assert_array_equal(read(array, (1, ..., slice(1, 3))), array[1, ..., 1:3])


def test_the_box_holds_no_more_than_what_lies_between_first_and_last():
    assert select((slice(2, 9, 3), 1), (10, 4)).box == [(2, 9), (1, 2)]
    assert select(slice(2, 8, 3), (10,)).box == [(2, 6)]
    assert select(slice(5, 2), (10,)).box == [(5, 5)]


@pytest.mark.parametrize("index", [3, -4, (0, 0, 0), (..., ...), slice(None, None, -1)])
def test_what_lies_outside_is_an_index_error(index):
    with pytest.raises(IndexError):
        select(index, (3, 2))


@pytest.mark.parametrize("index", [[0, 1], True, None, 1.0, np.array([0])])
def test_other_kinds_of_index_are_a_type_error(index):
    with pytest.raises((TypeError, IndexError)):
        select((index,), (3, 2))
