# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only
#
# For the sections, which source it. Sets top, B (the build), OUT, QUICK, RUNS and
# has the functions below. See README.md, "A section".

top=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.." && pwd) || exit 1
B=${O:-$top/build}
section=$(basename "$0")
OUT=${OUT:?the folder for the results (bench/all sets it)}
QUICK=${QUICK:-}
RUNS=${RUNS:-$([ "$QUICK" ] && echo 3 || echo 11)}
csv=$OUT/$section.csv
dropped=$OUT/$section.dropped
work=$(mktemp -d) || exit 1
failures=0
trap 'rm -rf "$work"' EXIT
echo what,x,system,run,unit,value,probe >"$csv"
echo what,x,system,run,unit,value,probe,why >"$dropped"
: >"$OUT/$section.note"

# note TEXT: adds a line below the section's tables: the command, or any condition
note() { echo "$*" >>"$OUT/$section.note"; }

# skipped WHAT WHY: reports a measurement that is impossible on this machine
skipped()
{
	note "Skipped: $1: $2"
	echo "# $section: skipped: $1: $2"
}

# failed WHAT WHY: the section continues, and fails at its end
failed()
{
	note "FAILED: $1: $2"
	echo "$section: $1: $2" >&2
	failures=$((failures + 1))
}

# finish: a section's last line
finish() { exit $((failures > 0)); }

# put WHAT X SYSTEM RUN UNIT VALUE: one sample that noise doesn't affect (memory)
put() { echo "$1,$2,$3,$4,$5,$6," >>"$csv"; }

# keep STATE PROBE SYSTEM RUN: stores the lines "WHAT X UNIT VALUE" as samples
keep()
{
	if [ "$1" = quiet ] || [ "${BENCH_KEEP:-}" ]; then
		awk -v OFS=, -v p="$2" -v s="$3" -v r="$4" '{ print $1, $2, s, r, $3, $4, p }' >>"$csv"
	else
		awk -v OFS=, -v p="$2" -v s="$3" -v r="$4" -v w="$1" \
			'{ print $1, $2, s, r, $3, $4, p, w }' >>"$dropped"
	fi
}

# samples SYSTEM RUN COMMAND...: the command prints lines "WHAT X UNIT VALUE". They
# count only if the machine was quiet meanwhile. If not, it is done once more.
samples()
{
	local system=$1 run=$2 state probe
	shift 2

	for _ in 1 2; do
		if ! timeout -k 5 "${LIMIT:-300}" "$B/bench/quiet" "$work/state" "$@" \
			>"$work/out" 2>"$work/err" </dev/null; then
			failed "$system, run $run: $*" "$(tail -n 3 "$work/err" "$work/out" | tr '\n' ' ')"
			return 1
		fi
		read -r probe state <"$work/state"
		[ "$probe" != 0 ] || probe=
		keep "$state" "$probe" "$system" "$run" <"$work/out"
		[ "$state" != quiet ] && [ -z "$QUICK${BENCH_KEEP:-}" ] || return 0
	done
}

# interleave FUNCTION SYSTEM...: calls FUNCTION SYSTEM RUN for each run, each system.
# The order rotates, so that no system always profits from caches that another has filled.
interleave()
{
	local _function=$1 _run _i
	shift

	for ((_run = 1; _run <= RUNS; _run++)); do
		for ((_i = 0; _i < $#; _i++)); do
			"$_function" "${@:(_run - 1 + _i) % $# + 1:1}" "$_run"
		done
	done
}

# has WORD LIST: is the word in the list, whose separator is a space?
has() { [[ " $2 " == *" $1 "* ]]; }
