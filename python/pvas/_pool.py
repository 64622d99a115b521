# SPDX-License-Identifier: LGPL-2.1-or-later
"""Pool: multiprocessing.Pool's interface, with the job's other tasks as its workers.

All ranks run the same program. In rank 0 Pool() returns; in the others it doesn't: they
work until rank 0 ends, and then exit. Arrays are passed by pointer, in both directions:
rank 0 gets arrays that lie in a worker, and workers read-only views of its own.
"""
import atexit
import collections
import functools
import itertools
import pickle
import sys
import threading
import time
import traceback
from array import array

from . import _share, _task
from ._sync import Shared
from ._task import PeerEnded, _pvas

_BY_POINTER = 65536     # bytes: smaller ones are part of the message
_WORK, _QUIT = 1, 2

# Words: a futex that changes with each answer, then for each worker
_EVENTS, _FIRST = 0, 1
_SEQ, _KIND, _REQUEST, _ANSWERED, _ANSWER, _PER_WORKER = range(6)


# ---- messages: a pickle, and records of its arrays ----

class Message:
    """An object for a peer. Keeps what the peer will read."""

    def __init__(self, obj, readonly):
        self._records = []
        self._readonly = readonly
        data = pickle.dumps(obj, protocol=5, buffer_callback=self._keep)
        addresses = [r.address for r in self._records]
        self._records.append(_pvas.Record(data))
        addresses.insert(0, self._records[-1].address)
        self._records.append(_pvas.Record(array("Q", addresses)))
        self.address = self._records[-1].address

    def _keep(self, buffer):
        raw = buffer.raw()
        # Of these the reader makes a copy in any case, which its owner's end must not meet.
        if raw.nbytes < _BY_POINTER or isinstance(raw.obj, (bytes, bytearray)):
            return True
        self._records.append(_pvas.Record(raw, "", self._readonly))
        return False

    def retire(self):
        """The peer has read it; but it may have kept arrays."""
        _share.retire(*self._records)
        self._records = []


def _read(index, address):
    """Of a peer that may end at any time: only arrays are not copied first."""
    head = array("Q")
    head.frombytes(_pvas.View(index, address).copy())
    message = _pvas.View(index, head[0]).copy()
    return pickle.loads(message, buffers=[memoryview(_pvas.View(index, a)) for a in head[1:]])


# ---- the worker ----

class RemoteError(Exception):
    """The traceback in the worker, as the cause of an exception."""

    def __str__(self):
        return "\n" + self.args[0]


def _work(function, arguments):
    """(True, results) or (False, (exception, text))"""
    try:
        return True, [function(*a) for a in arguments]
    except Exception as error:      # the caller's function may raise anything
        return False, (error, traceback.format_exc())


def _answer_to(index, address):
    """Work, and say so: what can't be sent is an error as well."""
    try:
        done = _work(*_read(index, address))
        return Message(done, False)
    except Exception as error:
        text = traceback.format_exc()
        return Message((False, (_task.Error(f"a result or an argument can't be sent: {error}"), text)),
                       False)


def _serve():
    """Work, in a rank other than 0, until rank 0 ends.

    One that comes when rank 0 has ended was not needed. Whether that is a failure, the status of
    rank 0 tells.
    """
    seq = 0
    try:
        shared = Shared("pool", "pool", [], 0, None)
        words, at, last = shared.words, _FIRST + (_task.rank - 1) * _PER_WORKER, None
        while True:
            while words.load(at + _SEQ) == seq:
                shared.wait(at + _SEQ, seq, time.monotonic() + 1)
            seq += 1
            if last:
                last.retire()
            if words.load(at + _KIND) == _QUIT:
                return
            last = _answer_to(shared.view.index, words.load(at + _REQUEST))
            words.store(at + _ANSWER, last.address)
            words.store(at + _ANSWERED, seq)
            words.add(_EVENTS, 1)
            words.wake(_EVENTS)
    except PeerEnded:
        if seq:
            raise


def _serve_and_exit():
    try:
        _serve()
    except PeerEnded:
        sys.exit(f"pvas: rank {_task.rank}: rank 0 has ended, for which it worked")
    sys.exit(0)


# ---- the jobs, in rank 0 ----

class _Job:
    """Some calls of a function, in one message."""

    def __init__(self, function, arguments):
        self.function, self.arguments = function, arguments
        self.message = None
        self.done = False
        self.results = None
        self.error = None

    def result(self):
        if self.error:
            raise self.error
        return self.results

    def finish(self, good, value):
        self.done = True
        self.function = self.arguments = None
        if good:
            self.results = value
            return
        self.error, text = value
        self.error.__cause__ = RemoteError(text)


class _Worker:
    """Rank 0's side of a worker."""

    def __init__(self, words, rank):
        self._words, self._at = words, _FIRST + (rank - 1) * _PER_WORKER
        self.rank, self.index, self._seq = rank, _task.index_of(rank), 0
        self._gen = _pvas.gen_of(self.index)
        self.job = None

    def _post(self, kind):
        self._words.store(self._at + _KIND, kind)
        self._seq += 1
        self._words.store(self._at + _SEQ, self._seq)
        self._words.wake(self._at + _SEQ)

    def start(self, job):
        try:
            job.message = Message((job.function, job.arguments), True)
        except Exception as error:      # from the caller's objects, of any kind
            job.finish(False, (error, "while it was sent"))
            return
        self.job = job
        self._words.store(self._at + _REQUEST, job.message.address)
        self._post(_WORK)

    def quit(self):
        """Even while it begins to work: so its request stays as it is."""
        self._post(_QUIT)

    def ended(self):
        return _pvas.left(self.index, self._gen)

    def poll(self):
        """Take its answer, if it has one."""
        if not self.job or self._words.load(self._at + _ANSWERED) != self._seq:
            return
        job, self.job = self.job, None
        try:
            job.finish(*_read(self.index, self._words.load(self._at + _ANSWER)))
        except PeerEnded as error:
            job.finish(False, (error, "while its answer was read"))
        job.message.retire()


class _Crew:
    """All workers, for all pools of this task: they serve until it ends."""

    def __init__(self):
        count = _FIRST + (_task.size - 1) * _PER_WORKER
        self._shared = Shared("pool", "pool", [0] * count, 0, None)
        self.workers = [_Worker(self._shared.words, r) for r in range(1, _task.size)]
        self.lock = threading.Lock()
        atexit.register(self._quit)

    def _quit(self):
        if _pvas.self() is not None:
            for worker in self.workers:
                worker.quit()

    def events(self):
        return self._shared.words.load(_EVENTS)

    def wait(self, events):
        self._shared.wait(_EVENTS, events, time.monotonic() + 1)


@functools.lru_cache(maxsize=None)
def _crew():
    return _Crew()


# ---- the pool ----

class Pool:
    """Workers are the ranks from 1, or the first `processes` of them.

    A job of one rank, and a program without a space, do the work themselves. If a worker
    ends in the middle of its work, the call that waits for it gets PeerEnded. A new pool does
    without workers that have ended.
    """

    def __init__(self, processes=None, initializer=None, initargs=()):
        if processes is not None and processes < 1:
            raise ValueError("a pool has at least one process")
        if _task.attached() and _task.rank:
            _serve_and_exit()
        self._queue = collections.deque()
        self._closed = False
        self._workers = _crew().workers[:processes] if _task.size > 1 else []
        if initializer:
            self._initialize(initializer, initargs)

    def _initialize(self, function, arguments):
        jobs = [_Job(function, [arguments])] if _task.size == 1 else []
        for worker in list(self._workers):
            job = _Job(function, [arguments])
            while (started := self._start(worker, job)) is None:
                self._step_or_wait()
            if started:
                jobs.append(job)
        for job in jobs:
            self._await(job)

    def _start(self, worker, job):
        """None: it works for another pool. False: it has ended, perhaps in that work."""
        with _crew().lock:
            if worker.ended():
                return False
            if worker.job:
                return None
            worker.start(job)
            return True

    # -- progress: made by whoever waits --

    def _step(self):
        """Hand out jobs and take answers. Has anything happened?"""
        with _crew().lock:
            return self._step_locked()

    def _step_or_wait(self):
        events = _crew().events()
        if not self._step():
            _crew().wait(events)

    def _step_locked(self):
        moved = False
        for worker in list(self._workers):
            busy = worker.job
            worker.poll()
            moved |= busy is not None and worker.job is None
            if worker.ended():
                self._lose(worker)
            elif self._queue and not worker.job:
                worker.start(self._queue.popleft())
                moved = True
        return moved

    def _lose(self, worker):
        self._workers.remove(worker)
        error = PeerEnded(f"rank {worker.rank}, a worker of the pool, has ended")
        lost = [worker.job] if worker.job else []
        worker.job = None
        if not self._workers:
            lost += self._queue
            self._queue.clear()
        for job in lost:
            job.finish(False, (error, "in rank 0"))

    def _await(self, job):
        if _task.size == 1 and not job.done:
            job.finish(*_work(job.function, job.arguments))
        while not job.done:
            self._step_or_wait()
        return job.result()

    def _submit(self, function, arguments):
        if self._closed:
            raise ValueError("this pool is closed")
        job = _Job(function, arguments)
        if _task.size == 1:
            return job
        with _crew().lock:      # another thread may lose the last worker
            if not self._workers:
                raise PeerEnded("no worker of this pool is left")
            self._queue.append(job)
        return job

    # -- the calls of multiprocessing.Pool --

    def apply(self, func, args=(), kwds=None):
        """func(*args, **kwds), in a worker."""
        return self._await(self._submit(functools.partial(func, **(kwds or {})), [args]))[0]

    def map(self, func, iterable, chunksize=None):
        """[func(x) for x in iterable]"""
        return self.starmap(func, ((x,) for x in iterable), chunksize)

    def starmap(self, func, iterable, chunksize=None):
        """[func(*x) for x in iterable]"""
        calls = [tuple(x) for x in iterable]
        if chunksize is None:
            chunksize = -(-len(calls) // (4 * max(1, len(self._workers)))) or 1
        jobs = [self._submit(func, chunk) for chunk in _chunks(calls, chunksize)]
        if len(self._workers) > 0:
            self._step()
        return list(itertools.chain.from_iterable(self._await(job) for job in jobs))

    def imap(self, func, iterable, chunksize=1):
        """As map(), but one result after the other; takes no more than it needs of iterable."""
        ahead = collections.deque()
        for chunk in _chunks(((x,) for x in iterable), chunksize):
            ahead.append(self._submit(func, chunk))
            if len(ahead) > 2 * len(self._workers):
                yield from self._await(ahead.popleft())
            else:
                self._step()
        while ahead:
            yield from self._await(ahead.popleft())

    def imap_unordered(self, func, iterable, chunksize=1):
        """As imap(), in the order in which results come."""
        ahead, chunks = [], _chunks(((x,) for x in iterable), chunksize)
        for chunk in chunks:
            ahead.append(self._submit(func, chunk))
            while len(ahead) > 2 * len(self._workers):
                yield from self._first(ahead)
        while ahead:
            yield from self._first(ahead)

    def _first(self, ahead):
        """The results of one that is done, which is removed."""
        while _task.size > 1 and not any(job.done for job in ahead):
            self._step_or_wait()
        job = next((job for job in ahead if job.done), ahead[0])
        ahead.remove(job)
        return self._await(job)

    # -- the end --

    def close(self):
        """Take no more work."""
        self._closed = True

    def terminate(self):
        """Drop all work that has not begun."""
        self._closed = True
        for job in self._queue:
            job.finish(False, (_task.Error("the pool was terminated"), "in rank 0"))
        self._queue.clear()
        self.join()

    def join(self):
        """Wait for the work that has begun. The workers wait for another pool."""
        if not self._closed:
            raise ValueError("the pool is still open")
        while any(worker.job for worker in self._workers):
            self._step_or_wait()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.terminate()


def _chunks(items, size):
    """Lists of at most size items."""
    items = iter(items)
    while True:
        chunk = list(itertools.islice(items, size))
        if not chunk:
            return
        yield chunk
