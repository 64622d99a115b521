# SPDX-License-Identifier: GPL-2.0-only
#
# Where pvas is worse than a rival, and why, in Markdown.
#
# usage: awk -f sections.awk -f range.awk -f losses.awk bench/reasons \
#	 bench/sections/* DIR/SECTION.summary...
#
# A result is worse if the difference is more than 2 %, more than that between two runs of
# pvas, and more than its own uncertainty. Limits, and pvas itself, are not rivals.

BEGIN { LEAST = 0.02; NO_RIVALS = "^(pvas|pvas-again|pvas-untuned|memcpy)$" }

function larger(a, b) { return a > b ? a : b }
function distance(v) { return v == "" ? 0 : larger(v - 1, 1 - v) }

# How far from 1 a ratio may be if nothing differs; of a median, its standard error, nearly
function noise(section, what, x,	again)
{
	split(row[section, what, x, "pvas-again"], again, ",")
	if (!again[13])
		return LEAST
	return larger(LEAST, larger(distance(again[10]),
				    (again[12] - again[11]) / 2 / sqrt(again[13])))
}

# The ratio by which pvas is worse at order[i], or ""
function loss(i,	k, f, by)
{
	split(order[i], k, SUBSEP)
	split(row[order[i]], f, ",")
	if (k[4] ~ NO_RIVALS || f[10] == "")
		return ""
	by = better[k[1], k[2]] == "higher" ? 1 - f[10] : f[10] - 1
	return by > noise(k[1], k[2], k[3]) ? f[10] : ""
}

function reason(section, what, x, rival,	i, f)
{
	for (i = 1; i <= nr; i++) {
		split(list[i], f, "|")
		if (f[1] == section && within(what, f[2]) && within(x, f[3]) &&
		    within(rival, f[4]))
			return f[5]
	}
	return "not known"
}

END {
	for (i = 1; i <= nr_rows; i++) {
		v = loss(i)
		if (v == "")
			continue
		split(order[i], k, SUBSEP)
		line = k[1] SUBSEP k[2] SUBSEP k[4] SUBSEP reason(k[1], k[2], k[3], k[4])
		if (!(line in where))
			lines[++nr_lines] = line
		else
			where[line] = where[line] ", "
		where[line] = where[line] k[3] ": " number(v)
	}
	if (!nr_lines) {
		print "Nowhere beyond the noise."
		exit
	}
	print "| what | rival | better | x: pvas / rival | why |"
	print "| --- | --- | --- | --- | --- |"
	for (i = 1; i <= nr_lines; i++) {
		split(lines[i], k, SUBSEP)
		printf "| %s: %s (x: %s) | %s | %s | %s | %s |\n", k[1], title[k[1], k[2]],
			axis[k[1], k[2]], k[3], better[k[1], k[2]], where[lines[i]], k[4]
	}
}
