# SPDX-License-Identifier: GPL-2.0-only
"""share() of objects without a buffer: `pvasrun -n 2 python3 foreign.py TEST`.

The producers are made here, by ctypes, from the documents of Arrow's C data interface and of
DLPack: so each test runs, whatever is installed. Rank 0 shares, the others read.
"""
import ctypes
import importlib.util
import struct
import sys
import time

import pvas
from pvas._foreign import _Array, _Schema, _Tensor

ME = pvas.rank
new_capsule = ctypes.pythonapi.PyCapsule_New
new_capsule.restype = ctypes.py_object
new_capsule.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
Destructor = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
kept = []           # what is pointed to: a producer in C would have it on the heap
released = []


def refused(call, *words):
    """Is it a TypeError with these words?"""
    try:
        call()
    except TypeError as e:
        missing = [w for w in words if w not in str(e)]
        assert not missing, f"{missing} not in {e}"
        return
    raise AssertionError("it was not refused")


# ---- Arrow ----

class ArrowArray:
    """As an array of Arrow's: elements of a struct format, from an offset on"""

    def __init__(self, kind, code, values, offset=0, bitmap=None, rows=0):
        self.data = ctypes.create_string_buffer(struct.pack(f"<{len(values)}{code}", *values))
        self.bitmap = None if bitmap is None else ctypes.create_string_buffer(bitmap)
        self.schema, self.array = _Schema(format=kind.encode()), _Array()
        self.fill(self.array, len(values) - offset, offset)
        if rows:
            self.wrap(rows)
        self.destroy = Destructor(self.on_destroy)
        self.schema.release = self.array.release = ctypes.cast(self.destroy, ctypes.c_void_p).value

    def fill(self, array, length, offset):
        """One array with a bitmap and data"""
        here = [self.bitmap and ctypes.addressof(self.bitmap), ctypes.addressof(self.data)]
        self.buffers = (ctypes.c_void_p * 2)(*here)
        array.length, array.offset, array.n_buffers = length, offset, 2
        array.null_count = -1 if self.bitmap else 0
        array.buffers = self.buffers

    def wrap(self, rows):
        """A list of rows, of which this is all the elements"""
        self.items, self.item = _Array(), _Schema(format=self.schema.format)
        self.fill(self.items, self.array.length, self.array.offset)
        width = self.array.length // rows
        self.schema.format = f"+w:{width}".encode()
        self.array.length, self.array.offset, self.array.n_buffers = rows, 0, 1
        self.item.release = self.items.release = 1
        self.item_pointers = (ctypes.POINTER(_Schema) * 1)(ctypes.pointer(self.item))
        self.items_pointers = (ctypes.POINTER(_Array) * 1)(ctypes.pointer(self.items))
        self.schema.children, self.array.children = self.item_pointers, self.items_pointers
        self.schema.n_children = self.array.n_children = 1

    def on_destroy(self, _, into=released):
        """Of either capsule"""
        into.append(self)

    def __arrow_c_array__(self, requested_schema=None):
        kept.append(self)
        return (new_capsule(ctypes.addressof(self.schema), b"arrow_schema", self.destroy),
                new_capsule(ctypes.addressof(self.array), b"arrow_array", self.destroy))


ARRAYS = {
    "int32": (("i", "i", [1, -2, 3, 4]), [1, -2, 3, 4]),
    "offset": (("g", "d", [0.5, 1.5, 2.5], 1), [1.5, 2.5]),
    "uint8": (("C", "B", [7, 255]), [7, 255]),
    "no nulls, not counted": (("l", "q", [5, 6]), [5, 6]),
    "rows": (("s", "h", [1, 2, 3, 4, 5, 6], 0, None, 2), [[1, 2, 3], [4, 5, 6]]),
    "empty": (("f", "f", []), []),
}


def test_arrow():
    """Values, types, offsets and rows; never writable; refused if it can't be one block"""
    done = pvas.Barrier("done")
    if ME == 0:
        for name, (how, _) in ARRAYS.items():
            pvas.share(name, ArrowArray(*how))
        refused(lambda: pvas.share("n", ArrowArray("i", "i", [1, 2], 0, b"\x01")), "nulls")
        refused(lambda: pvas.share("u", ArrowArray("u", "i", [0, 1])), "one size")
        refused(lambda: pvas.share("b", ArrowArray("b", "B", [1])), "one size")
        refused(lambda: pvas.share("+s", ArrowArray("+s", "i", [1])), "one by one")
    done.wait()
    for name, (_, values) in ARRAYS.items():
        view = memoryview(pvas.get(name))
        assert view.readonly, name
        assert view.tolist() == values, (name, view.tolist())
    done.wait()


def test_arrow_times():
    """Types that only NumPy has a name for"""
    import numpy as np
    if ME == 0:
        pvas.share("t", ArrowArray("tsu:UTC", "q", [0, 1000000]))
        pvas.share("half", ArrowArray("e", "e", [0.5, -2.0]))
    assert list(pvas.get("t")) == [np.datetime64(0, "us"), np.datetime64(1, "s")]
    assert pvas.get("half").dtype == np.float16 and list(pvas.get("half")) == [0.5, -2.0]
    pvas.Barrier("done").wait()


def wait_for(condition):
    """A reader's end is noticed within a second."""
    until = time.monotonic() + 60
    while not condition() and time.monotonic() < until:
        time.sleep(0.01)
    assert condition()


def test_arrow_release():
    """In the owner, when the last reader has let go, and not before"""
    step = pvas.Barrier("step")
    if ME == 0:
        pvas.share("a", ArrowArray("i", "i", list(range(1000))))
    step.wait()
    view = pvas.get("a") if ME else None
    step.wait()
    if ME == 0:
        pvas.unshare("a")
        time.sleep(0.2)
        assert not released
    step.wait()
    assert ME == 0 or memoryview(view)[999] == 999
    del view
    step.wait()
    if ME == 0:
        wait_for(lambda: len(released) == 2)     # the schema, and the array
    assert ME == 0 or not released


# ---- DLPack ----

class Tensor:
    """A tensor in the processor's memory"""

    def __init__(self, code, bits, letter, values, shape, strides=None, device=1):
        self.data = ctypes.create_string_buffer(struct.pack(f"={len(values)}{letter}", *values))
        self.shape = (ctypes.c_int64 * len(shape))(*shape)
        self.strides = strides and (ctypes.c_int64 * len(strides))(*strides)
        self.destroy = Destructor(self.on_destroy)
        self.device = device
        self.tensor = _Tensor(data=ctypes.addressof(self.data), device=device, ndim=len(shape),
                              code=code, bits=bits, lanes=1, shape=self.shape,
                              deleter=ctypes.cast(self.destroy, ctypes.c_void_p).value)
        if strides:
            self.tensor.strides = self.strides

    def on_destroy(self, address, into=released):
        """The deleter, not the capsule's destructor"""
        assert address == ctypes.addressof(self.tensor)
        into.append(self)

    def __dlpack_device__(self):
        return self.device, 0

    def __dlpack__(self, **how):
        kept.append(self)
        return new_capsule(ctypes.addressof(self.tensor), b"dltensor", None)


def test_dlpack():
    """Shape, type and writes; the deleter is called once, when the reader has let go"""
    step = pvas.Barrier("step")
    if ME == 0:
        assert "numpy" not in sys.modules
        tensor = Tensor(2, 32, "f", [1, 2, 3, 4, 5, 6], (2, 3))
        pvas.share("t", tensor)
        pvas.share("order", Tensor(0, 64, "q", [1, 2], (1, 2), (7, 1)))
        refused(lambda: pvas.share("s", Tensor(0, 64, "q", [1, 2, 3, 4], (2, 2), (1, 2))), "NumPy")
        refused(lambda: pvas.share("d", Tensor(0, 64, "q", [1], (1,), None, 2)), "device")
        refused(lambda: pvas.share("b", Tensor(4, 16, "H", [1], (1,))), "no type")
    step.wait()
    if ME:
        view = memoryview(pvas.get("t"))
        assert view.tolist() == [[1, 2, 3], [4, 5, 6]] or view.shape == (2, 3), view.tolist()
        assert memoryview(pvas.get("order")).tolist() == [[1, 2]]
        assert not view.readonly
        view.cast("B")[0:4] = struct.pack("=f", 9.0)
    step.wait()
    if ME == 0:
        assert struct.unpack("=f", tensor.data.raw[:4]) == (9.0,)
        pvas.unshare("t")
        time.sleep(0.2)
        assert not released
    step.wait()
    if ME:
        del view
    step.wait()
    if ME == 0:
        wait_for(lambda: released == [tensor])


class OnlyDLPack:
    """Of an array of NumPy: share() would take its buffer"""

    def __init__(self, array):
        self.array = array

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()

    def __dlpack__(self, **how):
        tensor = self.array.__dlpack__(**how)
        self.array = None       # the capsule alone keeps it
        return tensor


OTHERS = {
    "scalar": (2.5, "f4"), "empty": ([], "u2"), "no rows": ([[], []], "i4"), "bytes": ([1, 255], "u1"),
    "wide": ([[1 + 2j, 3]], "c16"),
}


def test_dlpack_numpy():
    """NumPy's tensors, with strides; NumPy lets go of the array when the reader has"""
    import numpy as np
    step = pvas.Barrier("step")
    array = np.arange(24, dtype=np.int16).reshape(4, 6)
    if ME == 0:
        pvas.share("t", OnlyDLPack(array[::2, 1:]))
        for name, other in OTHERS.items():
            pvas.share(name, OnlyDLPack(np.array(*other)))
        pvas.share("f", OnlyDLPack(np.asfortranarray(array.astype(np.complex64))))
        held = sys.getrefcount(array.base)
    step.wait()
    if ME:
        view = pvas.get("t")
        assert (view == array[::2, 1:]).all() and view.strides == (24, 2), view.strides
        view[1, 4] = -5
        assert pvas.get("f").flags.f_contiguous and (pvas.get("f") == array).all()
        for name, other in OTHERS.items():
            there, here = pvas.get(name), np.array(*other)
            assert there.dtype == here.dtype and there.shape == here.shape, name
            assert (there == here).all() and there.flags.writeable, name
        del view
    step.wait()
    if ME == 0:
        assert array[2, 5] == -5
        pvas.unshare("t")
        wait_for(lambda: sys.getrefcount(array.base) < held)


def test_pyarrow():
    """Arrow's own arrays"""
    try:
        import pyarrow
    except ImportError:
        print("no pyarrow")
        sys.exit(77)
    if ME == 0:
        pvas.share("a", pyarrow.array([1, 2, 3], pyarrow.int16()).slice(1))
    assert memoryview(pvas.get("a")).tolist() == [2, 3]
    pvas.Barrier("done").wait()


if __name__ == "__main__":
    if sys.argv[1] in ("arrow_times", "dlpack_numpy") and not importlib.util.find_spec("numpy"):
        print("no NumPy")
        sys.exit(77)
    if sys.argv[1] == "dlpack_numpy":
        import numpy
        if not hasattr(numpy.ndarray, "__dlpack__"):
            print(f"NumPy {numpy.__version__} has no __dlpack__")
            sys.exit(77)
    globals()["test_" + sys.argv[1]]()
