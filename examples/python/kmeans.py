#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""k-means: rank 0 has the one array of points, and all tasks work on it where it is.

    pvasrun -n 4 python3 kmeans.py --mib 1024
"""
import argparse
import sys
import time

import numpy as np

import pvas

DIMENSIONS = 8
CHUNK = 1 << 16     # points at a time: the distances of all would be larger than the points


def make_points(count, k):
    """Clouds around k corners, in a known order"""
    random = np.random.default_rng(1)
    points = random.standard_normal((count, DIMENSIONS))
    centres = random.uniform(-100, 100, (k, DIMENSIONS))
    points += centres[np.arange(count) % k]
    return points, centres


def assign(points, centres, sums, counts):
    """Add each point to the sum of its nearest centre."""
    sums[:] = 0
    counts[:] = 0
    for begin in range(0, len(points), CHUNK):
        chunk = points[begin:begin + CHUNK]
        distances = (centres ** 2).sum(1) - 2 * chunk @ centres.T
        nearest = distances.argmin(1)
        counts += np.bincount(nearest, minlength=len(centres))
        for d in range(DIMENSIONS):
            sums[:, d] += np.bincount(nearest, chunk[:, d], len(centres))


def iterate(points, centres, rounds):
    """Each task has its slice of the points; all read everybody's sums."""
    k = len(centres)
    sums, counts = np.zeros((k, DIMENSIONS)), np.zeros(k, int)
    pvas.share("sums", sums)
    pvas.share("counts", counts)
    barrier = pvas.Barrier("round")
    all_sums = [pvas.get("sums", rank=r) for r in range(pvas.size)]
    all_counts = [pvas.get("counts", rank=r) for r in range(pvas.size)]
    begin, end = (len(points) * r // pvas.size for r in (pvas.rank, pvas.rank + 1))
    for _ in range(rounds):
        assign(points[begin:end], centres, sums, counts)
        barrier.wait()
        total = np.maximum(sum(all_counts), 1)
        centres = sum(all_sums) / total[:, None]
        barrier.wait()
    return centres


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mib", type=int, default=64, help="size of the array")
    parser.add_argument("-k", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    if pvas.rank == 0:
        points, right = make_points((options.mib << 20) // (8 * DIMENSIONS), options.k)
        pvas.share("points", points, readonly=True)
    points = pvas.get("points", timeout=None)
    began = time.monotonic()
    # A point of each cloud to begin with, so that the answer is known
    centres = iterate(points, points[:options.k].copy(), options.rounds)
    took = time.monotonic() - began
    if pvas.rank:
        return
    error = np.abs(centres - right).max()
    if error > 1:
        sys.exit(f"kmeans.py: wrong answer: {error:.3g} from the right centres")
    print(f"kmeans.py: {pvas.size} tasks, one array of {points.nbytes >> 20} MiB, {options.rounds} "
          f"rounds: {took:.2f} s, centres right to {error:.2g}")


main()
