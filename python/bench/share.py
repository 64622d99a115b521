#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Figures for doc/python.md: what it takes to use an array of another process.

    pvasrun -n 9 python3 share.py           # PVAS: get(), and 8 readers of one array
    python3 share.py                        # its rivals: shared_memory, a pipe, fork

Prints a line for each figure, tab-separated: way, subject, value, unit.
"""
import multiprocessing
import os
import statistics
import sys
import time
from multiprocessing import shared_memory

import numpy as np

import pvas

SIZES = (1 << 10, 1 << 20, 32 << 20)
LARGE = 256 << 20
READERS = 8
ROUNDS = 15


def show(way, subject, value, unit):
    print(way, subject, f"{value:.3g}", unit, sep="\t", flush=True)


def timed(function, rounds=ROUNDS):
    """The median, in microseconds. A round should end before the scheduler takes the processor."""
    times = []
    for _ in range(rounds):
        began = time.perf_counter()
        kept = function()
        times.append(time.perf_counter() - began)
        del kept
    return statistics.median(times) * 1e6


def pss(pids):
    """Of all these processes, in MiB"""
    total = 0
    for pid in pids:
        with open(f"/proc/{pid}/smaps_rollup") as file:
            total += sum(int(line.split()[1]) for line in file if line.startswith("Pss:"))
    return total / 1024


# ---- PVAS ----

def as_tasks():
    barrier = pvas.Barrier("step")
    if pvas.rank == 0:
        for size in SIZES:
            pvas.share(str(size), np.ones(size // 8))
        large = np.ones(LARGE // 8)
        pvas.share("large", large)
    barrier.wait()
    if pvas.rank == 1:
        for size in SIZES:
            for _ in range(100):
                pvas.get(str(size), rank=0)
            show("pvas", f"get {size >> 10} KiB",
                 timed(lambda: [pvas.get(str(size), rank=0) for _ in range(50)], 301) / 50, "us")
    barrier.wait()
    if pvas.rank:
        assert pvas.get("large").sum() == LARGE // 8
    barrier.wait()
    if pvas.rank == 0:
        # One mm: the figure of one task is that of all.
        show("pvas", f"{pvas.size - 1} readers of {LARGE >> 20} MiB, Pss of the job", pss([os.getpid()]),
             "MiB")
    barrier.wait()


# ---- the rivals ----

def attach(name, size, connection):
    def once():
        memory = shared_memory.SharedMemory(name)
        memory.close()
        return None

    connection.send(timed(once))


def by_shared_memory(size):
    data = np.ones(size // 8)

    def copy():
        memory = shared_memory.SharedMemory(create=True, size=size)
        np.ndarray(data.shape, data.dtype, memory.buf)[:] = data
        memory.close()
        memory.unlink()

    show("shared_memory", f"copy in {size >> 10} KiB", timed(copy), "us")
    memory = shared_memory.SharedMemory(create=True, size=size)
    ours, theirs = multiprocessing.Pipe()
    child = multiprocessing.Process(target=attach, args=(memory.name, size, theirs))
    child.start()
    show("shared_memory", f"attach {size >> 10} KiB", ours.recv(), "us")
    child.join()
    memory.close()
    memory.unlink()


def echo(connection, rounds):
    for _ in range(rounds):
        connection.recv()
        connection.send(None)


def by_pipe(size):
    data = np.ones(size // 8)
    ours, theirs = multiprocessing.Pipe()
    child = multiprocessing.Process(target=echo, args=(theirs, ROUNDS))
    child.start()

    def once():
        ours.send(data)
        ours.recv()

    show("pipe", f"send {size >> 10} KiB", timed(once), "us")
    child.join()


def read(data, ready, done):
    assert data().sum() == LARGE // 8
    ready.wait()
    done.wait()


def readers(way, data):
    """Pss of the job when all have read the array"""
    ready, done = multiprocessing.Barrier(READERS + 1), multiprocessing.Barrier(READERS + 1)
    children = [multiprocessing.Process(target=read, args=(data, ready, done)) for _ in range(READERS)]
    for child in children:
        child.start()
    ready.wait()
    show(way, f"{READERS} readers of {LARGE >> 20} MiB, Pss of the job",
         pss([os.getpid(), *(c.pid for c in children)]), "MiB")
    done.wait()
    for child in children:
        child.join()


def as_processes():
    for size in SIZES:
        by_shared_memory(size)
        by_pipe(size)
    large = np.ones(LARGE // 8)
    readers("fork", lambda: large)
    memory = shared_memory.SharedMemory(create=True, size=LARGE)
    shared = np.ndarray(large.shape, large.dtype, memory.buf)
    shared[:] = large
    del large
    readers("shared_memory", lambda: shared)
    del shared
    memory.close()
    memory.unlink()


if len(sys.argv) > 1:
    sys.exit(__doc__)
multiprocessing.set_start_method("fork")
if pvas.size > 1:
    as_tasks()
else:
    as_processes()
