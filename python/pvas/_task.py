# SPDX-License-Identifier: LGPL-2.1-or-later
"""This task, its rank, and how ranks and partitions correspond."""
import os
import sys
from pathlib import Path


def _load():
    """The extension; if it is there for other versions of Python only, says so."""
    try:
        from . import _pvas
        return _pvas
    except ImportError as error:
        built = sorted(p.name for p in Path(__file__).parent.glob("_pvas.*.so"))
        if any(f".{sys.implementation.cache_tag}-" in name for name in built):
            raise
        raise ImportError(
            f"pvas is not built for Python {sys.version_info[0]}.{sys.version_info[1]}: there is "
            f"{', '.join(built) or 'no extension at all'} in {Path(__file__).parent} (build it "
            "with this interpreter: pip install ./python in the source of PVAS)") from error


_pvas = _load()
PeerEnded = _pvas.PeerEnded


class Error(Exception):
    """The space can't do this."""


class Timeout(Error, TimeoutError):
    """It has not happened in time."""


def _number(*names):
    for name in names:
        if os.environ.get(name, "").isdigit():
            return int(os.environ[name])
    return None


def _place():
    """(rank, size, partitions that precede that of rank 0)"""
    me = _pvas.self()
    if me is None:
        return 0, 1, 0
    place = _pvas.rank_of(me[0])
    mine = _number("PVAS_RANK")
    if mine is not None:
        return mine, _number("PVAS_SIZE") or 1, place - mine
    # pvasexec: the ranks of this node
    count = _number("OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "SLURM_TASKS_PER_NODE")
    return place, count or max(place + 1, len(_pvas.indices())), 0


rank, size, _shift = _place()
_is_task = _pvas.self() is not None
_forked = False


def _after_fork():
    global _forked
    _forked = _is_task


os.register_at_fork(after_in_child=_after_fork)


def attached():
    """Is this process a task? False: there is no space."""
    if _forked:
        raise Error("a child made by fork is an ordinary process: it can't use the memory of tasks "
                    "(use it in the task, or start a task instead)")
    return _is_task


def index_of(which):
    """The partition of a rank."""
    if not 0 <= which < size:
        raise ValueError(f"there is no rank {which}: this job has {size}, from 0")
    return _pvas.index_of(which + _shift)


def rank_of(index):
    return _pvas.rank_of(index) - _shift
