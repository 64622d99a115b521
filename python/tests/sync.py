# SPDX-License-Identifier: GPL-2.0-only
"""Lock, Counter and Barrier between tasks: `pvasrun -n 3 python3 sync.py TEST`."""
import os
import signal
import sys
import threading
import time
from array import array

import pvas

ME, N = pvas.rank, pvas.size


def caught(error, call):
    try:
        call()
    except error as e:
        return str(e)
    raise AssertionError(f"{call} did not raise {error}")


def die():
    os.kill(os.getpid(), signal.SIGKILL)


def test_lock():
    """Excludes: tasks add to an integer that is not atomic."""
    lock, done = pvas.Lock("l"), pvas.Barrier("done")
    if ME == 0:
        pvas.share("sum", array("q", [0]))
    total = memoryview(pvas.get("sum"))
    for _ in range(300):
        with lock:
            total[0] = total[0] + 1
    done.wait()
    assert total[0] == 300 * N, total[0]
    assert not lock.locked()
    done.wait()


def test_lock_limits():
    """Not at once, not in time, not the holder"""
    lock, step = pvas.Lock("l", home=1), pvas.Barrier("step")
    if ME == 0:
        lock.acquire()
    step.wait()
    if ME:
        assert not lock.acquire(blocking=False)
        began = time.monotonic()
        assert not lock.acquire(timeout=0.2)
        assert time.monotonic() - began >= 0.2
        assert "does not hold" in caught(RuntimeError, lock.release)
        assert lock.locked()
    step.wait()
    if ME == 0:
        lock.release()
    step.wait()
    with lock:
        pass
    step.wait()


def test_lock_threads():
    """Threads of one task exclude each other, too."""
    inside = []

    def work():
        lock = pvas.Lock("l")
        for _ in range(50):
            with lock:
                inside.append(1)
                assert len(inside) == 1
                inside.pop()

    threads = [threading.Thread(target=work) for _ in range(3)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not inside
    pvas.Barrier("done").wait()


def test_holder_killed():
    """One that waits gets the error, and the lock is free again."""
    lock, told = pvas.Lock("l", home=1), pvas.Counter("told", home=1)
    pvas.Barrier("step", home=1).wait()
    if ME == 0:
        lock.acquire()
        pvas.share("held", b"")
        time.sleep(0.2)
        die()
    pvas.get("held", timeout=60)
    try:
        with lock:
            pass
    except pvas.PeerEnded as error:
        assert "rank 0 has ended while it held lock 'l'" in str(error), error
        told.add()
    both = pvas.Barrier("both", ranks=[1, 2], home=1)
    both.wait()
    assert told.value == 1, told.value
    with lock:
        pass
    both.wait()


def leaves_while_watched(hold):
    """Rank 0's main thread comes to its end, but waits for a reader of its array."""
    lock, inside = pvas.Lock("l", home=1), pvas.Counter("inside", home=1)
    pvas.Barrier("step", home=1).wait()
    if ME == 0:
        hold(lock, inside)
        pvas.share("held", b"x")
        pvas.Barrier("read", home=1).wait()
        return None
    view = pvas.get("held", rank=0)
    pvas.Barrier("read", home=1).wait()
    while "held" in pvas.names():
        time.sleep(0.01)
    return lock, inside, view


def test_lock_of_thread():
    """Nobody gets a lock that a thread holds while its main thread is at its end."""
    def work(lock, inside, ready):
        with lock:
            inside.add()
            ready.set()
            time.sleep(2)
            inside.add(-1)

    def hold(lock, inside):
        ready = threading.Event()
        threading.Thread(target=work, args=(lock, inside, ready), daemon=True).start()
        ready.wait()

    job = leaves_while_watched(hold)
    if job:
        lock, inside, _ = job
        with lock:
            assert inside.value == 0, "two hold the lock"


def test_lock_of_main_thread():
    """A lock that it holds at its end is free, with an error to one that waits."""
    job = leaves_while_watched(lambda lock, inside: lock.acquire())
    if job:
        lock, inside, _ = job
        try:
            lock.acquire()
        except pvas.PeerEnded as error:
            assert "rank 0 has ended while it held lock 'l'" in str(error), error
            inside.add()
            lock.acquire()
        lock.release()
        pvas.Barrier("both", ranks=[1, 2], home=1).wait()
        assert inside.value == 1, inside.value


def test_home_killed():
    """All who use the lock get the error."""
    lock, counter = pvas.Lock("l"), pvas.Counter("c")
    pvas.Barrier("step").wait()
    if ME == 0:
        with lock:
            time.sleep(0.2)
            die()
    until = time.monotonic() + 60

    def all_gone():     # its memory is freed a moment later
        while time.monotonic() < until:
            with lock:
                counter.add()

    caught(pvas.PeerEnded, all_gone)
    time.sleep(0.5)
    caught(pvas.PeerEnded, lambda: [counter.add() for _ in range(1 << 20)])
    caught(pvas.PeerEnded, lambda: [lock.acquire(blocking=False) or lock.locked() for _ in range(1 << 20)])


def test_barrier():
    """Nobody is ahead by more than one; the numbers are those of the tasks."""
    barrier = pvas.Barrier("b")
    assert barrier.parties == N and not barrier.broken
    pvas.share("round", array("q", [0]))
    mine = memoryview(pvas.get("round", ME))
    others = [memoryview(pvas.get("round", r)) for r in range(N)]
    for i in range(100):
        mine[0] = i
        assert 0 <= barrier.wait() < N
        assert all(i <= o[0] <= i + 1 for o in others), (i, [o[0] for o in others])
        barrier.wait()


def test_barrier_objects():
    """An object for each call, ranks in any order, several threads: it is the barrier of its name."""
    arrived = pvas.Counter("arrived")

    def arrive(n):
        ranks = range(N) if n % 2 else reversed(range(N))
        if ME == n % N:
            time.sleep(0.02)
        arrived.add()
        pvas.Barrier("b", ranks).wait()

    for n in range(1, 21):
        arrive(n)
        assert n * N <= arrived.value <= (n + 1) * N, (n, arrived.value)
        pvas.Barrier("read").wait()
    threads = [threading.Thread(target=arrive, args=[n]) for n in range(8)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    pvas.Barrier("read").wait()
    assert arrived.value == 28 * N
    if ME:
        caught(ValueError, lambda: pvas.Barrier("b", [1, 2]))
    pvas.Barrier("read").wait()


def test_member_killed():
    """Those who wait, and those who come later, get the error."""
    barrier = pvas.Barrier("b", home=1)
    barrier.wait()
    if ME == 0:
        time.sleep(0.2)
        die()
    for _ in range(2):
        text = caught(threading.BrokenBarrierError, barrier.wait)
    assert barrier.broken and "barrier 'b'" in text
    caught(pvas.PeerEnded, barrier.wait)


def test_member_leaves():
    """One that finishes is waited for no more, though it waits for readers itself."""
    barrier = pvas.Barrier("b")
    barrier.wait()
    if ME == 0:
        return
    text = caught(threading.BrokenBarrierError, lambda: barrier.wait(timeout=60))
    assert ME or "rank 0" in text


def test_barrier_limits():
    """Not in time; aborted; not a member"""
    barrier = pvas.Barrier("b", home=1)
    if ME == 0:
        assert "rank 0" in caught(ValueError, lambda: pvas.Barrier("x", ranks=[1, 2]))
        caught(threading.BrokenBarrierError, lambda: barrier.wait(timeout=0.2))
    else:
        while not barrier.broken:
            time.sleep(0.01)
        caught(threading.BrokenBarrierError, barrier.wait)
    pvas.Barrier("done").wait()


def test_barrier_interrupt():
    """A rank that a signal's handler takes out of wait() has arrived: nobody passes by that twice."""
    barrier, late = pvas.Barrier("b"), pvas.Counter("late")
    done = pvas.Barrier("done")
    if ME == 0:
        signal.signal(signal.SIGALRM, lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        caught(KeyboardInterrupt, barrier.wait)
    elif ME == N - 1:
        time.sleep(1)
        late.add(1)
    try:
        barrier.wait()
        assert late.value
    except threading.BrokenBarrierError:
        pass
    done.wait()


def test_counter():
    """Each number goes to one task."""
    counter, done = pvas.Counter("c", 5), pvas.Barrier("done")
    pvas.share("mine", array("q", [counter.next() for _ in range(200)]))
    done.wait()
    numbers = sorted(x for r in range(N) for x in memoryview(pvas.get("mine", r)))
    assert numbers == list(range(5, 5 + 200 * N))
    done.wait()
    assert counter.add(-1) < 5 + 200 * N
    done.wait()
    counter.value = -7
    assert counter.value == -7
    done.wait()


def test_absent_home():
    """A rank that never makes it: the timeout"""
    if ME:
        caught(TimeoutError, lambda: pvas.Lock("l", timeout=0.2))
        caught(ValueError, lambda: pvas.Counter("c", home=N))
    pvas.Barrier("done").wait()


def test_interrupt():
    """A signal's handler runs while the task waits."""
    lock = pvas.Lock("l")
    if ME == 0:
        lock.acquire()
    pvas.Barrier("step").wait()
    if ME == 1:
        signal.signal(signal.SIGALRM, lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        caught(KeyboardInterrupt, lock.acquire)
    pvas.Barrier("done").wait()
    if ME == 0:
        lock.release()
    pvas.Barrier("end").wait()
    with lock:
        pass


if __name__ == "__main__":
    globals()["test_" + sys.argv[1]]()
