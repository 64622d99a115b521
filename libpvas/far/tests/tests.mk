# SPDX-License-Identifier: LGPL-2.1-or-later
# The tests of far memory. Included by ../Makefile.
