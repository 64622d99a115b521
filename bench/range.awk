# SPDX-License-Identifier: GPL-2.0-only

# Is x in "*", "a..b" or a list with commas?
function within(x, range,	r, n, i)
{
	if (range == "*")
		return 1
	if (split(range, r, /\.\./) == 2)
		return x + 0 >= r[1] + 0 && x + 0 <= r[2] + 0
	n = split(range, r, ",")
	for (i = 1; i <= n; i++)
		if (x == r[i])
			return 1
	return 0
}
