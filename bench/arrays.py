# SPDX-License-Identifier: GPL-2.0-only
"""One way to use an array of another process: `arrays.py SYSTEM` prints WHAT X UNIT VALUE.

    pvasrun -n 8 python3 arrays.py pvas
    python3 arrays.py shared_memory         # or pipe, or fork

Sizes in bytes from $SIZES; the array that all processes read has $LARGE. See sections/python.
"""
import os
import statistics
import sys
import time

import numpy as np

SIZES = [int(size) for size in os.environ.get("SIZES", "1024 1048576 33554432").split()]
LARGE = int(os.environ.get("LARGE", 256 << 20))
PROCESSES = 8
ROUNDS = 15


def show(what, x, unit, value):
    print(what, x, unit, f"{value:.6g}", flush=True)


def timed(function, rounds=ROUNDS):
    """The median, in microseconds. A round should end before the scheduler takes the processor."""
    times = []
    for _ in range(rounds):
        began = time.perf_counter()
        kept = function()
        times.append(time.perf_counter() - began)
        del kept
    return statistics.median(times) * 1e6


def show_pss(pids):
    """Of all these processes together"""
    total = 0
    for pid in pids:
        with open(f"/proc/{pid}/smaps_rollup") as file:
            total += sum(int(line.split()[1]) for line in file if line.startswith("Pss:"))
    show("pss", LARGE >> 20, "KiB", total)


def pvas_tasks():
    import pvas
    barrier = pvas.Barrier("step")
    if pvas.rank == 0:
        for size in SIZES:
            pvas.share(str(size), np.ones(size // 8))
    barrier.wait()
    if pvas.rank == 1:
        for size in SIZES:
            get = timed(lambda: [pvas.get(str(size), rank=0) for _ in range(50)], 301) / 50
            show("attach", size, "us", get)
            show("use", size, "us", get)
    barrier.wait()
    if pvas.rank == 0:
        for size in SIZES:
            pvas.unshare(str(size))
        pvas.share("large", np.ones(LARGE // 8))
    barrier.wait()
    assert pvas.get("large").sum() == LARGE // 8
    barrier.wait()
    if pvas.rank == 0:
        show_pss([os.getpid()])     # one mm: the figure of one task is that of all
    barrier.wait()


def attach(name, connection):
    from multiprocessing import shared_memory
    connection.send(timed(lambda: shared_memory.SharedMemory(name).close()))


def use_shared_memory(size):
    import multiprocessing
    from multiprocessing import shared_memory
    data = np.ones(size // 8)

    def copy():
        memory = shared_memory.SharedMemory(create=True, size=size)
        np.ndarray(data.shape, data.dtype, memory.buf)[:] = data
        memory.close()
        memory.unlink()

    copied = timed(copy)
    memory = shared_memory.SharedMemory(create=True, size=size)
    ours, theirs = multiprocessing.Pipe()
    child = multiprocessing.Process(target=attach, args=(memory.name, theirs))
    child.start()
    attached = ours.recv()
    child.join()
    memory.close()
    memory.unlink()
    show("attach", size, "us", attached)
    show("use", size, "us", copied + attached)


def echo(connection):
    for _ in range(ROUNDS):
        connection.recv()
        connection.send(None)


def use_pipe(size):
    import multiprocessing
    data = np.ones(size // 8)
    ours, theirs = multiprocessing.Pipe()
    child = multiprocessing.Process(target=echo, args=(theirs,))
    child.start()

    def once():
        ours.send(data)
        ours.recv()

    show("use", size, "us", timed(once))
    child.join()


def read(data, barrier):
    assert data.sum() == LARGE // 8
    barrier.wait()
    barrier.wait()


def read_by_all(data):
    """Children of a fork; Pss when each has read the array"""
    import multiprocessing
    barrier = multiprocessing.Barrier(PROCESSES)
    children = [multiprocessing.Process(target=read, args=(data, barrier)) for _ in range(PROCESSES - 1)]
    for child in children:
        child.start()
    barrier.wait()
    show_pss([os.getpid(), *(child.pid for child in children)])
    barrier.wait()
    for child in children:
        child.join()


def shared_memory_processes():
    from multiprocessing import shared_memory
    for size in SIZES:
        use_shared_memory(size)
    memory = shared_memory.SharedMemory(create=True, size=LARGE)
    shared = np.ndarray(LARGE // 8, float, memory.buf)
    shared[:] = 1
    read_by_all(shared)
    del shared
    memory.close()
    memory.unlink()


def pipe_processes():
    for size in SIZES:
        use_pipe(size)


def main():
    system = sys.argv[1].removesuffix("-again")
    if system == "pvas":
        pvas_tasks()
        return
    import multiprocessing
    multiprocessing.set_start_method("fork")
    if system == "shared_memory":
        shared_memory_processes()
    elif system == "pipe":
        pipe_processes()
    elif system == "fork":
        read_by_all(np.ones(LARGE // 8))
    else:
        sys.exit(f"arrays.py: {system}: no such system")


main()
