/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* ompi/op/op.h includes this header, which libopenmpi-dev lacks. A Fortran INTEGER is an int. */
#define OMPI_INT_2_FINT(n) (n)
