# SPDX-License-Identifier: GPL-2.0-only
"""Two ranks exchange a NumPy array by mpi4py's Send and Recv; rank 0 prints WHAT X UNIT VALUE.

A sample is the best of several pieces of some milliseconds. Sizes in bytes from $SIZES.
"""
import os
import time

import numpy as np
from mpi4py import MPI

PIECES = 8
SECONDS = 0.004     # of a piece, about


def exchange(world, data, rounds):
    """Seconds for so many round trips"""
    peer = 1 - world.rank
    began = time.perf_counter()
    for _ in range(rounds):
        if world.rank == 0:
            world.Send(data, peer)
            world.Recv(data, peer)
        else:
            world.Recv(data, peer)
            world.Send(data, peer)
    return time.perf_counter() - began


def main():
    world = MPI.COMM_WORLD
    for size in map(int, os.environ["SIZES"].split()):
        data = np.ones(size, np.uint8)
        once = exchange(world, data, 10) / 10
        rounds = world.bcast(max(1, int(SECONDS / once)))
        best = min(exchange(world, data, rounds) for _ in range(PIECES)) / rounds / 2
        if world.rank == 0:
            print("sendrecv", size, "us", f"{best * 1e6:.6g}", flush=True)


main()
