// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The end of a task. It waits for its readers twice: in a handler of atexit, while its threads
 * still run, for those that aren't at their own end; and here, when nothing of Python runs in it
 * any more, for all others. Until then it holds what it has views of, for handlers of atexit run
 * in any order, and may use them. Then it holds nothing, so that two tasks that read each other's
 * memory don't wait for ever.
 */
#include "record.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "leave.h"
#include "task.h"

#define LOOK_MS		200	/* A reader that is killed doesn't say so. */
#define WARN_SECONDS	5

static struct {
	uint64_t *address;	/* of records that others may hold */
	size_t nr;
	bool wait, told;
} kept;

static bool is_kept(uint64_t address)
{
	size_t i;

	for (i = 0; i < kept.nr; i++)
		if (kept.address[i] == address)
			return true;
	return false;
}

static bool has_readers(void)
{
	uint64_t *held;
	int nr = task_held(&held, false), i;
	bool any = false;

	if (nr < 0)
		return false;
	for (i = 0; i < nr && !any; i++)
		any = is_kept(held[i]);
	free(held);
	return any;
}

static time_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec;
}

static void wait_for_readers(void)
{
	const time_t begin = now();
	uint32_t seq;

	for (;;) {
		seq = __atomic_load_n(&task_block.released, __ATOMIC_SEQ_CST);
		if (!has_readers())
			return;
		if (!kept.told && now() > begin + WARN_SECONDS) {
			kept.told = true;
			dprintf(STDERR_FILENO,
				"pvas: rank %d has finished, and waits for tasks that use its arrays\n",
				task_rank_of(task_self().index));
		}
		__atomic_fetch_add(&task_block.waiters, 1, __ATOMIC_SEQ_CST);
		task_wait(&task_block.released, seq, LOOK_MS);
		__atomic_fetch_sub(&task_block.waiters, 1, __ATOMIC_SEQ_CST);
	}
}

/* Called when the interpreter has ended */
static void at_end(void)
{
	struct task_slots *slots;

	/* not in a child made by fork() */
	if (!task_attached())
		return;
	for (slots = &task_block.slots; slots; slots = slots->next)
		memset(slots->held, 0, sizeof(slots->held));
	if (kept.wait)
		wait_for_readers();
}

int leave_init(void)
{
	return Py_AtExit(at_end);
}

/* The interpreter takes its objects down: what readers hold keeps a reference for ever. */
static int keep(PyObject *records)
{
	Py_ssize_t nr = PyList_GET_SIZE(records), i;
	uint64_t *address = reallocarray(kept.address, kept.nr + (size_t)nr + 1, sizeof(*address));
	PyObject *record, *number;

	if (!address) {
		PyErr_NoMemory();
		return -1;
	}
	kept.address = address;
	for (i = 0; i < nr; i++) {
		record = PyList_GET_ITEM(records, i);
		number = PyObject_GetAttrString(record, "address");
		if (!number)
			return -1;
		address[kept.nr++] = PyLong_AsUnsignedLongLong(number);
		Py_DECREF(number);
		Py_INCREF(record);
	}
	return 0;
}

PyObject *leave_begin(PyObject *module, PyObject *none)
{
	(void)module;
	(void)none;
	__atomic_store_n(&task_block.leaving, 1, __ATOMIC_SEQ_CST);
	Py_RETURN_NONE;
}

PyObject *leave_keep(PyObject *module, PyObject *args)
{
	PyObject *records;
	int wait, told;

	(void)module;
	if (!PyArg_ParseTuple(args, "O!pp", &PyList_Type, &records, &wait, &told) || keep(records))
		return NULL;
	kept.wait = wait;
	kept.told = told;
	Py_RETURN_NONE;
}
