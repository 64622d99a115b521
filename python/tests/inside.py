# SPDX-License-Identifier: GPL-2.0-only
"""Python as users know it, within a task: `pvasrun -n 2 python3 inside.py TEST`."""
import ctypes
import faulthandler
import io
import multiprocessing
import os
import pdb
import signal
import subprocess
import sys
import tempfile
import threading

import pvas


def double(x):
    return 2 * x


def test_task():
    """It is a task, by the host, under the interpreter's name."""
    assert pvas.size == 2 and pvas.rank == int(os.environ["PVAS_RANK"])
    assert os.path.realpath(sys.executable) == os.path.realpath("/usr/bin/python3"), sys.executable
    assert sys.prefix == sys.base_prefix == "/usr"
    pvas.share("here", b"")
    assert bytes(pvas.get("here", rank=1 - pvas.rank)) == b""
    pvas.Barrier("end").wait()


def test_subprocess():
    """Children by sys.executable are ordinary processes of the interpreter."""
    out = subprocess.run([sys.executable, "-c", "import pvas, sys; print(pvas.size, sys.argv[1])",
                          "a b"], capture_output=True, text=True, check=True).stdout
    assert out == "1 a b\n", out
    assert subprocess.run("exit 3", shell=True, check=False).returncode == 3
    assert subprocess.check_output(["cat"], input=b"x") == b"x"


def test_multiprocessing():
    """Each way to start"""
    for how in multiprocessing.get_all_start_methods():
        with multiprocessing.get_context(how).Pool(2) as pool:
            assert pool.map(double, range(5)) == [0, 2, 4, 6, 8], how


def test_threads():
    """Threads, with a large stack"""
    threading.stack_size(64 << 20)
    done = []
    threads = [threading.Thread(target=done.append, args=(i,)) for i in range(20)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert sorted(done) == list(range(20))


def test_ctypes():
    """Calls into C and back, which need code made at run time"""
    libc = ctypes.CDLL(None)
    compare = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_int),
                               ctypes.POINTER(ctypes.c_int))(lambda a, b: a[0] - b[0])
    numbers = (ctypes.c_int * 4)(3, 1, 4, 2)
    libc.qsort(numbers, 4, ctypes.sizeof(ctypes.c_int), compare)
    assert list(numbers) == [1, 2, 3, 4]


def test_cffi():
    """The same by cffi, whose closures lie in memory that is made executable"""
    import cffi
    ffi = cffi.FFI()
    ffi.cdef("""void qsort(void *base, size_t count, size_t size,
                           int (*compare)(const void *, const void *)); int getpid(void);""")
    libc = ffi.dlopen(None)

    @ffi.callback("int(const void *, const void *)")
    def compare(a, b):
        return ffi.cast("int *", a)[0] - ffi.cast("int *", b)[0]

    numbers = ffi.new("int[]", [3, 1, 4, 2])
    libc.qsort(numbers, 4, ffi.sizeof("int"), compare)
    assert list(numbers) == [1, 2, 3, 4] and libc.getpid() == os.getpid()


def test_faulthandler():
    """Enabled before or after pvas is imported, it shows where a fault was."""
    for first in "faulthandler.enable(); import pvas", "import pvas; faulthandler.enable()":
        child = os.fork()
        if not child:
            os.execv(sys.executable, [sys.executable, "-c", f"import faulthandler; {first}"])
        assert os.waitpid(child, 0)[1] == 0
    with tempfile.TemporaryFile() as log:
        child = os.fork()
        if not child:
            faulthandler.enable(log)
            ctypes.string_at(0)
        status = os.waitpid(child, 0)[1]
        log.seek(0)
        assert os.WTERMSIG(status) == signal.SIGSEGV and b"string_at" in log.read()


def test_pdb():
    """The debugger, from a script of commands"""
    out = io.StringIO()
    pdb.Pdb(stdin=io.StringIO("p 6 * 7\ncontinue\n"), stdout=out, nosigint=True,
            readrc=False).run("x = 1")
    assert "42" in out.getvalue(), out.getvalue()


def test_signals():
    """Handlers of Python run."""
    seen = []
    signal.signal(signal.SIGUSR1, lambda *_: seen.append(1))
    os.kill(os.getpid(), signal.SIGUSR1)
    assert seen == [1]
    try:
        os.kill(os.getpid(), signal.SIGINT)
        threading.Event().wait(10)
    except KeyboardInterrupt:
        return
    raise AssertionError("no KeyboardInterrupt")


def test_packages():
    """NumPy, SciPy and h5py, those that are there"""
    import numpy
    a = numpy.random.default_rng(1).random((60, 60))
    assert numpy.allclose(a @ numpy.linalg.inv(a), numpy.eye(60))
    try:
        from scipy import fft, sparse
        assert numpy.allclose(fft.ifft(fft.fft(a)), a)
        assert sparse.eye(5).sum() == 5
    except ImportError:
        print("SciPy is not there")
    try:
        import h5py
        with tempfile.TemporaryDirectory() as folder, h5py.File(f"{folder}/a.h5", "w") as f:
            f["a"] = a
            assert (f["a"][:] == a).all()
    except ImportError:
        print("h5py is not there")


if __name__ == "__main__":
    try:
        globals()["test_" + sys.argv[1]]()
    except ModuleNotFoundError as missing:
        print(missing)
        sys.exit(77)
