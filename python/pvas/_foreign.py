# SPDX-License-Identifier: LGPL-2.1-or-later
"""Memory of objects without a buffer: Arrow's C data interface, and DLPack.

arrow() and dlpack() return (buffer, description of the type as NumPy's, read-only?), and need
elements that lie one after the other; dlpack_array() returns an ndarray. Either keeps the
object's memory; its release callback is called when the last reader has let go, in this task.
"""
import ctypes
import math

_get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_get_pointer.restype = ctypes.c_void_p
_get_pointer.argtypes = (ctypes.py_object, ctypes.c_char_p)
_set_name = ctypes.pythonapi.PyCapsule_SetName
_set_name.argtypes = (ctypes.py_object, ctypes.c_char_p)

_SIZES = {1: ctypes.c_uint8, 2: ctypes.c_uint16, 4: ctypes.c_uint32, 8: ctypes.c_uint64}
_USED = b"used_dltensor"    # kept for as long as capsules have it as their name


def _refuse(kind, why):
    return TypeError(f"cannot share {kind}: {why}")


def _buffer_of(address, shape, element, keep):
    """A ctypes array at the address; an empty one needs none."""
    kind = element
    for n in reversed(shape):
        kind = kind * n
    if not ctypes.sizeof(kind):
        return kind()
    buffer = kind.from_address(address)
    buffer.keep = keep
    return buffer


# ---- Arrow: https://arrow.apache.org/docs/format/CDataInterface.html ----

class _Schema(ctypes.Structure):
    pass


_Schema._fields_ = [
    ("format", ctypes.c_char_p), ("name", ctypes.c_char_p), ("metadata", ctypes.c_void_p),
    ("flags", ctypes.c_int64), ("n_children", ctypes.c_int64),
    ("children", ctypes.POINTER(ctypes.POINTER(_Schema))), ("dictionary", ctypes.c_void_p),
    ("release", ctypes.c_void_p), ("private_data", ctypes.c_void_p),
]


class _Array(ctypes.Structure):
    pass


_Array._fields_ = [
    ("length", ctypes.c_int64), ("null_count", ctypes.c_int64), ("offset", ctypes.c_int64),
    ("n_buffers", ctypes.c_int64), ("n_children", ctypes.c_int64),
    ("buffers", ctypes.POINTER(ctypes.c_void_p)),
    ("children", ctypes.POINTER(ctypes.POINTER(_Array))), ("dictionary", ctypes.c_void_p),
    ("release", ctypes.c_void_p), ("private_data", ctypes.c_void_p),
]

# Format -> (bytes, NumPy's type)
_ARROW = {
    "c": (1, "i1"), "C": (1, "u1"), "s": (2, "<i2"), "S": (2, "<u2"), "i": (4, "<i4"),
    "I": (4, "<u4"), "l": (8, "<i8"), "L": (8, "<u8"), "e": (2, "<f2"), "f": (4, "<f4"),
    "g": (8, "<f8"), "tdD": (4, "<i4"), "tdm": (8, "<M8[ms]"), "tts": (4, "<i4"),
    "ttm": (4, "<i4"), "ttu": (8, "<i8"), "ttn": (8, "<i8"), "tDs": (8, "<m8[s]"),
    "tDm": (8, "<m8[ms]"), "tDu": (8, "<m8[us]"), "tDn": (8, "<m8[ns]"),
}
_TIMESTAMPS = {"tss:": "s", "tsm:": "ms", "tsu:": "us", "tsn:": "ns"}


def _arrow_type(text):
    """(ctypes' type, NumPy's type) of the elements; None: not of one size"""
    if text[:4] in _TIMESTAMPS:         # a time zone may follow
        return ctypes.c_uint64, f"<M8[{_TIMESTAMPS[text[:4]]}]"
    if text.startswith("w:"):
        return ctypes.c_char * int(text[2:]), f"|S{int(text[2:])}"
    size, dtype = _ARROW.get(text, (0, None))
    return (_SIZES[size], dtype) if size else None


def _check_arrow(array, schema):
    kind = f"an Arrow array of format {schema.format.decode()!r}"
    if not array.release or not schema.release:
        raise _refuse(kind, "it has been released")
    if schema.dictionary:
        raise _refuse(kind, "it has a dictionary (decode it)")
    # -1: not counted yet. Without a bitmap there is no null.
    if array.null_count and array.n_buffers and array.buffers[0]:
        raise _refuse(kind, "it has nulls (fill them)")
    return kind


def _arrow_memory(array, schema):
    """(address, shape, ctypes' type, NumPy's type), also of lists of one size"""
    kind = _check_arrow(array, schema)
    text = schema.format.decode()
    if text.startswith("+w:"):
        n = int(text[3:])
        child = array.children[0].contents
        address, shape, element, dtype = _arrow_memory(child, schema.children[0].contents)
        row = ctypes.sizeof(element)
        for extent in (n, *shape[1:]):
            row *= extent
        return (address or 0) + array.offset * row, (array.length, n, *shape[1:]), element, dtype
    if text.startswith("+"):
        raise _refuse(kind, "it has columns or lists (share its columns one by one)")
    found = _arrow_type(text)
    if found is None:
        raise _refuse(kind, "its elements are not of one size in bytes")
    element, dtype = found
    address = (array.buffers[1] or 0) + array.offset * ctypes.sizeof(element)
    return address, (array.length,), element, dtype


def arrow(obj):
    """Of an object with __arrow_c_array__(). It never changes, so readers may not write."""
    schema_capsule, array_capsule = obj.__arrow_c_array__()
    schema = _Schema.from_address(_get_pointer(schema_capsule, b"arrow_schema"))
    array = _Array.from_address(_get_pointer(array_capsule, b"arrow_array"))
    address, shape, element, dtype = _arrow_memory(array, schema)
    # The capsule's destructor calls release.
    return _buffer_of(address, shape, element, (schema_capsule, array_capsule)), dtype, True


# ---- DLPack: https://dmlc.github.io/dlpack ----

class _Tensor(ctypes.Structure):
    """DLManagedTensor"""
    _fields_ = [
        ("data", ctypes.c_void_p), ("device", ctypes.c_int32), ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64),
        ("manager_ctx", ctypes.c_void_p), ("deleter", ctypes.c_void_p),
    ]


_HOST = (1, 3, 11)                          # memory that the processor reads: CPU, CUDA's, ROCm's
_CODES = {0: "i", 1: "u", 2: "f", 5: "c", 6: "b"}
_Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class _Consumed:
    """Calls the tensor's deleter, in the task that has made it."""

    def __init__(self, address, deleter):
        self.address, self.deleter = address, deleter

    def __del__(self):
        if self.deleter:
            _Deleter(self.deleter)(self.address)


def _is_in_order(tensor, shape):
    if not tensor.strides or 0 in shape:
        return True
    step = 1
    for i in reversed(range(tensor.ndim)):
        if shape[i] > 1 and tensor.strides[i] != step:
            return False
        step *= shape[i]
    return True


def _tensor_type(tensor):
    code, size = _CODES.get(tensor.code), tensor.bits // 8
    if code is None or tensor.lanes != 1 or tensor.bits % 8 or size not in (1, 2, 4, 8, 16):
        raise _refuse("a tensor", f"no type for code {tensor.code}, {tensor.bits} bits, "
                                  f"{tensor.lanes} lanes")
    element = _SIZES.get(size, ctypes.c_char * size)
    return element, f"{'|' if size == 1 else '<'}{code}{size}"


def _take_tensor(obj, any_order):
    """(tensor, its shape, what keeps it): the deleter is called when the latter is gone."""
    if obj.__dlpack_device__()[0] not in _HOST:
        raise _refuse("a tensor", "it is in the memory of a device (copy it to the host)")
    capsule = obj.__dlpack__()
    address = _get_pointer(capsule, b"dltensor")
    tensor = _Tensor.from_address(address)
    shape = tuple(tensor.shape[:tensor.ndim])
    _tensor_type(tensor)        # refuse it before it is ours
    if not any_order and not _is_in_order(tensor, shape):
        raise _refuse("a tensor", "its elements do not lie one after the other, which needs "
                                  "NumPy (import numpy)")
    _set_name(capsule, _USED)
    return tensor, shape, _Consumed(address, tensor.deleter)


def dlpack(obj):
    """Of an object with __dlpack__()."""
    tensor, shape, keep = _take_tensor(obj, False)
    element, dtype = _tensor_type(tensor)
    return _buffer_of((tensor.data or 0) + tensor.byte_offset, shape, element, keep), dtype, False


def dlpack_array(obj, numpy):
    """An ndarray over a tensor's memory. numpy.from_dlpack() before NumPy 2 makes it read-only."""
    tensor, shape, keep = _take_tensor(obj, True)
    element, dtype = _tensor_type(tensor)
    size, address = ctypes.sizeof(element), (tensor.data or 0) + tensor.byte_offset
    if _is_in_order(tensor, shape):
        span = _buffer_of(address, (math.prod(shape) * size,), ctypes.c_uint8, keep)
        return numpy.ndarray(shape, dtype, span)
    steps = [tensor.strides[i] * size for i in range(tensor.ndim)]
    ends = [(extent - 1) * step for extent, step in zip(shape, steps)]
    low, high = sum(min(end, 0) for end in ends), sum(max(end, 0) for end in ends)
    span = _buffer_of(address + low, (high - low + size,), ctypes.c_uint8, keep)
    return numpy.ndarray(shape, dtype, span, -low, steps)
