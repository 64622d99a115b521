#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# The stressors of stress-ng's classes vm and scheduler (which has those of
# processes: fork, vfork, clone, exec, daemon, zombie, kill, ...; there is no class
# of that name), each in a task, four at a time, as nobody, in random order.
# STRESS_SECONDS, STRESS_SEED; STRESS_EACH is for each four.

program=stress-ng
# shellcheck source=selftests/attack/inside
. "$(dirname "$0")/inside"
at_work "${STRESS_SECONDS:-12}" stress-ng-
seed=${STRESS_SEED:-1}
each=${STRESS_EACH:-4}
stay=$PVAS_BUILD/selftests/attack/libstay.so

# Lines "stressor forks": so many forks lie between stress-ng and the work. Most
# of vm do it in a child of the child, so that it may be killed.
stressors()
{
	local class s

	for class in vm scheduler; do
		for s in $(stress-ng --class "$class?" | sed 's/.*: //'); do
			case $class in
			vm) echo "$s 2" ;;
			*) echo "$s 1" ;;
			esac
		done
	done
}

job()
{
	local args=() name forks

	log_job "stress-ng: seed $seed, stressors and forks: $*"
	for name; do
		forks=${name#*:} name=${name%:*}
		[ ${#args[@]} = 0 ] || args+=(:)
		args+=(-n 1 -x "LD_PRELOAD=$stay" -x "STAY_FORKS=$forks" stress-ng
			"--$name" 1 --timeout "$each" --seed "$seed" --oomable --temp-path "$work/jobs")
	done
	caged -t $((each * 3)) "${args[@]}"
}

stressors | sort -u >list
jobs=0
killed=0
while ((SECONDS < deadline && ! killed)); do
	# The same seed makes the same order.
	awk -v seed="$seed" 'BEGIN { srand(seed) } { print rand() "\t" $1 ":" $2 }' list |
		sort -n | cut -f2 >order
	while ((SECONDS < deadline)) && read -r a && read -r b && read -r c && read -r d; do
		job "$a" "$b" "$c" "$d" </dev/null || { killed=1; break; }
		jobs=$((jobs + 1))
	done <order
	seed=$((seed + 1))
done
check "all could be killed" [ $killed = 0 ]
check "the stressors are tasks" grep -q '^stress-ng-' seen
ended stress-ng
echo "# stress-ng: $jobs jobs of 4, seed ${STRESS_SEED:-1}, $(sort -u seen | grep -c '^stress-ng-') kinds of stressors seen as tasks"
end_attack
