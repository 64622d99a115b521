# SPDX-License-Identifier: GPL-2.0-only
#
# A section's tables in Markdown, from what summary.awk printed.
#
# usage: awk -f table.awk SECTION-SCRIPT SUMMARY [-v plots=FOLDER]
#
# The section's own lines "#M what|title|unit|lower or higher|what x is|plot" say what
# is measured. Each what is a table: its rows are the x, its columns the systems.

FNR == 1 { file++ }

file == 1 && /^#M / {
	split(substr($0, 4), m, "|")
	title[m[1]] = m[2]; better[m[1]] = m[4]; xname[m[1]] = m[5]; plot[m[1]] = m[6]
	next
}
file == 1 { next }
FNR == 1 { next }

{
	split($0, f, ",")
	what = f[1]; x = f[2]; system_ = f[3]
	if (!(what in unit)) {
		unit[what] = f[4]
		whats[++nr_whats] = what
	}
	if (!((what, x) in seen)) {
		seen[what, x] = 1
		xs[what] = xs[what] SUBSEP x
	}
	if (!((what, system_) in seen)) {
		seen[what, system_] = 1
		if (system_ !~ /^pvas(-again)?$/)
			rivals[what] = rivals[what] " " system_
	}
	row[what, x, system_] = $0
}

function number(v) { return v == "" ? "" : sprintf(v + 0 >= 1000 ? "%.0f" : "%.4g", v) }
function ratio(v) { return v == "" ? "" : sprintf("%.3f", v) }

# The value's cell, and the ratio's
function value(line,	f)
{
	if (line == "")
		return "-"
	split(line, f, ",")
	if (!f[5])
		return "none quiet"
	return number(f[7]) (f[6] ? " (" f[6] " dropped)" : "")
}

function compare(line,	f)
{
	if (line == "")
		return "-"
	split(line, f, ",")
	if (f[10] == "")
		return "no pair"
	return ratio(f[10]) " (" ratio(f[11]) " to " ratio(f[12]) ")"
}

# Without ours there is nothing to compare.
function ours(what) { return (what, "pvas") in seen }

# Ours first
function order(what)
{
	return ((what, "pvas") in seen ? "pvas " : "") \
		((what, "pvas-again") in seen ? "pvas-again" : "") rivals[what]
}

function table(what,	i, j, nx, ns, x, s, line, n, f)
{
	nx = split(substr(xs[what], 2), x, SUBSEP)
	ns = split(order(what), s, " ")
	printf "\n### %s\n\n%s; %s is better.", (what in title ? title[what] : what),
		unit[what], (what in better ? better[what] : "lower")
	printf " Medians%s.\n\n", ours(what) ? \
		"; pvas beside each: the median of the ratios of neighbours (least to most)" : ""
	printf "| %s |", (what in xname ? xname[what] : "x")
	for (i = 1; i <= ns; i++)
		printf " %s |", s[i]
	for (i = 1; i <= ns; i++)
		if (ours(what) && s[i] != "pvas")
			printf " pvas / %s |", s[i]
	print " runs |"
	n = ours(what) ? ns + ns + 1 : ns + 2
	for (i = 0; i < n; i++)
		printf "| --- "
	print "|"
	for (j = 1; j <= nx; j++) {
		printf "| %s |", x[j]
		most = 0
		for (i = 1; i <= ns; i++) {
			line = row[what, x[j], s[i]]
			printf " %s |", value(line)
			split(line, f, ",")
			if (f[5] > most)
				most = f[5]
		}
		for (i = 1; i <= ns; i++)
			if (ours(what) && s[i] != "pvas")
				printf " %s |", compare(row[what, x[j], s[i]])
		printf " %d |\n", most
	}
	if (plots && plot[what] != "none" && (getline <(plots "/" section "-" what ".svg")) > 0)
		printf "\n![%s](%s-%s.svg)\n", title[what], section, what
}

END {
	for (w = 1; w <= nr_whats; w++)
		table(whats[w])
}
