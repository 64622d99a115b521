// SPDX-License-Identifier: LGPL-2.1-or-later
/* The BTL's test, with this component */
#include "../../btl_glue/tests/lost.c"
