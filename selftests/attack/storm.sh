#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Random jobs, whose tasks and launchers are killed at random moments.

. "$(dirname "$0")/common"
need_module
check "nothing is left" \
	"$PVAS_BUILD/selftests/attack/storm" -t "${STORM_SECONDS:-15}" -s "${STORM_SEED:-1}" -j 6
end_attack
