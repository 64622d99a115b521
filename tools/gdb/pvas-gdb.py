# SPDX-License-Identifier: GPL-2.0-only
#
# Debug tasks with gdb. The kernel reports one program and one auxiliary vector per
# address space, but a space has many. So gdb alone would look for a task's program and
# libraries at the addresses of another task, or of the launcher. This extension finds
# the task's partition by its stack pointer, and loads only the symbols of files that
# are mapped there: a breakpoint set by name is then in this task's code, and is not hit
# by tasks that are not being debugged.
#
#   gdb -x pvas-gdb.py -p PID         or: gdb program core, source pvas-gdb.py
#   (gdb) pvas info                   the space, its tasks, and the current task
#   (gdb) pvas symbols [INDEX|all]    symbols of other tasks, or loaded by dlopen()
#
# It reads the space header (libpvas/header.h) from the memory of the task.
import itertools
import os
import stat
import struct
import tempfile

import gdb

MAGIC = 0x5244485341565021
VERSION = 1
BASES = range(256 << 20, 1 << 32, 256 << 20)
HEADER = struct.Struct("<QIIIIIIQQQ")
PART = struct.Struct("<IIi52x")
SHIFTS = range(32, 44)
MAX_ENTRIES = (1 << 47 >> 32) + 1
TABLE = 4096
STATES = ("free", "armed", "running", "ending", "reserved")

EHDR = struct.Struct("<16sHHIQQQIHHHHHH")
PHDR = struct.Struct("<IIQQQQQQ")
PT_LOAD, PF_X, PAGE = 1, 1, 4096
# The debugged process chooses its files: bounds for the time that a look at them takes
MAX_SEGMENTS = 64
MAX_MAPPINGS = 20000
MAX_OBJECTS = 1000


class Space:
    """The space header."""

    def __init__(self, fields):
        (_, self.version, self.id, self.shift, self.first, self.last, self.entries,
         _, self.table, _) = fields

    def bounds(self, index):
        return index << self.shift, (index + 1) << self.shift

    def tasks(self):
        """(index, state, pid) of all partitions in use."""
        raw = read_memory(self.table, self.entries * PART.size)
        for index, (state, _, pid) in enumerate(PART.iter_unpack(raw or b"")):
            if STATES[state:state + 1] and STATES[state] not in ("free", "reserved"):
                yield index, STATES[state], pid


def read_memory(address, length):
    try:
        return gdb.selected_inferior().read_memory(address, length).tobytes()
    except gdb.MemoryError:
        return None


def plain(name):
    """A file name that is safe to print: the debugged process may have chosen it."""
    return "".join(chr(c) if 32 <= c < 127 else f"\\x{c:02x}" for c in os.fsencode(name))


def is_plain(name):
    """May the name be part of a command? gdb begins a new one at each line feed."""
    return all(32 <= c != 127 for c in os.fsencode(name))


def is_sane(space, base):
    """Tasks can write to the header: check all values."""
    return (space.shift in SHIFTS and space.entries <= MAX_ENTRIES and
            0 < space.first <= space.last < space.entries and
            space.table == base + TABLE)


def find_space():
    """The space of the selected inferior, or None."""
    if not gdb.selected_thread():
        return None
    for base in header_places():
        raw = read_memory(base, HEADER.size)
        if not raw:
            continue
        fields = HEADER.unpack(raw)
        if fields[0] != MAGIC or fields[1] != VERSION:
            continue
        space = Space(fields)
        if is_sane(space, base) and may_read(base, TABLE + space.entries * PART.size):
            return space
    return None


def current_index(space):
    """The partition of the selected thread, or None if that is not a task's."""
    frame = gdb.newest_frame()
    for register in ("rsp", "rip"):
        index = (int(frame.read_register(register)) & (1 << 64) - 1) >> space.shift
        if space.first <= index <= space.last:
            return index
    return None


# ---- mappings ----

def read_maps(pid):
    """The fields of each line, as bytes: a name need not be valid UTF-8."""
    with open(f"/proc/{pid}/maps", "rb") as maps:
        for line in maps:
            words = line.rstrip(b"\n").split(None, 5)
            start, end = (int(word, 16) for word in words[0].split(b"-"))
            yield start, end, words


def live_mappings(pid):
    """(start, end, offset, path) of each mapping of a file."""
    for start, end, words in read_maps(pid):
        if len(words) == 6 and words[5].startswith(b"/"):
            yield start, end, int(words[2], 16), os.fsdecode(words[5])


def plain_memory():
    """
    (start, end) of each mapping below 4 GiB that may contain a header; None for a core.
    Other memory is not read: if it is mapped from a file, its server could block gdb.
    """
    if not is_live() or gdb.selected_inferior().connection.type != "native":
        return None
    found = []
    for start, end, words in read_maps(gdb.selected_inferior().pid):
        if start >= BASES.stop:
            break
        if words[1:] == [b"rw-p", b"00000000", b"00:00", b"0"]:
            found.append((start, end))
    return found


def header_places():
    memory = plain_memory()
    return BASES if memory is None else [start for start, _ in memory if start in BASES]


def may_read(start, length):
    memory, end = plain_memory(), start
    for low, high in memory or []:
        if low <= end < high:
            end = high
    return memory is None or end >= start + length


def core_mappings():
    """The same for a core file: gdb prints its NT_FILE note."""
    for line in gdb.execute("info proc mappings", to_string=True).split("\n"):
        words = line.split(None, 4)
        if len(words) == 5 and words[0].startswith("0x"):
            yield int(words[0], 16), int(words[1], 16), int(words[3], 16), words[4]


def is_live():
    target = gdb.selected_inferior().connection
    return target is not None and target.type != "core"


def mappings():
    return live_mappings(gdb.selected_inferior().pid) if is_live() else core_mappings()


def find_file(path):
    """A readable path: the process may be in a container, the core from another machine."""
    tries = [path]
    if is_live():
        tries.append(f"/proc/{gdb.selected_inferior().pid}/root{path}")
    given = gdb.current_progspace().filename or program_given
    if given and os.path.basename(given) == os.path.basename(path):
        tries.append(given)
    for name in tries:
        if is_plain(name) and os.path.isfile(name) and os.access(name, os.R_OK):
            return name
    return None


def read_table(path):
    """The program headers, or b"" if the file is truncated or not an ELF file."""
    # O_NONBLOCK: the debugged process may have chosen the name of a FIFO.
    with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as f:
        if not stat.S_ISREG(os.fstat(f.fileno()).st_mode):
            return b""
        head = f.read(EHDR.size)
        if len(head) < EHDR.size or head[:5] != b"\x7fELF\x02":
            return b""
        ehdr = EHDR.unpack(head)
        f.seek(ehdr[5])
        table = f.read(ehdr[10] * PHDR.size) if ehdr[10] <= MAX_SEGMENTS else b""
    return table if ehdr[9] == PHDR.size and len(table) == ehdr[10] * PHDR.size else b""


def segments(path):
    """(file offset, address, flags) of each PT_LOAD, page-aligned; [] if not an ELF file."""
    try:
        table = read_table(path)
    except (OSError, OverflowError):
        return []
    found = []
    for kind, flags, offset, address, _, _, _, _ in PHDR.iter_unpack(table):
        if kind == PT_LOAD:
            found.append((offset & -PAGE, address & -PAGE, flags))
    return found


def objects(low, high):
    """(path as mapped, load bias, file or None) of each program and library in [low, high)."""
    inside = list(itertools.islice((m for m in mappings() if low <= m[0] < high), MAX_MAPPINGS))
    starts = {(start, offset) for start, _, offset, _ in inside}
    known = {}
    for start, _, offset, path in inside:
        if path not in known:
            if len(known) == MAX_OBJECTS:
                continue
            name = find_file(path)
            known[path] = name, segments(name) if name else []
        name, loads = known[path]
        if not name:
            if offset == 0:
                yield path, 0, None
        elif loads and offset == loads[0][0]:
            bias = start - loads[0][1]
            # An ELF file that is mapped as data has no code where its headers say so.
            if any(flags & PF_X and (bias + address, offset) in starts
                   for offset, address, flags in loads):
                yield path, bias, name


# ---- symbols ----

loaded = {}  # by progspace: a set of (file, bias)
program_given = None


def quietly(command):
    return gdb.execute(command, to_string=True)


def empty_elf():
    """An ELF file without a dynamic linker: see forget_symbols()."""
    names = b"\0.interp\0.dynamic\0.shstrtab\0"
    interp = b"/nonexistent\0\0\0\0"
    dynamic = struct.pack("<QQQQ", 21, 0, 0, 0)  # DT_DEBUG, DT_NULL
    body = [interp, dynamic, names]
    at = [EHDR.size, EHDR.size + len(interp), EHDR.size + len(interp) + len(dynamic)]
    table = at[2] + len(names)
    ident = b"\x7fELF\x02\x01\x01".ljust(16, b"\0")
    ehdr = EHDR.pack(ident, 3, 62, 1, 0, 0, table, 0, 64, 56, 0, 64, 4, 3)

    def section(name, kind, flags, index):
        address = 0x1000 + at[index] if flags else 0
        return struct.pack("<IIQQQQIIQQ", names.index(name), kind, flags, address, at[index],
                           len(body[index]), 0, 0, 1, 16 if kind == 6 else 0)

    return b"".join([ehdr, *body, bytes(64), section(b".interp", 1, 2, 0),
                     section(b".dynamic", 6, 2, 1), section(b".shstrtab", 3, 0, 2)])


def forget_symbols(program, bias):
    """
    Drop the symbols that gdb has loaded by itself, at addresses of other tasks, and
    its breakpoint in a dynamic linker. With the kernel backend nothing is mapped at
    that breakpoint, so gdb can't continue; with the user backend it is in the
    launcher, which would die from it.

    When it attaches, gdb finds the linker by the executable file first, and only then
    by the auxiliary vector. So attach again, with an executable that has no linker.
    """
    global program_given
    program_given = gdb.current_progspace().filename
    quietly("set auto-solib-add off")
    quietly("symbol-file")
    with tempfile.NamedTemporaryFile(prefix="pvas-gdb.") as f:
        f.write(empty_elf())
        f.flush()
        quietly(f"exec-file {quote(f.name)}")
        if is_live() and "shlib events" in quietly("maint info breakpoints"):
            pid = gdb.selected_inferior().pid
            quietly("set exec-file-mismatch off")
            quietly("detach")
            quietly(f"attach {pid}")
        try:
            quietly(f"symbol-file {quote(program)} -o {bias:#x}")
        finally:
            quietly("exec-file")


def load(space, index):
    """Load the symbols of one partition. Returns how many files."""
    done = loaded.setdefault(gdb.current_progspace(), set())
    count = 0
    for path, bias, name in list(itertools.islice(objects(*space.bounds(index)), MAX_OBJECTS)):
        if not name:
            if (path, 0) not in done:
                gdb.write(f"pvas: {plain(path)}: no such file here, no symbols of it\n")
                done.add((path, 0))
            continue
        if (name, bias) in done:
            continue
        done.add((name, bias))
        try:
            if not any(at for _, at in done - {(name, bias)}):
                forget_symbols(name, bias)
            else:
                quietly(f"add-symbol-file {quote(name)} -o {bias:#x}")
            count += 1
        except (gdb.error, UnicodeError) as error:
            gdb.write(f"pvas: {plain(name)}: no symbols of it: {plain(str(error))}\n")
    return count


def quote(path):
    if not is_plain(path):
        raise gdb.error(f"control characters in the name {plain(path)}")
    return '"' + path.replace("\\", "\\\\").replace('"', '\\"') + '"'


def load_partitions(space, indices):
    confirm = gdb.parameter("confirm")
    quietly("set confirm off")
    try:
        count = sum(load(space, index) for index in indices)
    finally:
        quietly(f"set confirm {'on' if confirm else 'off'}")
    return count


def need_space():
    space = find_space()
    if not space:
        raise gdb.GdbError("pvas: no space header in this process or core (is it a task?)")
    return space


def pid_text(space, index):
    for at, _, pid in space.tasks():
        if at == index:
            return f", pid {pid}"
    return ""


def load_current():
    """For a new process or core; prints nothing if it is not a task."""
    space = find_space()
    index = current_index(space) if space else None
    if index is None:
        return
    count = load_partitions(space, [index])
    gdb.write(f"pvas: space {space.id}, task {index}{pid_text(space, index)}: "
              f"symbols of {count} files\n")


# ---- commands ----

class Pvas(gdb.Command):
    """Tasks of a partitioned address space."""

    def __init__(self):
        super().__init__("pvas", gdb.COMMAND_USER, prefix=True)


class PvasInfo(gdb.Command):
    """List the tasks of the space of this process.
A star marks the task of the selected thread."""

    def __init__(self):
        super().__init__("pvas info", gdb.COMMAND_STATUS)

    def invoke(self, argument, from_tty):
        space = need_space()
        mine = current_index(space)
        gdb.write(f"space {space.id}, partitions of {1 << space.shift - 30} GiB\n")
        gdb.write("  index      pid state    partition\n")
        for index, state, pid in space.tasks():
            low, high = space.bounds(index)
            star = "*" if index == mine else " "
            gdb.write(f"{star} {index:5} {pid:8} {state:8} {low:#x}-{high:#x}\n")


class PvasSymbols(gdb.Command):
    """Load the symbols of this task, of the task with this INDEX, or of "all".
Breakpoints set by name are then in all tasks whose symbols are loaded: a task
that is not being debugged dies from SIGTRAP when it hits one."""

    def __init__(self):
        super().__init__("pvas symbols", gdb.COMMAND_FILES)

    def invoke(self, argument, from_tty):
        space = need_space()
        tasks = [index for index, _, _ in space.tasks()]
        if argument == "all":
            indices = tasks
        elif argument:
            if not argument.isdigit() or int(argument) not in tasks:
                raise gdb.GdbError(f"pvas: no task {argument} (see: pvas info)")
            indices = [int(argument)]
        else:
            indices = [current_index(space)]
            if indices == [None]:
                raise gdb.GdbError("pvas: this thread runs in no partition (name one: pvas info)")
        count = load_partitions(space, indices)
        gdb.write(f"symbols of {count} more files\n")


# ---- at each prompt ----

seen = set()


def check_for_task():
    """Load symbols for a process or core that is new since the last prompt."""
    inferior = gdb.selected_inferior()
    key = inferior.num, inferior.pid
    if inferior.pid and key not in seen:
        seen.add(key)
        loaded.pop(inferior.progspace, None)
        load_current()


Pvas()
PvasInfo()
PvasSymbols()
gdb.events.before_prompt.connect(check_for_task)
check_for_task()
