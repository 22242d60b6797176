"""Chunks: every row once, in order, padded to few sizes."""

import numpy as np
import pytest

from partwise.batching import SIZES, in_chunks


@pytest.mark.parametrize("rows", [1, 2, 17, 300, 1000])
@pytest.mark.parametrize("smallest", [1, 64])
def test_every_row_once_in_sizes_that_are_few(rows, smallest):
    sizes = []

    def double(chunk, count):
        sizes.append(len(chunk["x"]))
        assert count <= len(chunk["x"])
        return {"y": 2 * chunk["x"]}

    x = np.arange(rows)
    out = in_chunks(double, {"x": x}, smallest=smallest)
    assert np.array_equal(out["y"], 2 * x)
    assert set(sizes) <= set(SIZES)
    assert min(sizes) >= smallest
    if rows == 1:
        assert sizes == [smallest]
