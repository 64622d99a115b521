# SPDX-License-Identifier: GPL-2.0-only
"""Ends of tasks that others meet in the middle of something. usage: ends.py TEST"""
import atexit
import os
import signal
import sys
import threading
import time
from array import array


def save():
    """As a library's, which was imported first: it is called last."""
    time.sleep(1)
    print("saved", sum(view[:10]), flush=True)


if os.environ["PVAS_RANK"] == "0" and sys.argv[1] == "used_by_late_handler":
    atexit.register(save)

import pvas     # noqa: E402: the order is what is tested

ME = pvas.rank
view = None


def ended(rank):
    return pvas._pvas.ended(pvas._task.index_of(rank), 0)


def test_used_by_late_handler():
    """The owner waits for a reader whose handlers of atexit still run."""
    global view
    if ME == 1:
        pvas.share("a", array("q", range(100000)))
    if ME == 0:
        view = pvas.get("a", 1)
    pvas.Barrier("b").wait()


def test_both_read():
    """Two that finish, and read each other's memory, don't wait for each other."""
    global view
    pvas.share(f"of {ME}", array("q", range(1000)))
    view = pvas.get(f"of {(ME + 1) % pvas.size}")
    pvas.Barrier("b").wait()


def unpickle():
    """Called by pickle.loads(), in the middle of an answer: its owner ends."""
    pvas.share("reading", b"x")
    while not ended(1):
        time.sleep(0.01)
    return "end"


class Mark:
    def __reduce__(self):
        return unpickle, ()


def answer():
    """A long one, of a worker that ends as soon as it is being read."""
    def end():
        pvas.get("reading", 0)
        os._exit(0)
    threading.Thread(target=end, daemon=True).start()
    return [Mark()] + [(i, str(i)) for i in range(10000)]


def test_answer_of_ended():
    """An answer is whole, however its worker ends."""
    with pvas.Pool(1) as pool:
        assert len(pool.apply(answer)) == 10001


class DyingWords:
    """Words of a waiter that is killed once it has noted that the lock's holder has ended"""

    def __init__(self, words):
        self._words = words

    def __getattr__(self, name):
        return getattr(self._words, name)

    def cas(self, i, old, new):
        done = self._words.cas(i, old, new)
        if done and not new:
            os.kill(os.getpid(), signal.SIGKILL)
        return done


def test_waiter_killed():
    """Its death between two steps does not keep the others from the lock of an ended task."""
    lock, barrier = pvas.Lock("l"), pvas.Barrier("b")
    if ME == 1:
        pvas.share("a", array("q", range(10)))
        lock.acquire()
    kept = pvas.get("a", 1) if ME == 0 else None
    if ME == 2:
        lock._shared.words = DyingWords(lock._shared.words)
    barrier.wait()
    if ME == 2:
        lock.acquire()
    if ME == 0:
        while not ended(2):
            time.sleep(0.01)
        try:
            assert lock.acquire(timeout=30)
        except pvas.PeerEnded:
            pass
        print("the lock is free", flush=True)
    del kept


if __name__ == "__main__":
    globals()["test_" + sys.argv[1]]()
