#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Watch a running `heat`, a program in C that knows nothing of it, as a task beside it:

    pvasrun -x TEAM_SIZE=4 -n 4 heat --size 400 --steps 20000 : -n 1 python3 viewer.py --size 400

Reads the rows from the tasks' memory. With a display and matplotlib in a window, on a terminal by
curses; else, or with --frames, prints frames as text. --picture FILE writes the last one as a PNG.
"""
import argparse
import curses
import importlib.util
import os
import struct
import sys
import time
import zlib

import numpy as np

import pvas

SHADES = " .:-=+*#%@"
HOTTEST = 101.0     # heat begins with values up to 100.8
CAN_PLOT = importlib.util.find_spec("matplotlib")   # imported late: heat does not wait for it


class Plate:
    """The rows in the memory of heat's tasks: see examples/heat.c, struct plate."""

    def __init__(self, size, members):
        self.size, self.members = size, members
        self.share = -(-size // members)

    def phase(self):
        """How often all have met: once before the first step, and once after each"""
        return struct.unpack("I", pvas.peek("team.board", 4, rank=0, offset=4))[0]

    def _rows(self, member, half):
        width = self.size + 2
        first, end = (self.size * m // self.members for m in (member, member + 1))
        data = pvas.peek("team.memory", (end - first) * width * 8, rank=member,
                         offset=half * self.share * width * 8)
        return np.frombuffer(data).reshape(end - first, width)[:, 1:-1]

    def read(self):
        """(step, rows): those that no task writes to now, but they may be of two steps"""
        step = max(0, self.phase() - 2)
        return step, np.vstack([self._rows(m, step % 2) for m in range(self.members)])


def shrink(cells, height, width):
    rows = np.linspace(0, len(cells) - 1, height).astype(int)
    columns = np.linspace(0, cells.shape[1] - 1, width).astype(int)
    return np.clip(cells[np.ix_(rows, columns)] / HOTTEST, 0, 1)


def as_text(cells, height, width):
    shades = (shrink(cells, height, width) * (len(SHADES) - 1)).round().astype(int)
    return ["".join(SHADES[s] for s in row) for row in shades]


def plot(step, cells):
    """pyplot, a figure, and what to call with the next step and its cells"""
    from matplotlib import pyplot
    figure, axes = pyplot.subplots(figsize=(5, 4), layout="constrained")
    image = axes.imshow(cells, cmap="inferno", vmin=0, vmax=HOTTEST)
    figure.colorbar(image, label="temperature")

    def show(step, cells):
        image.set_data(cells)
        axes.set_title(f"step {step}")

    show(step, cells)
    return pyplot, figure, show


def in_window(shown):
    """Until heat ends, or the window is closed"""
    pyplot = figure = show = last = None
    for last in shown:
        if figure is None:
            pyplot, figure, show = plot(*last)
        show(*last)
        pyplot.pause(0.001)
        if not pyplot.fignum_exists(figure.number):
            break
    return last


def write_picture(path, step, cells):
    if CAN_PLOT:
        plot(step, cells)[1].savefig(path, dpi=80)
    else:
        write_png(path, cells)


def write_png(path, cells):
    """Without matplotlib: from blue to red"""
    value = shrink(cells, *cells.shape)
    pixels = np.stack([value, 1 - np.abs(2 * value - 1), 1 - value], axis=2) * 255
    rows = b"".join(b"\0" + row.tobytes() for row in pixels.astype(np.uint8))

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    with open(path, "wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n" +
                   chunk(b"IHDR", struct.pack(">IIBBBBB", cells.shape[1], cells.shape[0], 8, 2, 0, 0, 0)) +
                   chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def frames(plate, seconds, limit):
    """(step, rows), until heat ends"""
    while limit is None or limit > 0:
        try:
            yield plate.read()
        except (pvas.PeerEnded, pvas.Timeout):
            return
        limit = None if limit is None else limit - 1
        time.sleep(seconds)


def on_terminal(screen, shown):
    last = None
    curses.curs_set(0)
    for step, cells in shown:
        height, width = screen.getmaxyx()
        for y, line in enumerate(as_text(cells, height - 1, width - 1)):
            screen.addstr(y, 0, line)
        screen.addstr(height - 1, 0, f"step {step}"[:width - 1])
        screen.refresh()
        last = step, cells
    return last


def as_lines(shown):
    last = None
    for step, cells in shown:
        print("\n".join(as_text(cells, 20, 60)), f"step {step}", sep="\n", flush=True)
        last = step, cells
    return last


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--size", type=int, default=720, help="as heat's")
    parser.add_argument("--members", type=int, default=pvas.size - 1, help="tasks of heat")
    parser.add_argument("--every", type=float, default=0.1, help="seconds")
    parser.add_argument("--frames", type=int, help="then end")
    parser.add_argument("--picture", help="a file")
    options = parser.parse_args()
    if options.members < 1:
        sys.exit("viewer.py: start it beside heat, in one job: see the file's head")
    shown = frames(Plate(options.size, options.members), options.every, options.frames)
    if CAN_PLOT and options.frames is None and os.environ.keys() & {"DISPLAY", "WAYLAND_DISPLAY"}:
        last = in_window(shown)
    elif sys.stdout.isatty() and options.frames is None:
        last = curses.wrapper(on_terminal, shown)
    else:
        last = as_lines(shown)
    if last is None:
        sys.exit("viewer.py: heat has ended before anything was seen")
    if options.picture:
        write_picture(options.picture, *last)


main()
