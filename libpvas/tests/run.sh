#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
# Run the tests; on a failure show all the test said.
# usage: run.sh build-dir unit...

dir=$(cd "$1" && pwd) || exit 1
shift
failed=0
log=$(mktemp) || exit 1
trap 'rm -f "$log"' EXIT

report()	# report NAME STATUS
{
	passed=$(grep -v '# SKIP' "$log" | grep -c '^ok ')
	bad=$(grep -c '^not ok ' "$log")
	skipped=$(grep -c '^ok .*# SKIP' "$log")
	echo "libpvas $1: $passed passed, $bad failed, $skipped skipped"
	if [ "$2" -ne 0 ] || [ "$bad" -ne 0 ]; then
		cat "$log"
		failed=1
	fi
}

for unit in "$@"; do
	"$dir/$unit" > "$log" 2>&1
	report "$unit" $?
done
"$(dirname "$0")/loader.sh" "$dir" > "$log" 2>&1
report loader $?
exit $failed
