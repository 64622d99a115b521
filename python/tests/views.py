# SPDX-License-Identifier: GPL-2.0-only
"""share() and get() between tasks: `pvasrun -n 3 python3 views.py TEST`."""
import ctypes
import functools
import os
import sys
import threading
import time
from array import array

import pvas

try:
    import numpy as np
except ImportError:
    np = None

ME, N = pvas.rank, pvas.size


def refused(error, call, *words):
    """Does the call raise this error, with these words in its text?"""
    try:
        call()
    except error as e:
        text = str(e)
        missing = [w for w in words if w not in text]
        assert not missing, f"{missing} not in {text!r}"
        return
    raise AssertionError(f"{call} did not raise {error}")


def arrays():
    """Name -> array; each task makes the same."""
    a = np.arange(24.0).reshape(4, 6)
    record = np.dtype([("i", "<i4"), ("name", "S7"), ("m", "<f8", (2, 2)), ("O", "u1")], align=True)
    return {
        "c": a.copy(),
        "fortran": np.asfortranarray(a),
        "sliced": a.copy()[1:, ::2],
        "negative": a.copy()[::-1, ::-2],
        "transposed": np.arange(60).reshape(3, 4, 5).transpose(1, 2, 0),
        "0-d": np.array(3.5),
        "empty": np.empty((3, 0, 2)),
        "empty-negative": np.arange(6)[3:3:-1],
        "structured": np.array([(1, b"x", [[1, 2], [3, 4]], 7)] * 3, record),
        "padded": np.zeros(3, {"names": ["a", "b"], "formats": ["u1", "<f8"], "offsets": [3, 16],
                               "itemsize": 32}),
        "dates": np.array(["2020-01-01", "2026-11-23"], "M8[D]"),
        "big-endian": np.arange(4, dtype=">i4"),
        "complex": np.array([1 + 2j]),
        "half": np.ones(3, np.float16),
        "long": np.ones(3, np.longdouble),
        "unicode": np.array(["grün", "x"]),
        "broadcast": np.broadcast_to(np.arange(3), (4, 3)),
    }


def test_types():
    """Shape, strides, type, order and the right to write are kept."""
    mine = arrays()
    done = pvas.Barrier("done")
    if ME == 0:
        for name, a in mine.items():
            pvas.share(name, a)
        for _ in range(3):
            done.wait()
        assert mine["negative"][0, 0] == -1, "a write in the view did not arrive"
        return
    done.wait()
    for name, a in mine.items():
        view = pvas.get(name)
        assert view.dtype == a.dtype, (name, view.dtype, a.dtype)
        assert view.shape == a.shape, (name, view.shape)
        assert view.strides == a.strides or not a.size, (name, view.strides, a.strides)
        assert view.flags.writeable == a.flags.writeable, name
        assert view.flags.f_contiguous == a.flags.f_contiguous, name
        assert np.array_equal(view, a), (name, view)
        assert not pvas.ended(view) and not pvas.ended(view[:1] if view.ndim else view), name
    done.wait()
    if ME == 1:
        pvas.get("negative")[0, 0] = -1
    done.wait()


def test_address():
    """No copy: the address is that of the owner's array."""
    a = np.arange(1 << 16)
    pvas.share("a", a)
    pvas.share("address", array("Q", [a.ctypes.data]))
    other = (ME + 1) % N
    assert pvas.get("a", other).ctypes.data == int(pvas.get("address", other)[0])
    pvas.Barrier("done").wait()


def test_buffers():
    """Other objects with a buffer; those that can't be written to stay so."""
    if ME == 0:
        pvas.share("array", array("h", [1, 2, 3]))
        pvas.share("bytes", b"constant")
        pvas.share("bytearray", bytearray(b"changes"))
        pvas.share("ctypes", (ctypes.c_double * 3)(1, 2, 3))
        pvas.share("locked", bytearray(5), readonly=True)
        pvas.share("grid", memoryview(bytearray(12)).cast("B", (3, 4)))
    array_, bytes_ = pvas.get("array"), pvas.get("bytes")
    assert list(array_) == [1, 2, 3] and bytes(bytes_) == b"constant"
    assert memoryview(bytes_).readonly and memoryview(pvas.get("locked")).readonly
    assert not memoryview(pvas.get("bytearray")).readonly
    assert list(pvas.get("ctypes")) == [1.0, 2.0, 3.0]
    assert memoryview(pvas.get("grid")).shape == (3, 4)
    pvas.Barrier("done").wait()


def test_refused():
    """Objects without a buffer, and those of objects"""
    refused(TypeError, lambda: pvas.share("a", object()), "object")
    refused(TypeError, lambda: pvas.share("a", "text"))
    refused(TypeError, lambda: pvas.share("a", [1, 2]))
    refused(ValueError, lambda: pvas.share("", b"x"), "1 to 60")
    refused(ValueError, lambda: pvas.share("x" * 61, b"x"), "1 to 60")
    refused(ValueError, lambda: pvas.share("a\0b", b"x"))
    refused(ValueError, lambda: pvas.get("a", rank=N), f"no rank {N}")
    refused(ValueError, lambda: pvas.get("a", rank=-1), "no rank -1")
    refused(KeyError, lambda: pvas.unshare("never"), "never")
    pvas.share("twice", b"x")
    refused(ValueError, lambda: pvas.share("twice", b"y"), "'twice' already")
    if np is not None:
        refused(TypeError, lambda: pvas.share("a", np.array([object()])), "Python objects")
        refused(TypeError, lambda: pvas.share("a", np.zeros(2, [("x", "O")])), "Python objects")
    refused(TypeError, lambda: pvas.share("a", (ctypes.py_object * 2)()), "Python objects")
    refused(TypeError, lambda: pvas.ended(b"x"), "no array")


def test_unknown():
    """A name that nobody shares: the timeout, and what there is"""
    pvas.share("mine", b"x")
    pvas.Barrier("all").wait()
    began = time.monotonic()
    refused(TimeoutError, lambda: pvas.get("nothing", timeout=0.3), "no rank shares 'nothing'",
            "'mine' of rank 0 and 1 and 2")
    assert 0.3 <= time.monotonic() - began < 20
    refused(pvas.Timeout, lambda: pvas.get("nothing", rank=1, timeout=0),
            "rank 1 does not share 'nothing'")
    pvas.Barrier("done").wait()


def test_two_owners():
    """A name of two ranks: an error, or that of the rank that is asked for"""
    done = pvas.Barrier("done")
    if ME:
        pvas.share("two", bytes([ME]))
    done.wait()
    refused(ValueError, lambda: pvas.get("two"), "ranks 1, 2", "rank=")
    assert bytes(pvas.get("two", rank=1)) == b"\1" and bytes(pvas.get("two", rank=2)) == b"\2"
    done.wait()


def test_later():
    """get() waits until the name is shared."""
    if ME == 0:
        time.sleep(0.3)
        pvas.share("late", b"here")
    assert bytes(pvas.get("late", rank=0)) == b"here"
    pvas.Barrier("done").wait()


class Watched(bytearray):
    """Counts the objects that are released."""
    gone = 0

    def __del__(self):
        Watched.gone += 1


def test_kept():
    """unshare(): the memory stays until the last reader lets go, and then is released here."""
    step = pvas.Barrier("step")
    if ME == 0:
        pvas.share("kept", Watched(b"data"))
    step.wait()
    view = pvas.get("kept") if ME else None
    step.wait()
    if ME == 0:
        pvas.unshare("kept")
        assert Watched.gone == 0, "released while others read it"
        refused(TimeoutError, lambda: pvas.get("kept", timeout=0))
    step.wait()
    assert ME == 0 or bytes(view) == b"data"
    if ME == 1:
        del view
    step.wait()
    time.sleep(0.2)
    assert Watched.gone == 0, "released while one reads it"
    step.wait()
    if ME == 2:
        del view
    if ME == 0:
        until = time.monotonic() + 60
        while not Watched.gone and time.monotonic() < until:
            time.sleep(0.01)
        assert Watched.gone == 1, "not released by its owner"
    step.wait()


def test_reader_killed():
    """A reader that is killed holds nothing."""
    if ME == 0:
        pvas.share("a", Watched(b"data"))
        while not pvas.names().get("ready"):
            time.sleep(0.01)
        pvas.unshare("a")
        until = time.monotonic() + 60
        while not Watched.gone and time.monotonic() < until:
            time.sleep(0.05)
        assert Watched.gone == 1, "held by a task that is dead"
    elif ME == 1:
        view = pvas.get("a")
        assert bytes(view) == b"data"
        pvas.share("ready", b"")
        time.sleep(0.5)
        os.kill(os.getpid(), 9)


def test_owner_killed():
    """ended() says so, get() is an error; other ranks go on."""
    if ME == 0:
        pvas.share("a", bytearray(1 << 20))
        pvas.get("seen", rank=1)
        pvas.get("seen", rank=2)
        os.kill(os.getpid(), 9)
    view = pvas.get("a", rank=0)
    assert not pvas.ended(view)
    pvas.share("seen", b"")
    while not pvas.ended(view):
        time.sleep(0.01)
    refused(pvas.PeerEnded, lambda: pvas.get("a", rank=0), "rank 0 has ended")
    refused(TimeoutError, lambda: pvas.get("a", timeout=0.1))


def test_touch_dead():
    """A view of a dead task's memory, used: the signal, and a line that says whose it was"""
    if ME == 0:
        pvas.share("a", bytearray(1 << 20))
        pvas.get("seen", rank=1)
        os.kill(os.getpid(), 9)
    if ME == 1:
        view = memoryview(pvas.get("a", rank=0))
        pvas.share("seen", b"")
        while not pvas.ended(view):
            time.sleep(0.01)
        until = time.monotonic() + 60
        while time.monotonic() < until:     # its memory is freed a moment later
            view[5000]
            time.sleep(0.01)


def test_owner_waits():
    """An owner that finishes waits until its readers have."""
    if ME == 0:
        pvas.share("a", bytearray(b"x") * (1 << 20))
        pvas.get("seen", rank=1)
        pvas.get("seen", rank=2)
        return
    view = pvas.get("a", rank=0)
    pvas.share("seen", b"")
    until = time.monotonic() + 1
    while time.monotonic() < until:
        assert bytes(view[-1:]) == b"x" and not pvas.ended(view)
        time.sleep(0.01)


def test_fork():
    """A child made by fork has no views; the task keeps its own."""
    if ME == 0:
        pvas.share("a", bytearray(b"data"))
    view = pvas.get("a", rank=0)
    child = os.fork()
    if not child:
        try:
            refused(pvas.Error, lambda: pvas.get("a", rank=0), "made by fork")
            refused(pvas.Error, lambda: pvas.share("b", b""), "made by fork")
            refused(pvas.Error, lambda: pvas.Lock("l"), "made by fork")
            del view
        except BaseException as error:
            print("in the child:", error, file=sys.stderr, flush=True)
            os._exit(1)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert bytes(view) == b"data"
    pvas.Barrier("done").wait()


def test_fork_touch():
    """A child made by fork that uses a view nevertheless: the signal, and why"""
    if ME == 0:
        pvas.share("a", bytearray(1 << 20))
        pvas.Barrier("done").wait()
        return
    view = memoryview(pvas.get("a", rank=0))
    if ME == 1:
        child = os.fork()
        if not child:
            view[5000]
            os._exit(0)
        status = os.waitpid(child, 0)[1]
        assert os.WIFSIGNALED(status) and os.WTERMSIG(status) == 11, status
    pvas.Barrier("done").wait()


def test_exec():
    """A reader that executes the interpreter has left: it holds nothing, and is alone."""
    if ME == 0:
        pvas.share("a", Watched(b"data"))
        for r in range(1, N):
            pvas.get("seen", rank=r)
        pvas.unshare("a")
        until = time.monotonic() + 60
        while not Watched.gone and time.monotonic() < until:
            time.sleep(0.05)
        assert Watched.gone == 1, "held by a task that has left"
        return
    view = pvas.get("a", rank=0)
    pvas.share("seen", b"")
    time.sleep(0.3)
    assert bytes(view) == b"data"
    os.execv(sys.executable, [sys.executable, "-c", "import pvas, sys; sys.exit(pvas.size != 1)"])


def run_threads(*functions):
    """All at once; the first error of one of them is raised here."""
    errors = []

    def run(function):
        try:
            function()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(f,)) for f in functions]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    if errors:
        raise errors[0]


def test_threads():
    """Threads of all tasks share, get and let go at once."""
    def work(t):
        for i in range(40):
            pvas.share(f"{t}.{i}", array("q", [t, i]))
            assert list(pvas.get(f"{t}.{i}", rank=(ME + 1) % N)) == [t, i]

    run_threads(*(functools.partial(work, t) for t in range(3)))
    pvas.Barrier("done").wait()
    for t in range(3):
        for i in range(40):
            pvas.unshare(f"{t}.{i}")
    assert not any("." in name for name in pvas.names() if ME in pvas.names().get(name, []))


def test_churn():
    """A name that comes and goes: nobody sees memory that was freed."""
    seen, done = pvas.Counter("seen"), pvas.Barrier("done")
    until = time.monotonic() + 30 * int(os.environ.get("SLOW", 1))
    rounds = 0
    while seen.value < 300 and time.monotonic() < until:
        if ME == 0:
            rounds += 1
            pvas.share("c", bytearray([rounds % 251]) * 4096)
            if rounds % 3 == 0:
                time.sleep(0.0003)
            pvas.unshare("c")
            continue
        try:
            view = pvas.get("c", rank=0, timeout=0.01)
        except TimeoutError:
            continue
        first = bytes(view[:1])
        seen.add()
        time.sleep(0.001)       # time enough to free it, and to use it again
        assert bytes(view) == first * 4096, "others have written to it"
    done.wait()
    assert seen.value >= 300, f"seen {seen.value} times"


def test_retire_threads():
    """Threads withdraw names at once, which another task reads: none is released too early."""
    step = pvas.Barrier("step")
    if ME == 0:
        for i in range(60):
            pvas.share(f"r{i}", Watched(bytes([i]) * 64))
    step.wait()
    views = [pvas.get(f"r{i}", rank=0) for i in range(60)] if ME == 1 else []
    step.wait()
    if ME == 0:
        run_threads(*(functools.partial(lambda t: [pvas.unshare(f"r{i}") for i in range(t, 60, 3)], t)
                      for t in range(3)))
        assert Watched.gone == 0, Watched.gone
    step.wait()
    assert all(bytes(v) == bytes([i]) * 64 for i, v in enumerate(views))
    views.clear()
    step.wait()
    until = time.monotonic() + 60
    while ME == 0 and Watched.gone < 60 and time.monotonic() < until:
        time.sleep(0.01)
    assert ME or Watched.gone == 60, Watched.gone
    step.wait()


def test_dlpack():
    """An object with __dlpack__ and no buffer"""
    class Tensor:
        def __init__(self, a):
            self.a = a

        def __dlpack__(self, **how):
            return self.a.__dlpack__(**how)

        def __dlpack_device__(self):
            return self.a.__dlpack_device__()

    if ME == 0:
        pvas.share("t", Tensor(np.arange(5)))
    assert list(pvas.get("t")) == [0, 1, 2, 3, 4]
    pvas.Barrier("done").wait()


if __name__ == "__main__":
    if np is None and sys.argv[1] in ("types", "address", "dlpack"):
        print("no NumPy")
        sys.exit(77)
    if sys.argv[1] == "dlpack" and not hasattr(np.ndarray, "__dlpack__"):
        print(f"NumPy {np.__version__} has no __dlpack__")
        sys.exit(77)
    globals()["test_" + sys.argv[1]]()
