# SPDX-License-Identifier: GPL-2.0-only
#
# Print a C file that compiles only if the constants of pvas-gdb.py are those of
# libpvas/header.h. gdb's Python can't include a header.
#
# usage: constants.py pvas-gdb.py | cc -fsyntax-only -x c -
import ast
import struct
import sys

NAMES = ("MAGIC", "VERSION", "BASES", "HEADER", "PART", "SHIFTS", "TABLE", "STATES")

with open(sys.argv[1], encoding="utf-8") as source:
    tree = ast.parse(source.read())
values = {"struct": struct}
for node in tree.body:
    if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") in NAMES:
        exec(compile(ast.Module([node], []), sys.argv[1], "exec"), values)

print('#include "libpvas/header.h"')
for name, mine in (
        ("PVAS_HEADER_MAGIC", values["MAGIC"]),
        ("PVAS_HEADER_VERSION", values["VERSION"]),
        ("PVAS_HEADER_STEP", values["BASES"].start),
        ("PVAS_HEADER_STEP", values["BASES"].step),
        ("PVAS_HEADER_LIMIT", values["BASES"].stop),
        ("PVAS_HEADER_TABLE", values["TABLE"]),
        ("PVAS_SHIFT_MIN", values["SHIFTS"].start),
        ("PVAS_SHIFT_MAX", values["SHIFTS"].stop - 1),
        ("offsetof(struct pvas_header, reserved)", values["HEADER"].size),
        ("sizeof(struct pvas_part)", values["PART"].size),
        ("PVAS_PART_FREE", values["STATES"].index("free")),
        ("PVAS_PART_ARMED", values["STATES"].index("armed")),
        ("PVAS_PART_RUNNING", values["STATES"].index("running")),
        ("PVAS_PART_ENDING", values["STATES"].index("ending")),
        ("PVAS_PART_RESERVED", values["STATES"].index("reserved"))):
    print(f'_Static_assert({name} == {mine:#x}, "pvas-gdb.py has {mine:#x} for {name}");')
