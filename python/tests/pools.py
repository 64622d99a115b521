# SPDX-License-Identifier: GPL-2.0-only
"""Pool: `pvasrun -n 3 python3 pools.py TEST`, or without pvasrun."""
import os
import signal
import sys
import threading
import time

import pvas
from pvas import _pool, _pvas, _task

try:
    import numpy as np
except ImportError:
    np = None

WORKERS = max(1, pvas.size - 1)
start = None


def square(x):
    return x * x


def whoami(_=None):
    return pvas.rank


def fail(x):
    if x == 3:
        raise ValueError(f"not {x}")
    return x


def set_start(value):
    global start
    start = value


def get_start(_):
    return start


def die(x):
    if x == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(0.01)
    return x


def caught(error, call):
    try:
        call()
    except error as e:
        return e
    raise AssertionError(f"{call} did not raise {error}")


def test_calls():
    """As multiprocessing.Pool"""
    with pvas.Pool() as pool:
        assert pool.map(square, range(100)) == [x * x for x in range(100)]
        assert pool.map(square, []) == []
        assert pool.map(square, range(7), chunksize=3) == [x * x for x in range(7)]
        assert pool.starmap(pow, [(2, 3), (3, 2)]) == [8, 9]
        assert list(pool.imap(square, range(50))) == [x * x for x in range(50)]
        assert sorted(pool.imap_unordered(square, range(50), chunksize=4)) == \
            [x * x for x in range(50)]
        assert pool.apply(int, ("ff",), {"base": 16}) == 255
        if pvas.size > 1:
            assert set(pool.map(whoami, range(200), chunksize=1)) <= set(range(1, pvas.size))
    caught(ValueError, lambda: pool.map(square, [1]))


def test_lazy():
    """imap takes no more of an endless iterable than it needs."""
    def endless():
        n = 0
        while True:
            yield n
            n += 1

    with pvas.Pool() as pool:
        results = pool.imap(square, endless())
        assert [next(results) for _ in range(20)] == [x * x for x in range(20)]
        assert pool.map(square, [9]) == [81], "another call beside it"


def test_two_pools():
    """Workers serve one pool after the other, and pools of fewer workers."""
    for _ in range(3):
        with pvas.Pool(1) as pool:
            assert set(pool.map(whoami, range(20))) == {1 if pvas.size > 1 else 0}
        with pvas.Pool(initializer=set_start, initargs=(7,)) as pool:
            assert set(pool.map(get_start, range(20))) == {7}
    caught(ValueError, lambda: pvas.Pool(0))


def leave_at_two(x):
    if x == 2:
        time.sleep(2)
        os._exit(0)
    return x


def test_worker_ends():
    """A new pool's initializer waits for a worker that ends in the work for another pool."""
    if pvas.size == 1:
        return
    one = pvas.Pool()
    calls = one.imap(leave_at_two, [1, 2])
    assert next(calls) == 1
    other = pvas.Pool(initializer=set_start, initargs=(3,))
    if WORKERS > 1:
        assert other.map(get_start, range(20)) == [3] * 20
    else:
        caught(pvas.PeerEnded, lambda: other.map(get_start, range(20)))
    caught(pvas.PeerEnded, lambda: next(calls))


def test_errors():
    """An exception comes back, with the traceback in the worker; the pool goes on."""
    with pvas.Pool() as pool:
        error = caught(ValueError, lambda: pool.map(fail, range(5)))
        assert str(error) == "not 3" and "in fail" in str(error.__cause__)
        if pvas.size > 1:
            caught(Exception, lambda: pool.map(lambda x: x, [1]))
            caught(pvas.Error, lambda: pool.apply(open, ("/dev/null",)))
        assert pool.map(square, [2]) == [4]


def test_threads():
    """Threads use one pool, and two pools the same workers."""
    errors = []

    def use(pool):
        try:
            for i in range(10):
                assert pool.map(square, range(i)) == [x * x for x in range(i)]
        except BaseException as error:
            errors.append(error)

    with pvas.Pool() as one, pvas.Pool(initializer=set_start, initargs=(1,)) as other:
        threads = [threading.Thread(target=use, args=(p,)) for p in (one, one, other)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    assert not errors, errors


def make(n):
    return np.full(n, float(pvas.rank))


def add_one(a):
    a += 1


def total(a):
    return float(a.sum())


def test_arrays():
    """Arrays are passed by pointer: results lie in the worker, arguments in rank 0."""
    with pvas.Pool() as pool:
        results = pool.map(make, [1 << 17] * 4, chunksize=1)
        assert all(r.sum() == r[0] * (1 << 17) for r in results)
        if pvas.size > 1:
            assert all(r[0] >= 1 and not r.flags.owndata for r in results)
            results[0][0] = 5
            one = pool.apply(make, (1 << 17,))
            assert one.ctypes.data not in {r.ctypes.data for r in results}
            caught(ValueError, lambda: pool.apply(add_one, (one,)))
        big = np.arange(1 << 17, dtype=float).reshape(128, -1)
        assert pool.map(total, [big, np.asfortranarray(big), big[:64]]) == \
            [big.sum(), big.sum(), big[:64].sum()]
        for _ in range(200):
            r = pool.apply(make, (1 << 17,))
            assert r[0] == r[-1]


def test_worker_killed():
    """The call that waits for it gets an error; without a worker all calls do."""
    with pvas.Pool() as pool:
        caught(pvas.PeerEnded, lambda: pool.map(die, range(6), chunksize=1))
        assert len(pool.map(square, range(10))) == 10
        caught(pvas.PeerEnded, lambda: pool.map(die, [2], chunksize=1))
        caught(pvas.PeerEnded, lambda: pool.map(square, [1]))


def test_master_killed():
    """Workers end, with an error."""
    with pvas.Pool() as pool:
        pool.map(square, range(4))
        os.kill(os.getpid(), signal.SIGKILL)


def test_interrupted():
    """sys.exit() within the pool: workers end as well."""
    with pvas.Pool() as pool:
        pool.map(square, range(4))
        sys.exit(3)


class SlowWords:
    """The words of a worker that takes long to read where its work is."""

    def __init__(self, words):
        self._words = words

    def load(self, i):
        if (i - _pool._FIRST) % _pool._PER_WORKER == _pool._REQUEST:
            time.sleep(0.3)
        return self._words.load(i)

    def __getattr__(self, name):
        return getattr(self._words, name)


class SlowShared(_pool.Shared):
    def __init__(self, *args):
        super().__init__(*args)
        self.words = SlowWords(self.words)


def test_ends_while_work_begins():
    """Rank 0 ends while workers read where their work is: that stays right."""
    if pvas.rank:
        _pool.Shared = SlowShared
    pool = pvas.Pool()
    results = pool.imap(square, range(20), chunksize=1)
    assert next(results) == 0
    sys.exit(0)


def test_comes_late():
    """Rank 0 has ended before a worker makes its pool: that one was not needed."""
    first = _task.index_of(0)
    gen = _pvas.gen_of(first)
    pvas.Barrier("all know rank 0").wait()
    while pvas.rank == 2 and not _pvas.left(first, gen):
        time.sleep(0.01)
    assert pvas.Pool().apply(square, (3,)) == 9
    sys.exit(0)


if __name__ == "__main__":
    if np is None and sys.argv[1] == "arrays":
        sys.exit(77)
    globals()["test_" + sys.argv[1]]()
    if pvas.rank:
        sys.exit("a worker returned from Pool()")
