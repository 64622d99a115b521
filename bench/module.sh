# shellcheck shell=bash
# shellcheck disable=SC2154 # common.sh's variables
# SPDX-License-Identifier: GPL-2.0
#
# For sections made of bench/run's comparisons, after common.sh and vm.sh.

# run_module KERNEL NAME...: each comparison's samples, as the section's lines
# "#R beginning of what is compared|what|rival" name them; x is the kernel. Leaves all
# that was printed in $work/raw.
run_module()
{
	local kernel=$1 only=$2

	# shellcheck disable=SC2086 # none or one
	"$top/bench/run" --raw --kernel "$kernel" --only "$only" ${QUICK:+--quick} >"$work/raw" 2>"$work/err" ||
		failed "$only, Linux $kernel" "$(tail -n 3 "$work/err" | tr '\n' ' ')"
	grep '^failed|' "$work/raw" >"$work/failed" &&
		failed "$only, Linux $kernel" "$(tr '\n' ' ' <"$work/failed")"
	awk -F'|' -v kernel="$kernel" '
	FNR == NR {
		if (sub(/^#R /, "")) {
			text[++nr] = $1; what[nr] = $2; rival[nr] = $3
		}
		next
	}
	$1 == "sample" {
		for (i = 1; i <= nr; i++)
			if (index($2, text[i]) == 1) {
				printf "%s,%s,%s,%s,%s,%s,\n", what[i], kernel, rival[i], $4, $3, $5
				printf "%s,%s,pvas,%s,%s,%s,\n", what[i], kernel, $4, $3, $6
			}
	}' "$0" "$work/raw" >>"$csv"
}
