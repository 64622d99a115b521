# SPDX-License-Identifier: GPL-2.0-only
#
# Which targets are met, in Markdown, from the sections' summaries.
#
# usage: awk -f range.awk -f targets.awk bench/targets DIR/SECTION.summary...
#
# The list's lines are "issue|target|section|what|x|rival|bound", see there. Of a
# range of x, the worst is told; of several rivals, at each x the best one counts.

function number(v) { return sprintf(v + 0 >= 1000 ? "%.0f" : "%.3g", v) }

FNR == 1 {
	file++
	if (file > 1) {
		section = FILENAME
		sub(/.*\//, "", section)
		sub(/\.summary$/, "", section)
	}
}

file == 1 && /^[^#]/ { target[++nr] = $0; next }
file == 1 { next }
FNR > 1 {
	split($0, f, ",")
	row[section, f[1], f[2], f[3]] = $0
	if (!((section, f[1], f[2]) in seen)) {
		seen[section, f[1], f[2]] = 1
		xs[section, f[1]] = xs[section, f[1]] " " f[2]
	}
}

# The best of the rivals: pvas's ratio is nearest to, or farthest over, the bound
function best(sec, what, x, rivals, sign,	n, i, r, f, line)
{
	n = split(rivals, r, ",")
	for (i = 1; i <= n; i++) {
		split(row[sec, what, x, r[i]], f, ",")
		if (f[10] != "" && (line == "" || sign * f[10] > sign * least)) {
			line = row[sec, what, x, r[i]]
			least = f[10]
		}
	}
	return line
}

# The figure, "" if there is none. Sets told, spread.
function figure(sec, what, x, rivals, sign,	line, f)
{
	if (rivals == "-") {
		split(row[sec, what, x, "pvas"], f, ",")
		spread = number(f[8]) " to " number(f[9])
		told = "x = " x
		return f[7]
	}
	line = best(sec, what, x, rivals, sign)
	if (line == "")
		return ""
	split(line, f, ",")
	spread = number(f[11]) " to " number(f[12])
	told = "x = " x ", " f[3]
	return f[10]
}

function verdict(v, bound, sign,	by)
{
	by = bound ? 100 * (v / bound - 1) : 100 * v
	if (sign * (v - bound) <= 0)
		return "met" (v == bound ? "" : sprintf(", %.0f %% better", by < 0 ? -by : by))
	return sprintf("**not met**, %.0f %% off", by < 0 ? -by : by)
}

function tell(t,	f, n, x, i, v, sign, bound, worst, where, range, again)
{
	split(t, f, "|")
	# +1: at most; -1: at least
	sign = f[7] ~ /^<=/ ? 1 : -1
	bound = substr(f[7], 3) + 0
	n = split(xs[f[3], f[4]], x, " ")
	worst = ""
	for (i = 1; i <= n; i++) {
		if (!within(x[i], f[5]))
			continue
		v = figure(f[3], f[4], x[i], f[6], sign)
		if (v == "" || (worst != "" && sign * v <= sign * worst))
			continue
		worst = v
		where = told
		range = spread
		again = figure(f[3], f[4], x[i], "pvas-again", sign)
	}
	printf "| %s | %s | %s %s | ", f[1], f[2], (sign > 0 ? "at most" : "at least"), bound
	if (worst == "") {
		print "- | - | - | no figure in this run (" f[3] ", " f[4] ") |"
		missing++
		return
	}
	printf "%s (%s) | %s | %s | %s |\n", number(worst), where, range,
		again == "" ? "-" : number(again), verdict(worst, bound, sign)
	if (sign * (worst - bound) <= 0)
		met++
	else
		unmet++
}

END {
	print "| issue | target | bound | figure | least to most | same against same | |"
	print "| --- | --- | --- | --- | --- | --- | --- |"
	for (i = 1; i <= nr; i++)
		tell(target[i])
	printf "\n%d met, %d not met, %d without a figure, of %d.\n", met, unmet, missing, nr
}
