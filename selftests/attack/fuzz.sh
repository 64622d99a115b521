#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Random ioctls. FUZZ_SECONDS, FUZZ_SEED.

. "$(dirname "$0")/common"
need_module
check "nothing is left" \
	"$PVAS_BUILD/selftests/attack/fuzz" -t "${FUZZ_SECONDS:-20}" -s "${FUZZ_SEED:-1}"
end_attack
