# shellcheck shell=bash
# shellcheck disable=SC2154 # common.sh's variables
# SPDX-License-Identifier: GPL-2.0-only
#
# For sections made of comparisons that programs of bench/ print, after common.sh.

# comparisons X: those in $work/raw as lines of CSV, as the section's own lines
# "#R beginning of what is compared|what|rival" name them
comparisons()
{
	awk -F'|' -v x="$1" '
	FNR == NR {
		if (sub(/^#R /, "")) {
			text[++nr] = $1; what[nr] = $2; rival[nr] = $3
		}
		next
	}
	$1 == "sample" {
		for (i = 1; i <= nr; i++)
			if (index($2, text[i]) == 1) {
				printf "%s,%s,%s,%s,%s,%s,\n", what[i], x, rival[i], $4, $3, $5
				printf "%s,%s,pvas,%s,%s,%s,\n", what[i], x, $4, $3, $6
				if ($7 != "nan")
					printf "%s,%s,pvas-again,%s,%s,%s,\n", what[i], x, $4, $3, $7
				next
			}
	}' "$0" "$work/raw"
}

# run_module KERNEL NAME...: bench/run's comparisons in a virtual machine; x is the
# kernel. Leaves all that was printed in $work/raw.
run_module()
{
	local kernel=$1 only=$2

	# shellcheck disable=SC2086 # none or one
	"$top/bench/run" --raw --kernel "$kernel" --only "$only" ${QUICK:+--quick} >"$work/raw" 2>"$work/err" ||
		failed "$only, Linux $kernel" "$(tail -n 3 "$work/err" | tr '\n' ' ')"
	grep '^failed|' "$work/raw" >"$work/failed" &&
		failed "$only, Linux $kernel" "$(tr '\n' ' ' <"$work/failed")"
	comparisons "$kernel" >>"$csv"
}
