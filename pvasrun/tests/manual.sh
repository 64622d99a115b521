#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The manual page and --help name the same options, and the page is well formed.

PVASRUN=${PVASRUN:?which pvasrun?}
top=$(dirname "$(readlink -f "$0")")/../..
page=$top/man/pvasrun.1
quiet=1
# shellcheck source=scripts/testlib
. "$top/scripts/testlib"
test=manual

# The page's items begin an option each: ".It Fl n Ar N , Fl Fl np Ar N"
in_page() { grep '^\.It Fl' "$page" | sed 's/Fl Fl /\n--/g; s/Fl /\n-/g' | grep -oE '^--?[a-z-]+|^-[A-Z]' | sort -u; }

# The help's lines begin with theirs, apart from the text by two spaces
in_help() { $PVASRUN --help | sed -n 's/^  \(-[^ ].*\)/\1/p' | sed 's/   *.*//' | grep -oE '(^|[ ])--?[A-Za-z][a-z-]*' | tr -d ' ' | sort -u; }

options=$(in_help)
check "--help has options" [ "$(echo "$options" | wc -l)" -gt 20 ]
check "options differ: $(diff <(in_page) <(in_help) | grep '^[<>]' | tr '\n' ' ')" \
	[ "$(in_page)" = "$options" ]
for var in PVAS_RANK PVAS_SIZE PVAS_SPACE; do
	check "$var" grep -q "^\.It Ev $var" "$page"
done
for code in 0 1 124 126 127; do
	check "exit status $code" grep -q "^\.It $code\$" "$page"
done
check "choices of --bind-to" grep -q '^\.It Fl Fl bind-to Cm core | numa | none$' "$page"
if command -v mandoc >/dev/null; then
	# other pages may not be installed yet
	lint=$(mandoc -T lint -W warning "$page" 2>&1 | grep -v 'outdated mandoc.db')
	check "mandoc: $lint" [ -z "$lint" ]
fi
sum_up
