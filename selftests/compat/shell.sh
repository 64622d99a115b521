#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Shells and scripts: pipes, subshells, traps, jobs, #! lines.
# shellcheck source=selftests/compat/common
. "$(dirname "$0")/common"

same "pipes" bash -c 'seq 1 1000 | sort -rn | head -3 | { read a; echo "$a"; cat; }'
same "subshells and substitution" bash -c 'x=$(for i in 1 2 3; do (echo $((i * i))); done); echo $x; (exit 3); echo $?'
same "traps" bash -c 'trap "echo usr1" USR1; trap "echo bye" EXIT; kill -USR1 $$; sh -c "kill -TERM \$\$"; echo $?; exit 5'
same "background jobs" bash -c 'for i in 1 2 3 4; do sleep 0.0$i & done; wait; echo $?; jobs -r'
same "here documents and process substitution" bash -c 'cat <<<hello; diff <(seq 5) <(seq 6)'
same "exec out of the space" bash -c 'exec /bin/echo gone'
same "death by signal" bash -c 'kill -9 $$'
same "dash" dash -c 'i=0; while [ $i -lt 50 ]; do i=$((i + 1)); done; echo $i | tr 0-9 a-j'
printf '#!/bin/bash\necho "$0 $# $*"\nls / | wc -l\n' >script
chmod +x script
same "#! script" ./script a "b c" d
printf '#!%s/script x\n' "$work" >nested
chmod +x nested
same "#! script of a script" ./nested y
eight_shells()
{
	[ "$(run 8 bash -c 'echo $(seq 100 | wc -l)' | grep -c '^100$')" = 8 ]
}
try "8 shells at once" eight_shells
sum_up
