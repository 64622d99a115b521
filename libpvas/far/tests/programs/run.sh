#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Unmodified programs, most of whose memory is far: they print what they print without --ram.
#
# usage: O=build-dir run.sh [--short]
#
# --short	small sizes, one store, and no hpcc

here=$(dirname "$(readlink -f "$0")")
top=$(readlink -f "$here/../../../..")
O=$(readlink -f "${O:-$top/build}")
subject=far-programs
# shellcheck source=scripts/testlib
. "$top/scripts/testlib"
pvasrun=$O/pvasrun/pvasrun
programs=$O/libpvasfar/tests
export PVAS_FAR_PLUGINS=$O/libpvasfar OMP_NUM_THREADS=2
export OMPI_MCA_btl=self,pvas OMPI_MCA_mpi_yield_when_idle=1 OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
short=
[ "${1:-}" != --short ] || short=1
# MiB of memory; the budget is a quarter of it. FFTW's columns touch a page with each element.
size=256 fft_size=32 page=64K stores=(zip "file:$T" start)
[ ! "$short" ] || size=32 fft_size=4 stores=(zip)

# run_far STORE BUDGET_MIB RANKS PROGRAM...: its output is in $T/far, pvasrun's in $T/err
run_far()
{
	local store=$1 ram=$2 n=$3 where=(--far "$1")

	shift 3
	[ "$store" != start ] || where=(--far-start localhost)
	timeout -k 5 1500 "$pvasrun" --verbose --ram "${ram}M" --far-page "$page" "${where[@]}" "${options[@]}" -n "$n" "$@" \
		>"$T/far" 2>"$T/err" </dev/null
}

# Did memory really go out, more of it than the budget?
went_out() { [ "$(sed -n 's/.*came in, \([0-9]*\) MiB went out.*/\1/p' "$T/err")" -ge "$1" ]; }

# same NAME PROGRAM...: plainly and with each store, at four times the budget
same()
{
	local name=$1 store

	shift
	"$@" >"$T/plain" 2>"$T/err" || { fail "$name: plainly"; return; }
	for store in "${stores[@]}"; do
		run_far "$store" $((size / 4)) 1 "$@" && [ -s "$T/far" ] && cmp -s "$T/plain" "$T/far" &&
			went_out $((size / 4))
		verdict $? "$name, $size MiB of which a quarter is resident, $store"
	done
}

options=(--mpi none)
for kernel in stream stencil product; do
	same $kernel "$programs/kernels" $kernel $size
done
# The stencil's blocks in time change nothing.
"$programs/kernels" stencil 8 >"$T/plain" && "$programs/kernels" untiled 8 >"$T/far" && cmp -s "$T/plain" "$T/far"
verdict $? "stencil: as without blocks in time"
if [ -x "$programs/fft" ]; then
	size=$fft_size page=16K same fft "$programs/fft" $fft_size
else
	skip fft "no FFTW (install libfftw3-dev)"
fi

# Its pages are read from a file into far memory, and written from there.
if command -v sqlite3 >/dev/null; then
	cat >"$T/sql" <<-END
	pragma journal_mode = off;
	pragma cache_size = -$((size * 1024));
	drop table if exists t;
	create table t (k integer primary key, v text, w integer);
	with recursive n (i) as (select 1 union all select i + 1 from n where i < $((size * 1024)))
		insert into t select i, hex(i * 2654435761) || printf('%0900d', i * i), i * 7919 % 10007 from n;
	create index by_w on t (w);
	update t set v = v || k where w % 3 = 0;
	select count(*), sum(length(v)), sum(k) from t where w between 1000 and 3000;
	select k, w, substr(v, 1, 20) from t where w = 5000 order by v limit 5;
	pragma integrity_check;
	END
	same sqlite3 sqlite3 -pagecache 4400 $((size * 240)) "$T/db" ".read $T/sql"
else
	skip sqlite3 "not installed"
fi

# 16 threads, fork and exec, and a rank that reads what another one writes
for job in "1 threads" "1 fork" "1 exec" "3 peer"; do
	run_far zip 16 "${job% *}" "$O/libpvasfar/tests/task" "${job#* }"
	verdict $? "${job#* }, ${job% *} task(s)"
done

# Half of it is resident; it checks its own results.
if [ "$short" ] || ! command -v hpcc >/dev/null; then
	skip hpcc "${short:+it takes minutes}"
else
	"$top/selftests/mpi/hpcc-input" 4 1400 64 >"$T/hpccinf.txt"
	options=(--far-threshold 256K --wdir "$T")
	run_far zip 16 4 hpcc && cp "$T/hpccoutf.txt" "$T/out" && grep -q '^Success=1$' "$T/out" &&
		! grep -q 'FAILED$' "$T/out" && grep -q 'PASSED$' "$T/out" && went_out 16
	verdict $? "hpcc, 4 ranks, half of the memory resident"
fi
sum_up
