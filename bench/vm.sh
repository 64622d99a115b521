# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154 # common.sh's variables and ours
# SPDX-License-Identifier: GPL-2.0-only
#
# For sections that measure in virtual machines, after common.sh. There, times are an
# emulator's: only ratios say something, and noise that hits the host can't be seen.

kernels=${KERNELS-$([ "$QUICK" ] && echo 6.12 || echo 6.1 6.12)}
# Set in the machine: its kernel
IN_VM=${IN_VM:-}

# in_vm KERNEL [OPTION]...: run this section there, with vm/run's options, and take over
# what it measured
in_vm()
{
	local kernel=$1 dir=$work/$1 status v passed=()
	shift

	for v in RANKS RUNS_VM COUNTS LIMIT SYSTEMS; do
		[ -z "${!v:-}" ] || passed+=("$v=${!v}")
	done

	mkdir -p "$dir"
	"$top/selftests/vm/run" --kernel "$kernel" --out "$dir" --timeout "${LIMIT_VM:-3600}" "$@" -- \
		env IN_VM="$kernel" OUT=/run/pvas-out QUICK="$QUICK" RUNS="$RUNS" O="$B" \
		XPMEM_DIR="${XPMEM_DIR:-}" "${passed[@]}" "$(readlink -f "$0")" 2>&1 | sed -u 's/^/# /'
	status=${PIPESTATUS[0]}
	tail -qn +2 "$dir/$section.csv" >>"$csv"
	sort -u "$dir/$section.note" >>"$OUT/$section.note"
	[ $status = 0 ] || failed "Linux $kernel in the virtual machine" "status $status (see the log)"
}

# hold: the module's hooks come with the first space and go with the last one; an
# emulator with a thread a processor needs that they stay (selftests/vm/README.md).
hold()
{
	coproc HOLD { "$B/pvasrun/pvasrun" --backend kernel -q -n 1 cat; }
	held=${HOLD[1]} holder=$HOLD_PID
}

let_go()
{
	exec {held}>&-
	wait "$holder"
}

# put_all SYSTEM RUN: of lines "WHAT X UNIT VALUE"
put_all()
{
	local what x unit value

	while read -r what x unit value; do
		put "$what" "$x" "$1" "$2" "$unit" "$value"
	done
}
