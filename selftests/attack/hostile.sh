#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Several users attack at once (attack/hostile/). By itself: some rounds of a fixed
# seed. With ATTACK_SECONDS: attack/seeds, then so long with ATTACK_SEED.

. "$(dirname "$0")/common"
need_root
hostile=$PVAS_BUILD/selftests/attack/hostile
seeds=$(dirname "$0")/seeds

# Each line again, whatever the ones before found.
replay()
{
	local seed round plans

	while read -r seed round plans _; do
		case $seed in '' | '#'*) continue ;; esac
		[ "$plans" != all ] || plans=
		check "seed $seed, round $round" \
			"$hostile" -s "$seed" -f "$round" -n 1 ${plans:+-p "$plans"}
	done <"$seeds"
}

if [ -n "${ATTACK_SECONDS:-}" ]; then
	replay
	check "$ATTACK_SECONDS s of seed ${ATTACK_SEED:=1}" \
		"$hostile" -t "$ATTACK_SECONDS" -s "$ATTACK_SEED"
else
	check "memory without an owner is not seen" eval '! owned "$unowned" 8192 >"$T/seen"'
	check "nothing is found" "$hostile" -s 1 -n 4 -r 6
fi
end_attack
