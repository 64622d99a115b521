#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# PVAS_DEBUG says what was decided and why: one line each, all from "pvas:" on.
#
# OUT	where pvasrun and pvasexec are

OUT=${OUT:?where is pvasrun?}
top=$(cd "$(dirname "$(readlink -f "$0")")/../.." && pwd) || exit 1
quiet=1
# shellcheck source=scripts/testlib
. "$top/scripts/testlib"

says() { grep -qE "^pvas: $2\$" "$T/err"; verdict $? "$1"; }
run() { "$@" >"$T/out" 2>"$T/err"; }

unset PVAS_DEBUG
run "$OUT/pvasrun" --backend user -n 1 true
[ ! -s "$T/err" ]; verdict $? "silent without it"
PVAS_DEBUG=0 run "$OUT/pvasrun" --backend user -n 1 true
[ ! -s "$T/err" ]; verdict $? "silent with 0"

export PVAS_DEBUG=1
run "$OUT/pvasrun" --backend user -n 2 true
says "the backend" 'user backend: made space [0-9]+, partitions of 8192 GiB, for tasks 1 to [0-9]+'
says "the launcher's view" 'pvasrun: backend user, space [0-9]+, .*'
says "each task's place" 'space [0-9]+: pid [0-9]+ is task 2, at 0x100000000000: /.*/true'
! grep -qv '^pvas: ' "$T/err"; verdict $? "nothing but such lines"

printf 'no program' >"$T/junk"
chmod +x "$T/junk"
cat >"$T/spawn.c" <<'EOF'
#include <pvas.h>
#include <unistd.h>

/* The library's own refusal: pvasrun would have looked at the program before. */
int main(int argc, char **argv)
{
	struct pvas_create_attr attr = { .backend = PVAS_BACKEND_USER };
	struct pvas_space *space;
	pid_t pid;
	int err = pvas_space_create(&space, &attr);

	if (!err)
		err = pvas_task_spawn(space, 5, argv[1], argv + 1, environ, NULL, &pid);
	return argc == 2 && err < 0 ? 0 : 1;
}
EOF
${CC:-gcc} -D_GNU_SOURCE -I"$top/libpvas" -o "$T/spawn" "$T/spawn.c" "$OUT/../libpvas/libpvas.a" -pthread &&
	run "$T/spawn" "$T/junk"
says "a refused program" "space [0-9]+: $T/junk is no task: Exec format error.*"

if [ -e /dev/pvas ]; then
	skip "why not the kernel's: this machine has /dev/pvas"
	skip "why a plain process: this machine has /dev/pvas"
else
	run "$OUT/pvasrun" -n 1 true
	says "why not the kernel's" 'kernel backend: no space: no /dev/pvas: .*'
	run "$OUT/pvasexec" --key k --fallback true
	says "why a plain process" 'pvasexec: /.*/true runs as a plain process \(--fallback\)'
fi
XDG_RUNTIME_DIR=$T PMIX_NAMESPACE=job7 run "$OUT/pvasexec" --fallback true
says "where the key is from" 'pvasexec: the job is named by PMIX_NAMESPACE, its secret is from .*'

sum_up
