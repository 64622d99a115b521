# SPDX-License-Identifier: LGPL-2.1-or-later
"""Tasks of one address space use each other's memory: PVAS for Python.

Started as `pvasrun -n 4 python3 app.py`, each of the 4 processes is a task with its own
interpreter. Objects stay in it, but memory is for all:

    import numpy, pvas

    a = numpy.zeros(1000)
    pvas.share("a", a)                              # no copy
    b = pvas.get("a", rank=(pvas.rank + 1) % pvas.size)     # the neighbour's, no copy
    b[0] = 1                                        # and it sees that

Without a space the package works, too: rank is 0, size is 1.
"""
from ._pool import Pool
from ._share import ended, get, memory, names, peek, share, unshare
from ._sync import Barrier, Counter, Lock
from ._task import Error, PeerEnded, Timeout, _pvas, rank, size

__all__ = ["Barrier", "Counter", "Error", "Lock", "PeerEnded", "Pool", "Timeout", "ended",
           "get", "memory", "names", "peek", "rank", "share", "size", "unshare"]
__version__ = _pvas.version
