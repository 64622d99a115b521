# SPDX-License-Identifier: GPL-2.0-only
#
# Medians and ratios of sections' samples.
#
# usage: awk -f summary.awk SECTION.csv SECTION.dropped
#
# Prints CSV: what,x,system,unit,n,dropped,median,min,max,ratio,least,most,pairs
# in the order of the samples. A ratio is pvas's value by the system's, the median of
# those of the same run; a pair counts only if the processors lay equally far apart
# (probe) in both. Without a pair the last four are empty or 0.

BEGIN {
	FS = OFS = ","
	PROBE_LIMIT = 1.4	# as btl_glue/bench/p2p.h has it
	print "what,x,system,unit,n,dropped,median,min,max,ratio,least,most,pairs"
}

FNR == 1 { dropping = /,why$/; next }

{
	key = $1 "," $2
	id = key "," $3
	if (!(id in unit)) {
		unit[id] = $5
		ids[++nr_ids] = id
	}
}

dropping { lost[id]++; next }

{
	if ((id, $4) in value) {
		print FILENAME ":" FNR ": a second sample of run " $4 " of " id >"/dev/stderr"
		bad = 1
	}
	value[id, $4] = $6
	probe[id, $4] = $7
	runs[id] = runs[id] " " $4
}

function sort(v, n,	i, j, t)
{
	for (i = 2; i <= n; i++) {
		t = v[i]
		for (j = i - 1; j >= 1 && v[j] > t; j--)
			v[j + 1] = v[j]
		v[j + 1] = t
	}
}

function median(v, n) { return n % 2 ? v[(n + 1) / 2] : (v[n / 2] + v[n / 2 + 1]) / 2 }

function near(a, b)
{
	return a == "" || b == "" || (a + 0 < b * PROBE_LIMIT && b + 0 < a * PROBE_LIMIT)
}

# Three fields: median, least, most
function three(v, n)
{
	if (!n)
		return ",,"
	sort(v, n)
	return sprintf("%.6g,%.6g,%.6g", median(v, n), v[1], v[n])
}

function ratios(id, ours,	n, i, r, list)
{
	if (id == ours)
		return ",,,0"
	split(runs[id], list, " ")
	for (i = 1; i in list; i++) {
		r = list[i]
		if ((ours, r) in value && value[id, r] != 0 && near(probe[id, r], probe[ours, r]))
			v[++n] = value[ours, r] / value[id, r]
	}
	return three(v, n) "," n + 0
}

END {
	for (i = 1; i <= nr_ids; i++) {
		id = ids[i]
		split(id, part, ",")
		n = split(runs[id], list, " ")
		for (j = 1; j <= n; j++)
			v[j] = value[id, list[j]] + 0
		print id, unit[id], n, lost[id] + 0, three(v, n),
			ratios(id, part[1] "," part[2] ",pvas")
	}
	exit bad
}
