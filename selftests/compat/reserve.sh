#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Programs that reserve far more addresses than they use: pvasrun's partitions have room for them.
. "$(dirname "$0")/common"
need perl

# reserve TERABYTES: PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE
reserve() { echo "my \$at = syscall 9, 0, $1 << 40, 0, 0x4022, -1, 0; exit(\$at == -1);"; }

try "5 TiB in each of 4 tasks" run 4 perl -e "$(reserve 5)"
try "2 TiB in each of 10" run 10 perl -e "$(reserve 2)"
no_stack_limit() { (ulimit -s unlimited && run "$@"); }
try "without a limit of the stack" no_stack_limit 4 perl -e "$(reserve 1)"
if command -v java >/dev/null; then
	try "a Java heap of 70 GiB" run 4 java -Xmx70g -Xms16m -XX:CICompilerCount=2 -version
fi
# shellcheck disable=SC2034 # run uses it
options=(--partition-size 64G)
fails() { ! "$@"; }
try "but not with partitions of 64 GiB" fails run 1 perl -e "$(reserve 1)"
sum_up
