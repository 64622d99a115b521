#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Heat in a plate, as examples/heat.c: each task has a block of rows, and at its edges reads
the rows of its neighbours where they are.

    pvasrun -n 4 python3 heat.py --size 720 --steps 60 --verify
"""
import argparse
import sys
import time

import numpy as np

import pvas

FLOW = 0.2      # the share of a difference that flows in a step


def first_row(size, rank):
    return size * rank // pvas.size


def set_rows(rows, first):
    """A pattern without symmetry: a row in a wrong place is detected."""
    r, c = np.indices(rows.shape)
    rows[:] = ((r + first) * 131 + (c + 1) * 17) % 1009 / 10.0


def step_rows(to, up, rows, down):
    """Each is a block of rows, with a cold cell at either end."""
    inner = rows[:, 1:-1]
    to[:, 1:-1] = inner + FLOW * (up[:, 1:-1] + down[:, 1:-1] + rows[:, :-2] + rows[:, 2:] - 4 * inner)


def solve_serially(size, steps):
    old = np.zeros((size + 2, size + 2))
    new = np.zeros_like(old)
    set_rows(old[1:-1, 1:-1], 0)
    for _ in range(steps):
        step_rows(new[1:-1], old[:-2], old[1:-1], old[2:])
        old, new = new, old
    return old[1:-1]


def neighbour(rank, row, cold):
    """One row of a neighbour, before and after a step: a view of its memory"""
    if not 0 <= rank < pvas.size:
        return cold
    return pvas.get("rows", rank=rank)[:, row:row + 1 or None]


def solve(mine, steps, barrier):
    cold = np.zeros_like(mine[:, :1])
    above, below = neighbour(pvas.rank - 1, -1, cold), neighbour(pvas.rank + 1, 0, cold)
    for t in range(steps):
        old, new = mine[t % 2], mine[1 - t % 2]
        barrier.wait()
        if len(old) == 1:
            step_rows(new, above[t % 2], old, below[t % 2])
            continue
        step_rows(new[:1], above[t % 2], old[:1], old[1:2])
        step_rows(new[1:-1], old[:-2], old[1:-1], old[2:])
        step_rows(new[-1:], old[-2:-1], old[-1:], below[t % 2])
    barrier.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=720)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--verify", action="store_true")
    options = parser.parse_args()
    if options.size < pvas.size:
        sys.exit("heat.py: --size is less than the number of tasks")
    first = first_row(options.size, pvas.rank)
    rows = first_row(options.size, pvas.rank + 1) - first
    mine = np.zeros((2, rows, options.size + 2))
    set_rows(mine[0, :, 1:-1], first)
    pvas.share("rows", mine)
    barrier = pvas.Barrier("step")
    began = time.monotonic()
    solve(mine, options.steps, barrier)
    took = time.monotonic() - began
    # Before the others end; they wait, then, until rank 0 lets go.
    parts = [pvas.get("rows", rank=r)[options.steps % 2] for r in range(pvas.size) if not pvas.rank]
    barrier.wait()
    if pvas.rank:
        return
    verified = ""
    if options.verify:
        if not np.array_equal(np.vstack(parts), solve_serially(options.size, options.steps)):
            sys.exit("heat.py: wrong answer")
        verified = ", bit for bit the serial answer"
    print(f"heat.py: {pvas.size} tasks, {options.size} x {options.size} cells, {options.steps} steps: "
          f"{took:.2f} s{verified}")


main()
