#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
# Run the tests of far memory; all output of one that fails.
# usage: run.sh build-dir unit...

dir=$(cd "$1" && pwd) || exit 1
shift
failed=0
log=$(mktemp) || exit 1
trap 'rm -f "$log"' EXIT

for unit in "$@"; do
	began=$(date +%s)
	timeout -k 5 800 "$dir/$unit" > "$log" 2>&1
	status=$?
	bad=$(grep -c '^not ok ' "$log")
	# Killed before it could report a failure
	[ "$status" -eq 0 ] || [ "$bad" -ne 0 ] || bad=1
	[ "$bad" -eq 0 ] || { sed 's/^/# /' "$log"; failed=1; }
	echo "# far $unit: $(($(date +%s) - began)) s"
	echo "far $unit: $(grep -v '# SKIP' "$log" | grep -c '^ok ') passed, $bad failed," \
		"$(grep -c '^ok .*# SKIP' "$log") skipped"
done
exit $failed
