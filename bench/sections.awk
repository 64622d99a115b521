# SPDX-License-Identifier: GPL-2.0-only
#
# For programs that read a list, then sections' scripts, then their summaries
# (NAME.summary); load it first. Sets list[1..nr], of the sections' #M lines title, unit,
# better and axis[section, what]; row[section, what, x, system], and in order[1..nr_rows]
# the keys of those, as they came.

FNR == 1 {
	file++
	name = FILENAME
	sub(/.*\//, "", name)
	summary = sub(/\.summary$/, "", name)
}

file == 1 { if (/^[^#]/) list[++nr] = $0; next }

!summary {
	if (/^#M /) {
		split(substr($0, 4), m, "|")
		title[name, m[1]] = m[2]
		unit[name, m[1]] = m[3]
		better[name, m[1]] = m[4]
		axis[name, m[1]] = m[5]
	}
	next
}

FNR > 1 {
	split($0, f, ",")
	row[name, f[1], f[2], f[3]] = $0
	order[++nr_rows] = name SUBSEP f[1] SUBSEP f[2] SUBSEP f[3]
}

function number(v) { return sprintf(v + 0 >= 1000 ? "%.0f" : "%.3g", v) }
