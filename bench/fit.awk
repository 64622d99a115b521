# SPDX-License-Identifier: GPL-2.0-only
#
# Does a measure grow with N, or with N x N? Least squares over all samples.
#
# usage: awk -f fit.awk -v what=WHAT SECTION.csv
#
# Prints a line for each system: a + b N and a + b N + c N^2, and how far off the
# samples are from either (root of the mean square).

BEGIN { FS = "," }
FNR == 1 || $1 != what { next }
{
	if (!($3 in n))
		systems[++nr] = $3
	i = ++n[$3]
	x[$3, i] = $2
	y[$3, i] = $6
	unit = $5
	xs[$3, $2] = 1
}

# Solve the normal equations of a polynomial of this degree by elimination.
function solve(s, degree,	i, j, k, p, f, m)
{
	m = degree + 1
	for (j = 0; j < m; j++)
		for (k = 0; k <= m; k++)
			A[j, k] = 0
	for (i = 1; i <= n[s]; i++)
		for (j = 0; j < m; j++) {
			for (k = 0; k < m; k++)
				A[j, k] += (x[s, i] / SCALE) ^ (j + k)
			A[j, m] += y[s, i] * (x[s, i] / SCALE) ^ j
		}
	for (p = 0; p < m; p++)
		for (j = 0; j < m; j++) {
			if (j == p)
				continue
			f = A[j, p] / A[p, p]
			for (k = p; k <= m; k++)
				A[j, k] -= f * A[p, k]
		}
	for (j = 0; j < m; j++)
		c[j] = A[j, m] / A[j, j] / SCALE ^ j
}

function residual(s, degree,	i, j, v, sum)
{
	for (i = 1; i <= n[s]; i++) {
		v = y[s, i]
		for (j = 0; j <= degree; j++)
			v -= c[j] * x[s, i] ^ j
		sum += v * v
	}
	return sqrt(sum / n[s])
}

function distinct(s,	key, part, count)
{
	for (key in xs) {
		split(key, part, SUBSEP)
		count += part[1] == s
	}
	return count
}

END {
	SCALE = 100	# keeps the powers of N near 1
	for (k = 1; k <= nr; k++) {
		s = systems[k]
		if (distinct(s) < 3) {
			printf "Fit of %s, %s: needs three N or more\n", what, s
			continue
		}
		solve(s, 1)
		line = sprintf("%.4g %+.4g N (off by %.3g)", c[0], c[1], residual(s, 1))
		solve(s, 2)
		printf "Fit of %s, %s, %s: %s; %.4g %+.4g N %+.4g N^2 (off by %.3g)%s\n", what, s, unit,
			line, c[0], c[1], c[2], residual(s, 2),
			(distinct(s) == 3 ? ", three N only: the second passes through all means" : "")
	}
}
