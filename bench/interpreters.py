# SPDX-License-Identifier: GPL-2.0-only
"""N interpreters that do nothing: `interpreters.py N [LAUNCHER...]` prints WHAT X UNIT VALUE.

    python3 interpreters.py 16                          # started by this process
    python3 interpreters.py 16 pvasrun -q -n 16         # by the launcher
"""
import subprocess
import sys
import time

PYTHON = ["/usr/bin/python3", "-c", "pass"]


def main():
    n, launcher = int(sys.argv[1]), sys.argv[2:]
    commands = [launcher + PYTHON] if launcher else [PYTHON] * n
    began = time.perf_counter()
    children = [subprocess.Popen(command, stdin=subprocess.DEVNULL) for command in commands]
    if any([child.wait() for child in children]):
        sys.exit("interpreters.py: one has failed")
    print("python-start", n, "ms", f"{(time.perf_counter() - began) * 1e3:.6g}")


main()
