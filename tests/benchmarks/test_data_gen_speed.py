"""How fast data is made and checked, beside plain writing and plain copying in the same run.

The sides take turns, so that both meet the same disk and the same neighbours, and the best
round of each is compared: what disturbs a round only ever makes it slower. Who goes first changes,
because who writes after the other may get the memory pages that the other has just given back.
"""

import os
import random
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from data_gen import Recipe, ensure

pytestmark = pytest.mark.benchmark

WRITTEN = 1 << 29
CHECKED = 1 << 26
ROUNDS = 15


def best_seconds(*sides: Callable[[], object], rounds: int = ROUNDS) -> list[float]:
    """Return the best time of each side over rounds in random order; the first does not count."""
    best = [float("inf")] * len(sides)
    order = random.Random(0)
    for counted in [False] + [True] * rounds:
        for side in order.sample(range(len(sides)), len(sides)):
            start = time.perf_counter()
            sides[side]()
            if counted:
                best[side] = min(best[side], time.perf_counter() - start)
    return best


@pytest.mark.parametrize("shape", [(128,), (64, 64)])
def test_npy_is_made_at_four_fifths_of_the_speed_of_plain_writing(
    tmp_path: Path, shape: tuple[int, ...]
) -> None:
    block = np.random.default_rng(0).bytes(1 << 22)

    def write_plainly() -> None:
        with (tmp_path / "plain").open("wb", buffering=0) as file:
            for _ in range(WRITTEN // len(block)):
                file.write(block)
            os.fsync(file.fileno())
        (tmp_path / "plain").unlink()

    def make() -> None:
        made = ensure("npy", tmp_path, size=WRITTEN, row_shape=shape, progress=False)
        made.rows_path.unlink()

    plain, ours = best_seconds(write_plainly, make)
    print(
        f"\n{shape}: plain write {WRITTEN / plain / 1e6:,.0f} MB/s, "
        f"made {WRITTEN / ours / 1e6:,.0f} MB/s, ratio {plain / ours:.2f}"
    )
    assert plain / ours >= 0.8


@pytest.mark.parametrize("shape", [(128,), (64, 64)])
def test_right_rows_cost_about_as_much_as_copying_them(shape: tuple[int, ...]) -> None:
    recipe = Recipe(CHECKED // (4 * int(np.prod(shape))), shape)
    indices = np.random.default_rng(0).permutation(recipe.count)
    rows, room = recipe.rows(indices), np.empty((recipe.count, *shape), np.float32)
    batches = [slice(start, start + 256) for start in range(0, recipe.count, 256)]
    copy, normals, made, checked = best_seconds(
        lambda: room.__setitem__(..., rows),
        lambda: np.random.default_rng(0).standard_normal(out=room, dtype=np.float32),
        lambda: recipe.rows(indices),
        lambda: [recipe.count_wrong(rows[batch], indices[batch]) for batch in batches],
    )
    sides = {"copy": copy, "fresh normals": normals, "rows": made, "count_wrong": checked}
    speeds = {side: f"{CHECKED / best / 1e6:,.0f} MB/s" for side, best in sides.items()}
    print(f"\n{shape}: {speeds}")
    for seconds in (made, checked):
        assert copy / seconds >= 0.08
        assert normals / seconds >= 2
