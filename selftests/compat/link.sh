#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Ways to be linked: static-PIE, LD_PRELOAD, dlopen, $ORIGIN in RUNPATH.
# shellcheck source=selftests/compat/common
. "$(dirname "$0")/common"

same "static-PIE" "$progs/static" a b
same "static-PIE stops on a signal" "$progs/static" abort
preload()
{
	run 1 -x LD_PRELOAD="$progs/libpreload.so" "$progs/a/runpath" | grep -x "preloaded 42"
}
try "LD_PRELOAD in one task" preload
same "dlopen" "$progs/load" "$progs/a/lib/libanswer.so"
same "dlopen of what is not there" "$progs/load" /nonexistent.so
same '$ORIGIN in RUNPATH' "$progs/a/runpath"
# The first program's /proc/self/exe must not be the second's.
two_origins()
{
	"$pvasrun" -q --backend "$backend" -n 2 "$progs/a/runpath" : -n 2 "$progs/b/runpath" >out || return
	cat out
	[ "$(grep -cx 42 out)" = 2 ] && [ "$(grep -cx 43 out)" = 2 ]
}
try '$ORIGIN in two programs of one job' two_origins
export LD_LIBRARY_PATH=$progs/b/lib
same "LD_LIBRARY_PATH" "$progs/a/runpath"
unset LD_LIBRARY_PATH
LD_BIND_NOW=1 same "LD_BIND_NOW" "$progs/a/runpath"
sum_up
