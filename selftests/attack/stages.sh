#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# kill -9 at random moments of a job's life. STAGES_ROUNDS is for each kind of job.

. "$(dirname "$0")/common"
need_module
check "nothing is left" \
	"$PVAS_BUILD/selftests/attack/stages" -r "${STAGES_ROUNDS:-30}" -s "${STAGES_SEED:-1}"
end_attack
