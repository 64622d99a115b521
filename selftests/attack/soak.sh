#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# A short soak; `selftests/soak` by itself is for half an hour and more.
exec "$(dirname "$0")/../soak" "${SOAK_SECONDS:-20}" "${SOAK_SEED:-1}"
