#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
# Run the tests. On a failure, print all output of the test, and at the end a summary of the
# failures, because of a long log often only the end is kept.
# usage: run.sh build-dir unit...

dir=$(cd "$1" && pwd) || exit 1
shift
failed=0
log=$(mktemp) || exit 1
failures=$(mktemp) || exit 1
trap 'rm -f "$log" "$failures"' EXIT

count_results()	# count_results NAME STATUS
{
	passed=$(grep -v '# SKIP' "$log" | grep -c '^ok ')
	bad=$(grep -c '^not ok ' "$log")
	skipped=$(grep -c '^ok .*# SKIP' "$log")
	# Killed before it could report a failure
	[ "$2" -eq 0 ] || [ "$bad" -ne 0 ] || bad=1
	if [ "$bad" -ne 0 ]; then
		# Not as TAP: the summary below counts it.
		sed 's/^/# /' "$log"
		# The expectations that failed, printed by the test or by a task, and the tests
		grep -E '^[^ ]+\.[ch]:[0-9]+:|^# [^ ]+\.[ch]:[0-9]+:|terminated' "$log" | tail -20 |
			sed "s/^/# $1: /" >> "$failures"
		grep '^not ok ' "$log" | sed "s/^/# $1: /" >> "$failures"
		[ "$2" -eq 0 ] || echo "# $1: exit status $2" >> "$failures"
		failed=1
	fi
	echo "# libpvas $1: $(($(date +%s) - began)) s"
	echo "libpvas $1: $passed passed, $bad failed, $skipped skipped"
}

# Without the module only what needs none can be run: no 54 skips.
excluded()	# excluded UNIT
{
	[ -e /dev/pvas ] || case $1 in
	space) echo "-V normal -V smallest -V largest" ;;
	errors) echo "-V kernel -F module" ;;
	esac
}

for unit in "$@"; do
	began=$(date +%s)
	# shellcheck disable=SC2046 # no option, or several
	"$dir/$unit" $(excluded "$unit") > "$log" 2>&1
	count_results "$unit" $?
done
began=$(date +%s)
"$(dirname "$0")/loader.sh" "$dir" > "$log" 2>&1
count_results loader $?
# The reasons first, the names last
grep -v ': not ok ' "$failures"
grep ': not ok ' "$failures"
exit $failed
