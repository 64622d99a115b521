/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The end of a task, which waits for its readers. */
#ifndef PVAS_PYTHON_LEAVE_H
#define PVAS_PYTHON_LEAVE_H

#include "record.h"

/* Once in a process. 0, or -1: Python calls no more functions at its end. */
int leave_init(void);

/* leave(): from now on nobody should wait for this task, but its threads still run. */
PyObject *leave_begin(PyObject *module, PyObject *none);

/*
 * keep(records, wait, told): these remain; if @wait the task ends when nobody reads them any
 * more. @told: the user knows that it waits.
 */
PyObject *leave_keep(PyObject *module, PyObject *args);

#endif
