// SPDX-License-Identifier: LGPL-2.1-or-later
/* The module pvas._pvas: libpvas for the package pvas. */
#include "record.h"

#include <errno.h>
#include <string.h>

#include "guard.h"
#include "leave.h"
#include "task.h"

PyObject *peer_ended;

static PyObject *set_error(int err)
{
	errno = -err;
	return PyErr_SetFromErrno(PyExc_OSError);
}

/* ---- tasks ---- */

static PyObject *self(PyObject *module, PyObject *none)
{
	struct task_id id = task_self();

	(void)module;
	(void)none;
	if (!task_attached())
		Py_RETURN_NONE;
	return Py_BuildValue("II", id.index, id.gen);
}

static PyObject *rank_of(PyObject *module, PyObject *args)
{
	unsigned int index;

	(void)module;
	if (!PyArg_ParseTuple(args, "I", &index))
		return NULL;
	return PyLong_FromLong(task_rank_of(index));
}

static PyObject *index_of(PyObject *module, PyObject *args)
{
	unsigned int rank;

	(void)module;
	if (!PyArg_ParseTuple(args, "I", &rank))
		return NULL;
	return PyLong_FromLong(task_index_of(rank));
}

static PyObject *gen_of(PyObject *module, PyObject *args)
{
	struct pvas_task_info info;
	unsigned int index;

	(void)module;
	if (!PyArg_ParseTuple(args, "I", &index))
		return NULL;
	return PyLong_FromUnsignedLong(pvas_task_get(index, &info) ? 0 : info.gen);
}

/* Don't wait for it. */
static PyObject *left(PyObject *module, PyObject *args)
{
	struct task_id id;

	(void)module;
	if (!PyArg_ParseTuple(args, "II", &id.index, &id.gen))
		return NULL;
	return PyBool_FromLong(task_ended(id) || task_leaving(id));
}

static PyObject *ended(PyObject *module, PyObject *args)
{
	struct task_id id;

	(void)module;
	if (!PyArg_ParseTuple(args, "II", &id.index, &id.gen))
		return NULL;
	return PyBool_FromLong(task_ended(id));
}

/* The partitions that have a task, in their order */
static PyObject *indices(PyObject *module, PyObject *none)
{
	int nr = pvas_task_list(NULL, NULL, 0), i;
	struct pvas_task_info *tasks;
	PyObject *list, *item;

	(void)module;
	(void)none;
	if (nr < 0)
		return set_error(nr);
	tasks = PyMem_RawCalloc(nr + 1, sizeof(*tasks));
	list = tasks ? PyList_New(0) : PyErr_NoMemory();
	if (list)
		nr = Py_MIN(nr, pvas_task_list(NULL, tasks, nr));
	for (i = 0; list && i < nr; i++) {
		item = PyLong_FromUnsignedLong(tasks[i].index);
		if (!item || PyList_Append(list, item))
			Py_CLEAR(list);
		Py_XDECREF(item);
	}
	PyMem_RawFree(tasks);
	return list;
}

/* ---- names ---- */

static char *directory_entry(const char *name)
{
	int i;

	for (i = 0; i < TASK_NAMES; i++)
		if (!strcmp(task_block.names[i], name))
			return task_block.names[i];
	return NULL;
}

static PyObject *export(PyObject *module, PyObject *args)
{
	unsigned long long address;
	const char *name;
	char *entry;
	int err;

	(void)module;
	if (!PyArg_ParseTuple(args, "sK", &name, &address))
		return NULL;
	err = pvas_name_export(name, (const void *)(uintptr_t)address);
	if (err)
		return set_error(err);
	entry = directory_entry("");
	if (entry)
		strncpy(entry, name, PVAS_NAME_MAX);
	Py_RETURN_NONE;
}

static PyObject *unexport(PyObject *module, PyObject *args)
{
	const char *name;
	char *entry;
	int err;

	(void)module;
	if (!PyArg_ParseTuple(args, "s", &name))
		return NULL;
	err = pvas_name_unexport(name);
	if (err)
		return set_error(err);
	entry = directory_entry(name);
	if (entry)
		memset(entry, 0, PVAS_NAME_MAX + 1);
	Py_RETURN_NONE;
}

/* The address that task @index exports under the name; None: it exports no such name. */
static PyObject *find(PyObject *module, PyObject *args)
{
	unsigned int index;
	const char *name;
	void *ptr;
	int ret;

	(void)module;
	if (!PyArg_ParseTuple(args, "sI", &name, &index))
		return NULL;
	ret = pvas_name_import(index, name, &ptr);
	if (ret == -ENOENT)
		Py_RETURN_NONE;
	return ret < 0 ? set_error(ret) : PyLong_FromVoidPtr(ptr);
}

/* Wait for a name of one task or (index -1) any. Returns 0 or a negative errno value. */
static PyObject *wait_name(PyObject *module, PyObject *args)
{
	int index, ms, ret;
	const char *name;
	void *ptr;

	(void)module;
	if (!PyArg_ParseTuple(args, "sii", &name, &index, &ms))
		return NULL;
	Py_BEGIN_ALLOW_THREADS
	ret = pvas_name_import_wait((unsigned int)index, name, ms, &ptr);
	Py_END_ALLOW_THREADS
	if (PyErr_CheckSignals())
		return NULL;
	return PyLong_FromLong(Py_MIN(ret, 0));
}

static PyObject *list_names(const char (*names)[PVAS_NAME_MAX + 1])
{
	PyObject *list = PyList_New(0), *item;
	int i;

	for (i = 0; list && i < TASK_NAMES; i++) {
		if (!names[i][0])
			continue;
		item = PyUnicode_DecodeUTF8(names[i], strnlen(names[i], PVAS_NAME_MAX), "replace");
		if (!item || PyList_Append(list, item))
			Py_CLEAR(list);
		Py_XDECREF(item);
	}
	return list;
}

/* The names that a task of Python shares now; empty if it is none. */
static PyObject *names_of(PyObject *module, PyObject *args)
{
	const struct task_block *block;
	struct task_block *copy;
	struct task_id id;
	PyObject *list;

	(void)module;
	if (!PyArg_ParseTuple(args, "I", &id.index))
		return NULL;
	block = task_block_of(id.index, &id);
	copy = PyMem_RawMalloc(sizeof(*copy));
	if (!copy)
		return PyErr_NoMemory();
	if (!block || guard_copy(copy, block, sizeof(*copy)))
		list = PyList_New(0);
	else
		list = list_names(copy->names);
	PyMem_RawFree(copy);
	return list;
}

/* ---- memory ---- */

/* For data of programs that are not Python's. Nothing keeps it there. */
static PyObject *memory(PyObject *module, PyObject *args)
{
	unsigned long long address;
	Py_ssize_t length;
	int writable = 0;

	(void)module;
	if (!PyArg_ParseTuple(args, "Kn|p", &address, &length, &writable))
		return NULL;
	return PyMemoryView_FromMemory((char *)(uintptr_t)address, length,
				       writable ? PyBUF_WRITE : PyBUF_READ);
}

/* A copy of a peer's memory, as bytes; PeerEnded if it is gone. */
static PyObject *peek(PyObject *module, PyObject *args)
{
	unsigned long long address;
	PyObject *copy;
	Py_ssize_t length;

	(void)module;
	if (!PyArg_ParseTuple(args, "Kn", &address, &length))
		return NULL;
	copy = PyBytes_FromStringAndSize(NULL, length);
	if (!copy || !guard_copy(PyBytes_AS_STRING(copy), (const void *)(uintptr_t)address, length))
		return copy;
	Py_DECREF(copy);
	PyErr_SetString(peer_ended, "the task that had this memory has ended");
	return NULL;
}

/* ---- letting go ---- */

static PyObject *held(PyObject *module, PyObject *args)
{
	int working = 0;
	uint64_t *all;
	PyObject *set, *item;
	int nr, i;

	(void)module;
	if (!PyArg_ParseTuple(args, "|p", &working))
		return NULL;
	nr = task_held(&all, working);
	if (nr < 0)
		return set_error(nr);
	set = PySet_New(NULL);
	for (i = 0; set && i < nr; i++) {
		item = PyLong_FromUnsignedLongLong(all[i]);
		if (!item || PySet_Add(set, item))
			Py_CLEAR(set);
		Py_XDECREF(item);
	}
	free(all);
	return set;
}

static PyObject *released(PyObject *module, PyObject *none)
{
	(void)module;
	(void)none;
	return PyLong_FromUnsignedLong(__atomic_load_n(&task_block.released, __ATOMIC_SEQ_CST));
}

/* Until a reader lets go after @seq; one that is killed says nothing, hence the limit. */
static PyObject *wait_released(PyObject *module, PyObject *args)
{
	unsigned int seq;
	int ms;

	(void)module;
	if (!PyArg_ParseTuple(args, "Ii", &seq, &ms))
		return NULL;
	Py_BEGIN_ALLOW_THREADS
	__atomic_fetch_add(&task_block.waiters, 1, __ATOMIC_SEQ_CST);
	task_wait(&task_block.released, seq, ms);
	__atomic_fetch_sub(&task_block.waiters, 1, __ATOMIC_SEQ_CST);
	Py_END_ALLOW_THREADS
	if (PyErr_CheckSignals())
		return NULL;
	Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
	{ "self", self, METH_NOARGS, "(index, gen) of this task; None: it is no task" },
	{ "rank_of", rank_of, METH_VARARGS, "rank_of(index)" },
	{ "index_of", index_of, METH_VARARGS, "index_of(rank); -1: there is no such partition" },
	{ "gen_of", gen_of, METH_VARARGS, "gen_of(index)" },
	{ "ended", ended, METH_VARARGS, "ended(index, gen): has it ended?" },
	{ "left", left, METH_VARARGS, "left(index, gen): has it ended, or is about to?" },
	{ "indices", indices, METH_NOARGS, "of all tasks" },
	{ "leave", leave_begin, METH_NOARGS, "this task is about to end" },
	{ "keep", leave_keep, METH_VARARGS, "keep(records, wait, told): until nobody reads them" },
	{ "export", export, METH_VARARGS, "export(name, address)" },
	{ "unexport", unexport, METH_VARARGS, "unexport(name)" },
	{ "find", find, METH_VARARGS, "find(name, index): an address, or None" },
	{ "wait_name", wait_name, METH_VARARGS, "wait_name(name, index, ms): 0 or -errno" },
	{ "names_of", names_of, METH_VARARGS, "names_of(index)" },
	{ "memory", memory, METH_VARARGS, "memory(address, length, writable=False)" },
	{ "peek", peek, METH_VARARGS, "peek(address, length): a copy" },
	{ "held", held, METH_VARARGS,
	  "held(working=False): the addresses of records that any task holds, or one that isn't leaving" },
	{ "released", released, METH_NOARGS, "how often a record of this task was let go" },
	{ "wait_released", wait_released, METH_VARARGS, "wait_released(released(), ms)" },
	{ 0 },
};

static struct PyModuleDef definition = {
	PyModuleDef_HEAD_INIT,
	.m_name = "pvas._pvas",
	.m_doc = "libpvas for the package pvas",
	.m_size = -1,
	.m_methods = functions,
};

/* Once in a process, also if the module is imported again */
static int start(void)
{
	static int started;
	int err;

	if (started)
		return 0;
	err = task_init();
	if (err > 0)
		err = guard_install();
	if (err) {
		set_error(err);
		return -1;
	}
	if (leave_init()) {
		PyErr_SetString(PyExc_RuntimeError, "too many modules with functions for the end");
		return -1;
	}
	started = 1;
	return 0;
}

/* PyModule_AddObjectRef() came with Python 3.10. */
static int add(PyObject *module, const char *name, PyObject *object)
{
	Py_INCREF(object);
	if (!PyModule_AddObject(module, name, object))
		return 0;
	Py_DECREF(object);
	return -1;
}

PyMODINIT_FUNC PyInit__pvas(void);

PyMODINIT_FUNC PyInit__pvas(void)
{
	PyObject *module, *version;

	if (PyType_Ready(&record_type) || PyType_Ready(&view_type) || PyType_Ready(&words_type) ||
	    start())
		return NULL;
	if (!peer_ended)
		peer_ended = PyErr_NewExceptionWithDoc("pvas.PeerEnded",
			"A task has ended whose memory, lock or arrival this one needs.", NULL, NULL);
	version = PyUnicode_FromFormat("%d.%d", PVAS_VERSION_MAJOR, PVAS_VERSION_MINOR);
	module = version && peer_ended ? PyModule_Create(&definition) : NULL;
	if (!module)
		return NULL;
	if (!add(module, "version", version) && !add(module, "PeerEnded", peer_ended) &&
	    !add(module, "Record", (PyObject *)&record_type) &&
	    !add(module, "View", (PyObject *)&view_type) &&
	    !add(module, "Words", (PyObject *)&words_type)) {
		Py_DECREF(version);
		return module;
	}
	Py_DECREF(module);
	return NULL;
}
