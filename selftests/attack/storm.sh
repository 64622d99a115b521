#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Random jobs, whose tasks and launchers are killed at random moments.

echo "TAP version 13"
if [ ! -r /proc/pvas ]; then
	echo "ok 1 storm # SKIP no module"
	exit 4
fi
"$PVAS_BUILD/selftests/attack/storm" -t "${STORM_SECONDS:-15}" -s "${STORM_SEED:-1}" -j 6
status=$?
[ $status -eq 0 ] && echo "ok 1 nothing is left" || echo "not ok 1 something is left"
exit $status
