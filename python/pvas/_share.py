# SPDX-License-Identifier: LGPL-2.1-or-later
"""share() and get(): memory of one task under a name for all."""
import ast
import atexit
import errno
import sys
import threading
import time

from . import _foreign, _task
from ._task import Error, PeerEnded, Timeout, _pvas

ARRAY = "py:"       # before the names that users give
INNER = "py!"       # before those of locks and the like, which names() does not list
_PATIENCE = 60      # default of get(), in seconds

_shared = {}        # full name -> Record, of this task
_retired = []       # Records without a name that readers may hold
_retiring = threading.RLock()
_WARN_AFTER = 5     # seconds, at the end of the interpreter
_dtypes = {}
_numpy = None
_reaper = None


# ---- NumPy, if it is there ----

def numpy():
    """The module, or None."""
    global _numpy
    if _numpy is None:
        try:
            import numpy as module
            import numpy.lib.format
            _numpy = module
        except ImportError:
            _numpy = False
    return _numpy or None


def _record_of_array(array, readonly):
    if array.dtype.hasobject:
        raise TypeError(f"cannot share an array of {array.dtype}: it holds Python objects, which "
                        "belong to one interpreter")
    text = repr(numpy().lib.format.dtype_to_descr(array.dtype))
    try:
        return _pvas.Record(array, text, readonly)
    except ValueError:
        # The buffer protocol has no dates, for one: then as bytes, with NumPy's own type.
        return _pvas.Record(array.view(f"V{array.dtype.itemsize}"), text, readonly)


def _record_of_foreign(obj, readonly):
    """Of an object without a buffer that says in another way where its memory is; else None"""
    try:
        memoryview(obj).release()
        return None
    except (TypeError, BufferError):
        pass
    for method, reader in (("__arrow_c_array__", _foreign.arrow), ("__dlpack__", _foreign.dlpack)):
        if hasattr(obj, method):
            buffer, dtype, constant = reader(obj)
            return _pvas.Record(buffer, repr(dtype), readonly or constant)
    return None


def record_of(obj, readonly=False):
    """A Record of an object's memory."""
    if "numpy" in sys.modules and numpy():
        if not isinstance(obj, numpy().ndarray) and hasattr(obj, "__dlpack__"):
            obj = _foreign.dlpack_array(obj, numpy())
        if isinstance(obj, numpy().ndarray):
            return _record_of_array(obj, readonly)
    return _record_of_foreign(obj, readonly) or _pvas.Record(obj, "", readonly)


def _dtype_of(text):
    if text not in _dtypes:
        _dtypes[text] = numpy().lib.format.descr_to_dtype(ast.literal_eval(text))
    return _dtypes[text]


def array_of(view):
    """An ndarray over it, or without NumPy a memoryview."""
    if not numpy():
        return memoryview(view)
    shape, text, offset, strides = view.layout()
    if text:
        return _numpy.ndarray(shape, _dtype_of(text), view.span(), offset, strides)
    try:
        return _numpy.asarray(memoryview(view))
    except (TypeError, ValueError):
        return memoryview(view)     # a format that NumPy does not know


# ---- the owner's side ----

def _check_name(name):
    if not isinstance(name, str) or not 1 <= len(name.encode()) <= 60 or "\0" in name:
        raise ValueError("a name is a str of 1 to 60 bytes")


def publish(name, record):
    """Export a Record under a full name."""
    if name in _shared:
        raise ValueError(f"this task shares {name[len(ARRAY):]!r} already (pvas.unshare it first)")
    if _task.attached():
        _pvas.export(name, record.address)
    _shared[name] = record


def share(name, obj, readonly=False):
    """Let all tasks use the memory of obj under this name, without a copy.

    obj: an array of NumPy, or any object with a buffer (PEP 3118), __dlpack__ or
    __arrow_c_array__ (of elements of one size, without nulls; it is read-only). Until
    unshare(name) this task keeps it, and after that as long as others have views of it.
    readonly: others get views that can't be written to.
    """
    _check_name(name)
    publish(ARRAY + name, record_of(obj, readonly))


def unshare(name):
    """Withdraw a name. Views that other tasks have remain valid."""
    record = _shared.pop(ARRAY + name, None)
    if record is None:
        raise KeyError(f"this task does not share {name!r}")
    if _task.attached():
        _pvas.unexport(ARRAY + name)
    retire(record)


def retire(*records):
    """Keep Records for as long as readers hold them."""
    global _reaper
    with _retiring:
        _retired.extend(records)
    del records
    collect()
    with _retiring:
        if _retired and (_reaper is None or not _reaper.is_alive()):
            _reaper = threading.Thread(target=_reap, name="pvas", daemon=True)
            _reaper.start()


def collect():
    """Release what nobody holds any more."""
    with _retiring:
        held = _pvas.held()
        free = [r for r in _retired if r.address not in held]
        _retired[:] = [r for r in _retired if r.address in held]
    # Not under the lock: this may run methods of the user's objects
    del free


def _reap():
    """A reader that is killed does not say that it lets go: look again each second."""
    while _retired:
        seq = _pvas.released()
        collect()
        if _retired:
            _pvas.wait_released(seq, 1000)


# ---- the reader's side ----

def _owners(name, rank):
    """[(partition, address)]"""
    if rank is not None:
        indices = [_task.index_of(rank)]
    else:
        indices = _pvas.indices()
    found = [(i, _pvas.find(name, i)) for i in indices]
    return [(i, address) for i, address in found if address is not None]


def _missing(name, rank, timeout):
    where = "no rank" if rank is None else f"rank {rank}"
    does = "shares" if rank is None else "does not share"
    there = ", ".join(f"{n!r} of rank {' and '.join(map(str, r))}" for n, r in names().items())
    return Timeout(f"{where} {does} {name[len(ARRAY):]!r} within {timeout:g} s "
                   f"(there is {there or 'nothing shared'})")


def _find_here(name, timeout):
    """Without a space: another thread may share it yet."""
    until = time.monotonic() + timeout
    while name not in _shared:
        if time.monotonic() >= until:
            raise _missing(name, None, timeout)
        time.sleep(min(0.01, timeout))
    return _pvas.View(-1, _shared[name].address)


def _find_at(name, found):
    """A View of the only owner; None: it has withdrawn the name meanwhile."""
    if len(found) > 1:
        ranks = ", ".join(str(_task.rank_of(i)) for i, _ in found)
        raise ValueError(f"{name[len(ARRAY):]!r} is shared by ranks {ranks}: choose one, by rank=")
    try:
        return _pvas.View(*found[0], name)
    except KeyError:
        return None


def find(name, rank, timeout):
    """A View of what has this full name."""
    if timeout is None:
        timeout = float("inf")
    index = -1 if rank is None else _task.index_of(rank)
    if not _task.attached():
        return _find_here(name, timeout)
    until = time.monotonic() + timeout
    gen = 0 if rank is None else _pvas.gen_of(index)
    while True:
        found = _owners(name, rank)
        view = _find_at(name, found) if found else None
        if view is not None:
            return view
        if rank is not None and _pvas.left(index, gen):
            raise PeerEnded(f"rank {rank} has ended, and does not share {name[len(ARRAY):]!r}")
        left = until - time.monotonic()
        if left <= 0:
            raise _missing(name, rank, timeout)
        _pvas.wait_name(name, index, int(min(left, 1) * 1000) + 1)


def get(name, rank=None, timeout=_PATIENCE):
    """The memory that a task shares under this name, as an ndarray or memoryview.

    rank: whose; None: of the only rank that shares it. timeout: seconds to wait until it
    is shared, None: for ever. The memory remains its owner's, which keeps it as long as
    the array, or a view of it, exists here. If the owner is killed, the memory is gone:
    see ended().
    """
    _check_name(name)
    return array_of(find(ARRAY + name, rank, timeout))


def ended(array):
    """Has the task ended whose memory this array of get() is? Then don't touch it."""
    base = array
    while not isinstance(base, _pvas.View):
        below = getattr(base, "base", None)
        if below is None:
            below = getattr(base, "obj", None)
        if below is None:
            raise TypeError("this is no array of pvas.get()")
        base = below
    return base.ended


def names():
    """All that is shared: {name: [rank, ...]}"""
    if not _task.attached():
        return {n[len(ARRAY):]: [0] for n in _shared if n.startswith(ARRAY)}
    found = {}
    for index in _pvas.indices():
        for name in _pvas.names_of(index):
            if name.startswith(ARRAY):
                found.setdefault(name[len(ARRAY):], []).append(_task.rank_of(index))
    return found


def _pointer(name, rank, timeout):
    """That a program in C exports by pvas_name_export(name)"""
    if not _task.attached():
        raise Error("there is no space (start this with pvasrun)")
    index = -1 if rank is None else _task.index_of(rank)
    ms = -1 if timeout is None else int(timeout * 1000)
    error = -_pvas.wait_name(name, index, ms)
    if error == errno.EOWNERDEAD:
        raise PeerEnded(f"rank {rank} has ended, and does not export {name!r}")
    found = [] if error else _owners(name, rank)
    if not found:
        raise Timeout(f"no task exports {name!r} within {timeout:g} s")
    return found[0][1]


def memory(name, length, rank=None, timeout=_PATIENCE, writable=False):
    """length bytes at the pointer that a program in C exports by pvas_name_export(name).

    A memoryview. Nothing keeps that memory there, and nothing says how much there is.
    """
    return _pvas.memory(_pointer(name, rank, timeout), length, writable)


def peek(name, length, rank=None, offset=0, timeout=_PATIENCE):
    """A copy of such memory, as bytes: PeerEnded, and never a fault, if its task has ended."""
    return _pvas.peek(_pointer(name, rank, timeout) + offset, length)


# ---- the end ----

def _wait_for_working():
    """For readers that are not at their own end. Was the user told?"""
    warn_at, told = time.monotonic() + _WARN_AFTER, False
    while True:
        seq = _pvas.released()
        collect()
        held = _pvas.held(True)
        if not any(r.address in held for r in _retired):
            return told
        if not told and time.monotonic() > warn_at:
            told = True
            print(f"pvas: rank {_task.rank} has finished, and waits for tasks that use its arrays",
                  file=sys.stderr, flush=True)
        _pvas.wait_released(seq, 200)


@atexit.register
def _leave():
    """Memory ends with its task, which waits for readers, but not at the end of an error."""
    if _pvas.self() is None:
        return
    _pvas.leave()
    for name in list(_shared):
        _pvas.unexport(name)
        with _retiring:
            _retired.append(_shared.pop(name))
    wait = getattr(sys, "last_value", None) is None
    told = wait and _wait_for_working()
    with _retiring:
        records = _retired[:]
        _retired.clear()
    _pvas.keep(records, wait, told)
