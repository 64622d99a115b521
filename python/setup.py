# SPDX-License-Identifier: LGPL-2.1-or-later
"""Builds the package pvas: pip install ./python, for the interpreter that runs pip.

Links with libpvas as installed (pkg-config), or with the file that LIBPVAS names. For
Debian's interpreter, the package python3-pvas is simpler.
"""
import os
import re
import subprocess
from pathlib import Path

from setuptools import Extension, setup

here = Path(__file__).resolve().parent
headers = here.parent / "libpvas"


def pkg_config(option):
    """Words without -I and -l; empty if libpvas is not installed."""
    run = subprocess.run(["pkg-config", option, "libpvas"], capture_output=True, text=True, check=False)
    return [word[2:] for word in run.stdout.split()]


def version(folders):
    """Its one home is pvas.h."""
    text = next(Path(f, "pvas.h") for f in (*folders, "/usr/include") if Path(f, "pvas.h").exists())
    return ".".join(re.findall(r"#define PVAS_VERSION_M\w+ (\d+)", text.read_text()))


library = os.environ.get("LIBPVAS")
include = [str(headers)] if headers.is_dir() else pkg_config("--cflags-only-I")

setup(
    name="pvas",
    version=version(include),
    description="Processes of one job in one address space: use each other's memory",
    license="LGPL-2.1-or-later",
    python_requires=">=3.9",
    packages=["pvas"],
    ext_modules=[Extension(
        "pvas._pvas",
        sorted(str(p.relative_to(here)) for p in here.glob("src/*.c")),
        include_dirs=include,
        define_macros=[("_GNU_SOURCE", None)],
        extra_compile_args=["-std=gnu11", "-fvisibility=hidden"],
        extra_objects=[library] if library else [],
        libraries=[] if library else ["pvas"],
        library_dirs=pkg_config("--libs-only-L"),
    )],
)
