# SPDX-License-Identifier: GPL-2.0-only
# For readme-table, after sections.awk: the rows, all sections, all summaries.

# The rival that is best where pvas is compared with it
function best(sec, what, x, rivals,	n, r, i, f, sign, least, line)
{
	sign = better[sec, what] == "lower" ? 1 : -1
	n = split(rivals, r, ",")
	for (i = 1; i <= n; i++) {
		split(row[sec, what, x, r[i]], f, ",")
		if (f[10] != "" && (line == "" || sign * f[10] > sign * least)) {
			least = f[10]
			line = row[sec, what, x, r[i]]
		}
	}
	return line
}

function tell(sec, what, x, rivals,	line, f, us, again)
{
	line = best(sec, what, x, rivals)
	split(row[sec, what, x, "pvas"], us, ",")
	if (line == "" || us[7] == "")
		return
	split(line, f, ",")
	split(row[sec, what, x, "pvas-again"], again, ",")
	printf "| %s, %s %s | %s %s | %s (%s) | %.2f (%.2f to %.2f) | %s | %s |\n", title[sec, what], x,
		axis[sec, what], number(us[7]), unit[sec, what], number(f[7]), f[3], f[10], f[11], f[12],
		again[10] == "" ? "-" : sprintf("%.2f", again[10]), better[sec, what]
}

END {
	print "| what | pvas | best rival | pvas / rival (least to most) | same against same | better |"
	print "| --- | --- | --- | --- | --- | --- |"
	for (i = 1; i <= nr; i++) {
		split(list[i], f, "|")
		n = split(f[3], x, ",")
		for (j = 1; j <= n; j++)
			tell(f[1], f[2], x[j], f[4])
	}
}
