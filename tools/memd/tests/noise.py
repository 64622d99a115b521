# SPDX-License-Identifier: GPL-2.0-only
"""usage: noise.py ADDRESS PORT...: connections that end at once, that say nothing, and with random bytes

The last two must be ended by the server, also those that go on to send a byte each second, and
those that send so much that nobody receives it.

The bytes are such as other programs send: a web browser's, a scanner's. They are few and the
same each time: UCX itself does not defend itself against those who know its protocol.
"""
import random
import socket
import sys
import time

random.seed(7)
address, ports = sys.argv[1], [int(p) for p in sys.argv[2:]]
first = [b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\x02\x00", b"SSH-2.0-x\r\n", random.randbytes(7),
         # a length, as UCX has it first, and less than that; lengths that are none, and much
         (1000).to_bytes(8, "little") + bytes(100), b"POST / HTTP/1.1\r\n\r\n" + bytes(100000),
         bytes(5000)]
idle, kept = [], 0


def send(s, data):
    """It may have been ended already."""
    try:
        s.sendall(data)
    except OSError:
        pass


for port in ports:
    for i in range(60):
        s = socket.create_connection((address, port), timeout=5)
        if i % 3 == 0:
            s.close()
        elif i % 3 == 1:
            idle.append(s)
        else:
            send(s, first[i // 3 % len(first)])
            idle.append(s)
for _ in range(12):
    time.sleep(1)
    for s in idle[::5]:
        send(s, b"\0")
for s in idle:
    s.settimeout(0.1)
    try:
        while s.recv(1000):     # what UCX says to those whom it refuses
            pass
    except TimeoutError:
        kept += 1
    except OSError:
        pass
print(len(idle), "connections,", kept, "not ended")
sys.exit(0 if ports and not kept else 1)
