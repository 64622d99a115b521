#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Tests of Python in tasks: the host pvas-python3, and the package pvas. TAP.
#
# usage: run.sh [PART-OF-A-NAME]...
#
# BACKEND	user (default) or kernel

set -u

here=$(cd "$(dirname "$(readlink -f "$0")")" && pwd) || exit 1
build=$(readlink -f "${O:-$here/../../build}")
subject=python
# shellcheck source=scripts/testlib
. "$here/../../scripts/testlib"
export PYTHONPATH=$build/python PYTHONDONTWRITEBYTECODE=1
readonly python=/usr/bin/python3 backend=${BACKEND:-user}
pvasrun=("$build/pvasrun/pvasrun" --backend "$backend")
wanted=("$@")

# run COMMAND...: leaves $status, $T/out, $T/err
run()
{
	timeout $((60 * ${SLOW:-1})) "$@" >"$T/out" 2>"$T/err" </dev/null
	status=$?
}

# judge NAME STATUS[|STATUS] [TEXT]: as the last run ended, and what is in its output or errors
judge()
{
	if [ $status -eq 77 ] && [ "$2" != 77 ]; then
		skip "$1" "$(tail -n 1 "$T/out")"
	elif ! [[ $status =~ ^($2)$ ]]; then
		fail "$1" "status $status, not $2"
	elif [ -n "${3:-}" ] && ! cat "$T/out" "$T/err" | grep -qE -e "$3"; then
		fail "$1" "no '$3'"
	else
		pass "$1"
	fi
}

# wants NAME
wants() { has_part "$1" "${wanted[@]}"; }

# job NAME STATUS TEXT COMMAND...: as tasks
job()
{
	local name=$1 expected=$2 text=$3

	shift 3
	wants "$name" || return 0
	run "${pvasrun[@]}" "$@"
	judge "$name" "$expected" "$text"
}

# of FILE: the names of its tests
of() { sed -n 's/^def test_\([a-z_]*\)():/\1/p' "$here/$1.py"; }

# Each test of a file in a job; where a task is killed, the others go on.
jobs_of()
{
	local file=$1 tasks=$2 name status_wanted text options

	for name in $(of "$file"); do
		status_wanted=0 text='' options=()
		case $name in
		waiter_killed) options=(--no-kill) text='^the lock is free' status_wanted=137 ;;
		# The workers notice that at once, and may end before pvasrun has waited for rank 0.
		master_killed) options=(--no-kill) text='^pvasrun: rank 0 .* died from signal 9' status_wanted='137|1' ;;
		*killed) options=(--no-kill) status_wanted=137 ;;
		touch_dead) options=(--no-kill) text='memory of rank 0 was used, but that task has ended' status_wanted=137 ;;
		fork_touch) text='made by fork has no views' ;;
		owner_waits) text='' ;;
		used_by_late_handler) text='^saved 45' ;;
		interrupted) status_wanted=3 ;;
		esac
		job "$file: $name" $status_wanted "$text" "${options[@]}" -n "$tasks" $python "$here/$file.py" "$name"
	done
}

# ---- without a space ----

alone()
{
	local name

	for name in calls lazy two_pools threads errors arrays; do
		wants "alone: pool $name" || continue
		run $python "$here/pools.py" $name
		judge "alone: pool $name" 0
	done
	wants "alone: package" || return 0
	run $python "$here/alone.py"
	judge "alone: package" 0
}

# The package for another version than the interpreter's
other_version()
{
	wants "another version" || return 0
	mkdir "$T/other"
	cp -r "$build/python/pvas" "$T/other/pvas"
	mv "$T"/other/pvas/_pvas.*.so "$T/other/pvas/_pvas.cpython-36m-x86_64-linux-gnu.so"
	PYTHONPATH=$T/other run $python -c 'import pvas'
	judge "another version: the package" 1 'ImportError: pvas is not built for Python 3\.[0-9]+: there is _pvas.cpython-36m'
}

# ---- the host ----

# host NAME TEXT ARGUMENT...: pvasrun -n 1 python3 prints the same as python3, and ends so
host()
{
	local name="host: $1" plain

	shift
	wants "$name" || return 0
	plain=$($python "$@" 2>&1 <"${input:-/dev/null}"; echo "status $?")
	equal "$("${pvasrun[@]}" -q --no-pty -n 1 $python "$@" 2>&1 <"${input:-/dev/null}" | grep -v '^pvasrun:'
		echo "status ${PIPESTATUS[0]}")" "$plain" >"$T/out"
	status=$?
	: >"$T/err"
	judge "$name" 0
}

as_python()
{
	local input=''

	echo 'import sys; print(sys.argv, sys.flags.interactive, __name__)' >"$T/program.py"
	host version -V
	host -c -c 'import sys; print(sys.argv, sys.path, sys.executable, sys.prefix)' a b
	host -m -m calendar 2026 11
	host options -I -OO -X utf8 -W error -c 'import sys; print(sys.flags, sys.warnoptions)'
	host file "$T/program.py" -c x
	host "a folder" "$here/../pvas" x
	host "exit status" -c 'import sys; sys.exit(9)'
	host "exit with a text" -c 'import sys; sys.exit("text")'
	host exception -c 'raise KeyError(1)'
	host "a file that isn't there" "$T/nosuch.py"
	host "a wrong option" --nosuch
	echo 'print("from stdin", __name__)' >"$T/stdin"
	input=$T/stdin
	host stdin
	host "stdin, -" - a
	input=''
	PYTHONOPTIMIZE=2 PYTHONHASHSEED=5 host environment -c 'import sys; print(sys.flags, hash("a"))'
	host sysconfig -c 'import sysconfig, json; print(json.dumps(sysconfig.get_paths()))'
	job "host: a signal" 143 '' -n 1 $python -c 'import os; os.kill(os.getpid(), 15)'
	job "host: its own name" 0 "^/usr/bin/python3" -n 1 "$build/python/pvas-python3" -c 'import sys; print(sys.executable)'
}

scripts()
{
	local line name

	while read -r name line; do
		# One write for a whole line: with -u, print() writes each piece by itself, and
		# those of two tasks mix.
		printf '#!%s\nimport pvas, sys\nsys.stdout.write("%%d %%s\\n" %% (pvas.size, sys.argv))\n' \
			"$line" >"$T/script"
		chmod +x "$T/script"
		wants "script: $name" || continue
		PATH=/usr/bin:/bin run "${pvasrun[@]}" -n 2 "$T/script" 'a b'
		judge "script: $name" 0 "^2 \['$T/script', 'a b'\]"
	done <<-'END'
		direct /usr/bin/python3
		env /usr/bin/env python3
		argument /usr/bin/python3 -u
		split /usr/bin/env -S python3 -u -W ignore
	END
}

# pvasrun without the host beside it; what it says with --verbose; a virtual environment
messages()
{
	job "host: --verbose" 0 'Python is not position-independent: .*/pvas-python3\.[0-9]+ runs it' \
		--verbose -n 1 $python -c ''
	mkdir -p "$T/bin"
	cp "$build/pvasrun/pvasrun" "$build/pvasrun/pvasexec" "$T/bin"
	if wants "host: not installed"; then
		run "$T/bin/pvasrun" -n 1 $python -c ''
		judge "host: not installed" 126 '^pvasrun: cannot start /usr/bin/python3: not a position-independent executable, and pvas-python3\.[0-9]+, which would run it, is not there \(install package python3-pvas, made for Python 3\.[0-9]+\)$'
		run "$T/bin/pvasexec" --key x $python -c ''
		judge "host: not installed, pvasexec" 126 '^pvasexec: /usr/bin/python3: .*package python3-pvas'
	fi
	if wants "host: not installed, env"; then
		printf '#!/usr/bin/env python3\nimport pvas\nprint(pvas.size)\n' >"$T/script"
		chmod +x "$T/script"
		PATH=/usr/bin:/bin run "$T/bin/pvasrun" --backend "$backend" -n 2 "$T/script"
		judge "host: not installed, env" 0 '^pvasrun: .*/script: Python will leave the space: .*package python3-pvas'
	fi
	if wants "host: --check"; then
		run "$build/pvasrun/pvasrun" --check $python
		judge "host: --check" 0 '^/usr/bin/python3: can be a task \(Python, run by .*/pvas-python3'
	fi
	job "host: below pvasrun, a shell" 0 '^1$' -n 1 sh -c "$python -c 'import pvas; print(pvas.size)'"
}

environment()
{
	wants "host: a virtual environment" || return 0
	run $python -m venv --without-pip --system-site-packages "$T/venv"
	[ $status -ne 0 ] || PATH=$T/venv/bin:$PATH run "${pvasrun[@]}" -n 2 python3 -c \
		'import sys, pvas
sys.stdout.write(f"{pvas.size} {sys.prefix} {sys.executable} {sys.prefix != sys.base_prefix}\n")'
	judge "host: a virtual environment" 0 "^2 $T/venv $T/venv/bin/python3 True"
}

# pvasexec without the module runs a plain process, but by the same host
below_pvasexec()
{
	wants "pvasexec: --fallback" || return 0
	PVAS_DEBUG=1 run "$build/pvasrun/pvasexec" --fallback --key x $python -c 'import pvas; print(pvas.size)'
	judge "pvasexec: --fallback" 0 'pvas-python3\.[0-9]+ runs it'
}

# In examples/python, on small problems
examples()
{
	local dir=$here/../../examples/python right='bit for bit the serial answer'

	if ! $python -c 'import numpy' 2>/dev/null; then
		skip "examples" "no NumPy"
		return
	fi
	job "example: heat" 0 "$right" -n 3 $python "$dir/heat.py" --size 50 --steps 21 --verify
	job "example: heat, a row each" 0 "$right" -n 4 $python "$dir/heat.py" --size 4 --steps 8 --verify
	job "example: kmeans" 0 "centres right" -n 3 $python "$dir/kmeans.py" --mib 8 --rounds 3
	job "example: viewer" 0 "^step [1-9]" --no-pty -x TEAM_SIZE=2 -n 2 "$build/examples/heat" --size 120 --steps 100000 : \
		-n 1 $python "$dir/viewer.py" --size 120 --every 0.05 --picture "$T/heat.png"
	[ ! -e "$T/heat.png" ] || check "example: viewer, picture" grep -q IEND "$T/heat.png"
	$python -c 'import mpi4py' 2>/dev/null || { skip "example: ring" "no mpi4py"; return; }
	job "example: ring" 0 "2 ranks, of which 2 are tasks of this space: right" -n 2 $python "$dir/ring.py"
	[ -c /dev/pvas ] && wants "example: ring, pvasexec" || return 0
	run env OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 mpirun.openmpi --oversubscribe -n 2 \
		"$build/pvasrun/pvasexec" $python "$dir/ring.py"
	judge "example: ring, pvasexec" 0 "2 ranks, of which 2 are tasks of this space: right"
}

[ -x "$build/python/pvas-python3" ] || skip_all "not built (make -C python)"
alone
other_version
as_python
scripts
messages
environment
below_pvasexec
jobs_of inside 2
jobs_of views 3
jobs_of foreign 2
jobs_of sync 3
jobs_of pools 3
jobs_of ends 3
examples
sum_up
