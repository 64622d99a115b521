# SPDX-License-Identifier: LGPL-2.1-or-later
"""Lock, Counter and Barrier: between tasks, and never waiting for one that has ended.

Each lies in the memory of one task, its home, under a name. When the home is killed, all
others get PeerEnded; one that finishes keeps the memory for as long as others use it.
"""
import atexit
import threading
import time
from array import array

from . import _share, _task
from ._task import PeerEnded, _pvas

_SLICE_MS = 50      # so often a waiting task looks whether others are still there


class Broken(PeerEnded, threading.BrokenBarrierError):
    """A barrier at which a task can no longer arrive."""


class Shared:
    """Words under a name, in the home's memory."""

    def __init__(self, kind, name, words, home, timeout):
        _share._check_name(name)
        full = f"{_share.INNER}{kind}.{name}"
        if len(full.encode()) > 63:
            raise ValueError(f"{name!r}: the name of a {kind} is shorter")
        if _task.rank == home and full not in _share._shared:
            _share.publish(full, _pvas.Record(array("q", words)))
        self.what = f"{kind} {name!r}"
        self.view = _share.find(full, home if _task.attached() else None, timeout)
        self.words = _pvas.Words(self.view)

    def wait(self, i, value, until):
        """Until a word changes, for a while; False: the time is over."""
        if self.view.ended:
            raise PeerEnded(f"the task has ended in whose memory {self.what} was")
        left = until - time.monotonic()
        if left <= 0:
            return False
        self.words.wait(i, value, int(min(left * 1000, _SLICE_MS)) + 1)
        return True


def _until(timeout):
    return float("inf") if timeout is None or timeout < 0 else time.monotonic() + timeout


# A task in a word: its generation above, and its index, never 0, below.

def _me():
    me = _pvas.self() if _task.attached() else None
    return me[1] << 32 | me[0] if me else 1


def _left(task):
    return _task.attached() and _pvas.left(task & 0xffffffff, task >> 32)


def _ended(task):
    return _task.attached() and _pvas.ended(task & 0xffffffff, task >> 32)


class Lock:
    """A lock between tasks, with the interface of threading.Lock.

    If its holder ends, one task that waits for it gets PeerEnded, and the lock is free
    again: what it protects may be half changed.
    """
    _HOLDER, _WAITERS, _ABANDONED = range(3)
    _between_threads = {}   # name -> lock: the word tells tasks apart, and not their threads
    _held = {}              # name -> the lock and the thread of this task that holds it

    def __init__(self, name, home=0, timeout=60):
        self._shared = Shared("lock", name, [0, 0, 0], home, timeout)
        self._name = name, home
        self._threads = self._between_threads.setdefault(self._name, threading.Lock())

    def acquire(self, blocking=True, timeout=-1):
        """True; False: not in time, or not at once."""
        until = _until(timeout if blocking else 0)
        if not self._threads.acquire(blocking, timeout):
            return False
        done = False
        try:
            done = self._acquire(until)
            if done:
                self._held[self._name] = self, threading.current_thread()
        finally:
            if not done:
                # An exception of a signal's handler may come after it was taken.
                self._held.pop(self._name, None)
                self._shared.words.cas(self._HOLDER, _me(), 0)
                self._threads.release()
        return done

    def _acquire(self, until):
        words = self._shared.words
        while not words.cas(self._HOLDER, 0, _me()):
            holder = words.load(self._HOLDER)
            # A task that is about to end has threads and handlers that still run.
            gone = holder and (words.load(self._ABANDONED) == holder or _ended(holder))
            # In this order: this task may be killed between the two.
            if gone and words.cas(self._HOLDER, holder, 0):
                words.cas(self._ABANDONED, holder, 0)
                words.wake(self._HOLDER)
                raise PeerEnded(f"rank {_task.rank_of(holder & 0xffffffff)} has ended while it held "
                                f"{self._shared.what}, which is free again")
            if holder and not self._wait(holder, until):
                return False
        words.cas(self._ABANDONED, _me(), 0)
        return True

    def _wait(self, holder, until):
        words = self._shared.words
        words.add(self._WAITERS, 1)
        try:
            return self._shared.wait(self._HOLDER, holder, until)
        finally:
            words.add(self._WAITERS, -1)

    def release(self):
        """Only in the task that holds it."""
        words = self._shared.words
        held = self._held.pop(self._name, None)
        if not held or not words.cas(self._HOLDER, _me(), 0):
            raise RuntimeError(f"this task does not hold {self._shared.what}")
        self._threads.release()
        if words.load(self._WAITERS):
            words.wake(self._HOLDER, 1)

    @classmethod
    def _abandon(cls):
        """At the end of the main thread: nobody will release what it, or an ended one, holds."""
        for lock, thread in list(cls._held.values()):
            if thread is threading.main_thread() or not thread.is_alive():
                words = lock._shared.words
                try:
                    words.store(cls._ABANDONED, _me())
                    words.wake(cls._HOLDER)
                except PeerEnded:
                    pass

    def locked(self):
        """Does any task hold it?"""
        return self._shared.words.load(self._HOLDER) != 0

    def __enter__(self):
        self.acquire()
        return self

    def __exit__(self, *error):
        self.release()


@atexit.register
def _leave():
    if _pvas.self() is not None:
        Lock._abandon()


class Counter:
    """An integer of 64 bits that all tasks change without a lock."""

    def __init__(self, name, value=0, home=0, timeout=60):
        self._shared = Shared("counter", name, [value], home, timeout)

    def add(self, n=1):
        """The value after the addition."""
        return self._shared.words.add(0, n) + n

    def next(self):
        """The value before it is increased: each number goes to one task only."""
        return self._shared.words.add(0, 1)

    @property
    def value(self):
        return self._shared.words.load(0)

    @value.setter
    def value(self, value):
        self._shared.words.store(0, value)


class Barrier:
    """A barrier of some ranks, by default all, with the interface of threading.Barrier.

    If one of them ends, those that wait for it, and all who come later, get an error
    that is both PeerEnded and threading.BrokenBarrierError.
    """
    _PHASE, _BROKEN, _ARRIVED, _MEMBERS = range(4)     # then how often each member has arrived
    _between_threads = {}   # name -> lock: a task arrives once in a phase

    def __init__(self, name, ranks=None, home=0, timeout=60):
        self._ranks = sorted(set(range(_task.size) if ranks is None else ranks))
        if _task.rank not in self._ranks:
            raise ValueError(f"rank {_task.rank} does not belong to this barrier")
        words = [0] * (self._MEMBERS + 2 * self.parties)
        self._shared = Shared("barrier", name, words, home, timeout)
        if memoryview(self._shared.view).nbytes != 8 * len(words):
            raise ValueError(f"{self._shared.what} has another number of ranks")
        self._words = self._shared.words
        self._threads = self._between_threads.setdefault((name, home), threading.Lock())
        member = self._MEMBERS + self._ranks.index(_task.rank)
        self._arrivals = member + self.parties     # not of this object: of this task
        self._mine = self._words.load(self._arrivals)
        self._words.store(member, _me())

    @property
    def parties(self):
        return len(self._ranks)

    @property
    def broken(self):
        return self._words.load(self._BROKEN) != 0

    def abort(self):
        """Nobody passes any more."""
        self._words.store(self._BROKEN, 1)
        self._words.wake(self._PHASE)

    def _check(self):
        """Is each member there still?"""
        for i, rank in enumerate(self._ranks):
            member = self._words.load(self._MEMBERS + i) or (_task.attached() and
                                                             _task.index_of(rank))
            if _left(member) and self._words.load(self._PHASE) < self._mine:
                self.abort()
                raise Broken(f"rank {rank} has ended, and can't arrive at {self._shared.what}")
        if self.broken:
            raise Broken(f"{self._shared.what} is broken")

    def wait(self, timeout=None):
        """Until all have called it. Returns a number from 0, another one in each task."""
        until = _until(timeout)
        left = -1 if until == float("inf") else min(timeout, threading.TIMEOUT_MAX)
        if not self._threads.acquire(timeout=left):
            raise threading.BrokenBarrierError(f"{self._shared.what}: another thread waits there")
        try:
            return self._wait(until)
        finally:
            self._threads.release()

    def _wait(self, until):
        self._mine = self._words.load(self._arrivals)
        if self.broken:
            self._check()
        try:
            self._mine += 1
            self._words.store(self._arrivals, self._mine)
            order = self._arrive()
            self._pass(until)
        except BaseException:
            # Also that of a signal's handler. It has arrived, and would again at its next call.
            if self._words.load(self._PHASE) < self._mine:
                self.abort()
            raise
        return order

    def _arrive(self):
        order = self.parties * self._mine - self._words.add(self._ARRIVED, 1) - 1
        if not order:
            self._words.store(self._PHASE, self._mine)
            self._words.wake(self._PHASE)
        return order

    def _pass(self, until):
        while self._words.load(self._PHASE) < self._mine:
            if not self._shared.wait(self._PHASE, self._mine - 1, until):
                raise threading.BrokenBarrierError(f"{self._shared.what}: not all came in time")
            self._check()
