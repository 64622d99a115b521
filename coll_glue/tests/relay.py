#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""For two-nets: relay.py PID PORT READY

Connections to 127.0.0.1:PORT in the network namespace of process PID go to that port in this
one. The file READY is created when it listens."""

import ctypes
import os
import socket
import sys
import threading

CLONE_NEWNET = 0x40000000
libc = ctypes.CDLL(None, use_errno=True)


def enter(path):
    fd = os.open(path, os.O_RDONLY)
    if libc.setns(fd, CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), path)
    os.close(fd)


def copy(source, sink):
    try:
        while data := source.recv(65536):
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        pass


def serve(listener, port):
    while True:
        there, _ = listener.accept()
        here = socket.create_connection(("127.0.0.1", port))
        for pair in ((there, here), (here, there)):
            threading.Thread(target=copy, args=pair, daemon=True).start()


def main(pid, port, ready):
    ours = os.open("/proc/self/ns/net", os.O_RDONLY)
    enter(f"/proc/{pid}/ns/net")
    listener = socket.create_server(("127.0.0.1", port))
    if libc.setns(ours, CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), "setns")
    with open(ready, "w", encoding="utf-8"):
        pass
    serve(listener, port)


main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
