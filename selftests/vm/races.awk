#!/usr/bin/awk -f
# SPDX-License-Identifier: GPL-2.0-only
#
# Which of KCSAN's reports are the module's. Reads a kernel log, and prints it with the title
# "BUG: KCSAN: ..." of each report that is not changed to "kcsan, not the module's: ...".
# usage: awk -v module=NAME -f races.awk LOG
#
# A report is the module's if an access in it is a plain one by a function of the module: the
# first of the access's stack that is no helper working on its caller's memory. A function of
# the module further down tells nothing: it stands below all that the kernel does for a task.
# A marked access of the module's (READ_ONCE() and the like) can't be better marked: then the
# other one is at fault. A report without an end counts.

function flush(ours,	i)
{
	if (!ours)
		sub(/BUG: KCSAN:/, "kcsan, not the module's:", held[1])
	for (i = 1; i <= lines; i++)
		print held[i]
	lines = 0
}

# Without the time in front of it
function text_of(line)
{
	sub(/^\[ *[0-9.]+\](\[[^]]*\])? ?/, "", line)
	return line
}

function is_helper(name)
{
	sub(/[+.].*/, "", name)
	return name ~ /^(mem(cpy|set|move|cmp|chr.*|dup.*)|str.*|kstr.*|(__)?rb_.*|(__)?list_.*)$/ ||
		name ~ /^(xas?_.*|radix_.*|idr_.*|ida_.*|sort.*|_?find_.*bit.*|(__)?bitmap_.*)$/ ||
		name ~ /^(_?copy_(from|to)_.*|kv?free|kmem_cache_free|(__)?refcount_.*|kref_.*)$/
}

/BUG: KCSAN:/ {
	if (lines)
		flush(1)
	held[lines = 1] = $0
	ours = plain = 0
	next
}

!lines {
	print
	next
}

{
	held[++lines] = $0
	text = text_of($0)
	if (text ~ /^=====/)
		flush(ours)
	else if (text ~ /(read|write|assert no [a-z]+)( \([a-z, ]*\))? to 0x[0-9a-f]+ of /)
		plain = text !~ /\([^)]*marked/
	else if (plain && text ~ /^ [^ ]+\+0x[0-9a-f]+\/0x/ && !is_helper(substr(text, 2))) {
		ours = ours || (module != "" && text ~ ("\\[" module "\\]"))
		plain = 0
	}
}

END {
	if (lines)
		flush(1)
}
