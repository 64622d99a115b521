# SPDX-License-Identifier: GPL-2.0-only
"""The package without a space: one process, rank 0 of 1."""
import os
import sys
import threading
import time

import pvas


def caught(error, call):
    try:
        call()
    except error as e:
        return str(e)
    raise AssertionError(f"{call} did not raise {error}")


assert (pvas.rank, pvas.size) == (0, 1)
data = bytearray(b"data")
pvas.share("a", data)
view = memoryview(pvas.get("a"))
view[0] = ord("D")
assert data == b"Data" and pvas.names() == {"a": [0]}
caught(BufferError, lambda: data.append(1))     # not moved while it is shared
pvas.unshare("a")
assert bytes(view) == b"Data"
assert "nothing shared" in caught(pvas.Timeout, lambda: pvas.get("a", timeout=0))
caught(ValueError, lambda: pvas.get("a", rank=1))
caught(pvas.Error, lambda: pvas.memory("a", 4))

timer = threading.Timer(0.1, pvas.share, ("late", b"x"))
timer.start()
assert bytes(pvas.get("late")) == b"x"

with pvas.Lock("l") as lock:
    assert lock.locked() and not pvas.Lock("l").acquire(blocking=False)
assert not lock.locked()
assert pvas.Barrier("b").wait() == 0
counter = pvas.Counter("c", 3)
assert [counter.next(), counter.add(2), counter.value] == [3, 6, 6]

child = os.fork()
if not child:
    assert bytes(pvas.get("late")) == b"x"      # as before: it never was a task
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
del view
until = time.monotonic() + 60
while time.monotonic() < until:     # released: it can be resized again
    try:
        data.append(1)
        sys.exit(0)
    except BufferError:
        time.sleep(0.01)
sys.exit("the buffer was not released")
