#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
#
# screen.py END PVASPS ARGS...: runs pvasps --watch on a terminal of 20 lines, waits
# for its first screen, scrolls, ends it by END (a key, or a signal's name), and
# checks how it ended and that the terminal is as it was.
import fcntl
import os
import pty
import re
import select
import signal
import struct
import sys
import termios
import time

LINES, COLUMNS = 20, 100
PATIENCE = 20 * int(os.environ.get("SLOW", "1"))


def fail(why, seen):
    print("screen:", why)
    print(repr(seen[-600:]))
    sys.exit(1)


def read_until(fd, seen, text):
    limit = time.monotonic() + PATIENCE
    while text not in seen:
        if time.monotonic() > limit:
            fail(f"no {text!r}", seen)
        if select.select([fd], [], [], 0.1)[0]:
            try:
                seen += os.read(fd, 65536)
            except OSError:
                fail(f"ended before {text!r}", seen)
    return seen


def check_size(seen):
    """The highest line addressed, by ESC [ line ; column H or ESC [ line d."""
    for line in re.findall(rb"\x1b\[(\d+)(?:;\d+)?[Hd]", seen):
        if int(line) > LINES:
            fail("writes below the last line", seen)


def main():
    end, command = sys.argv[1], sys.argv[2:]
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
    before = termios.tcgetattr(slave)
    pid = os.fork()
    if pid == 0:
        os.setsid()
        fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
        for fd in range(3):
            os.dup2(slave, fd)
        os.environ["TERM"] = "xterm"
        os.execv(command[0], command)
    seen = read_until(master, b"", b"q: quit")
    check_size(seen)
    os.write(master, b"s\x1b[6~k")
    seen = read_until(master, b"", b"memory")  # of "by memory": only what changed is written
    check_size(seen)
    if end.startswith("SIG"):
        os.kill(pid, getattr(signal, end))
    else:
        os.write(master, {"^C": b"\x03"}.get(end, end.encode()))
    seen = read_until(master, seen, b"\x1b[?1049l")
    _, status = os.waitpid(pid, 0)
    want = {"q": 0, "^C": signal.SIGINT}.get(end, getattr(signal, end, None))
    if status != want:
        fail(f"wait status {status}, not {want}", seen)
    if termios.tcgetattr(slave) != before:
        fail("the terminal is not as it was", seen)
    if b"\x1b[?25h" not in seen:
        fail("the cursor stays hidden", seen)


main()
