#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# perl, sqlite3, openssl, xz, git
# shellcheck source=selftests/compat/common
. "$(dirname "$0")/common"
need perl sqlite3 openssl xz git

cat >sum.pl <<'END'
my %h; $h{$_ % 97} .= "x$_" for 1 .. 20000;
my $s = 0; $s += length for values %h;
my $out = `echo child; exit 3`; my $st = $? >> 8;
defined(my $pid = fork) or die; if (!$pid) { exit 7 } waitpid $pid, 0;
print "$s $out $st ", $? >> 8, " ", join(",", sort { $a <=> $b } map { $_ * 3 } 1 .. 10), "\n";
END
same "perl" perl sum.pl

sql="CREATE TABLE t(i INTEGER PRIMARY KEY, s TEXT); CREATE INDEX ts ON t(s);
WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 2000)
INSERT INTO t SELECT x, printf('%05d', x * 7919 % 2000) FROM c;
SELECT count(*), sum(i), min(s), max(s) FROM t WHERE s > '00500';"
same "sqlite3 in memory" sqlite3 :memory: "$sql"
# Each task in a directory of its own, the program being the task itself.
eight_databases()
{
	local want i args=()
	want=$(sqlite3 plain.db "$sql")
	for i in 0 1 2 3 4 5 6 7; do
		[ $i -eq 0 ] || args+=(:)
		args+=(-n 1 sqlite3 "db$i" "$sql")
	done
	"$pvasrun" -q --backend "$backend" "${args[@]}" >out || return
	cat out
	[ "$(grep -cFx "$want" out)" = 8 ] || return
	for i in 0 1 2 3 4 5 6 7; do
		[ "$(sqlite3 "db$i" 'PRAGMA integrity_check; SELECT count(*) FROM t')" = "ok
2000" ] || return
	done
}
try "sqlite3: 8 databases at once" eight_databases

try "openssl speed" run 1 openssl speed -seconds 1 -bytes 1024 sha256
head -c 3000000 /dev/urandom >random
same "openssl dgst" openssl dgst -sha256 random
same "openssl enc" openssl enc -aes-256-cbc -K 00 -iv 00 -in random

seq 1 200000 >numbers
xz_round_trip()
{
	run 1 xz -T2 -1 --block-size=300KiB -k numbers && xz -dc numbers.xz | cmp - numbers
}
try "xz -T2" xz_round_trip
same "xz -d" xz -dc -T2 numbers.xz

export GIT_CONFIG_NOSYSTEM=1 HOME=$work
git_repository()
{
	git init -q repo && cd repo && git config user.email a@b && git config user.name ab &&
	cp ../sum.pl ../numbers . && git add . && git commit -qm one && seq 5 >numbers &&
	git commit -qam two
}
(git_repository) >/dev/null 2>&1
git_clone()
{
	run 1 git clone -q --no-local repo copy && git -C copy fsck --full &&
		[ "$(git -C copy rev-parse HEAD)" = "$(git -C repo rev-parse HEAD)" ]
}
try "git clone" git_clone
same "git log" git -C repo log --stat -p
sum_up
