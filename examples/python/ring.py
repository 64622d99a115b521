#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""mpi4py and pvas in one program: messages where data must move, views where it need not.

    pvasrun -n 4 python3 ring.py
    mpirun -n 4 pvasexec python3 ring.py
"""
import sys

import numpy as np
from mpi4py import MPI

import pvas

comm = MPI.COMM_WORLD
left, right = (comm.rank - 1) % comm.size, (comm.rank + 1) % comm.size

# A message around the ring
mine = np.full(1 << 18, float(comm.rank))
received = np.empty_like(mine)
comm.Sendrecv(mine, right, recvbuf=received, source=left)
good = (received == left).all()

# The same without a message. pvas.size is 1 if the ranks are not tasks of one space.
if pvas.size == comm.size:
    pvas.share("mine", mine)
    good &= np.array_equal(pvas.get("mine", rank=left), received)

good = comm.allreduce(bool(good), MPI.LAND)
if not good:
    sys.exit("ring.py: wrong data")
if comm.rank == 0:
    print(f"ring.py: {comm.size} ranks, of which {pvas.size} are tasks of this space: right")
comm.Barrier()
