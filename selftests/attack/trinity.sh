#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# trinity, random system calls, in four tasks, as nobody. TRINITY_SECONDS,
# TRINITY_SEED; TRINITY_CALLS: so many in each task, then come the next four;
# TRINITY_FDS: kinds of descriptors it opens (see trinity -h). Rank R of job J has
# the seed TRINITY_SEED * 1000003 + 4 * J + R, with which it makes the same calls.

program=trinity
# shellcheck source=selftests/attack/inside
. "$(dirname "$0")/inside"
at_work "${TRINITY_SECONDS:-10}" trinity-c0
seed=$((${TRINITY_SEED:-1} * 1000003))
calls=${TRINITY_CALLS:-3000}
# Opening all that it can takes half a minute in an emulated machine.
fds=${TRINITY_FDS:-pipes,epoll,eventfd,timerfd,testfile,memfd}
stay=$PVAS_BUILD/selftests/attack/libstay.so

# The files that it opens and writes to; more would take most of the time.
mkdir victims && cp /etc/passwd victims/ && chown -R nobody victims

job()
{
	local rank args=()

	for rank in 0 1 2 3; do
		[ $rank = 0 ] || args+=(:)
		args+=(-n 1 -x "LD_PRELOAD=$stay" trinity -q -q -l off -C 1 -N "$calls"
			--enable-fds="$fds" -V "$work/victims" -s $((seed + rank)))
	done
	log_job "trinity: seeds $seed to $((seed + 3)), $calls calls each"
	caged "${args[@]}"
}

jobs=0
killed=0
while ((SECONDS < deadline)); do
	job || { killed=1; break; }
	seed=$((seed + 4))
	jobs=$((jobs + 1))
done
check "all could be killed" [ $killed = 0 ]
check "trinity's child is the task" grep -q '^trinity-c0' seen
ended trinity
echo "# trinity: $jobs jobs, seeds ${TRINITY_SEED:-1} * 1000003 to $((seed - 1)), at most $calls calls in each task"
end_attack
