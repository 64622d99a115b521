// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A program that runs as a task, in a space or by run_loader: libpvas from the inside.
 * Exit status 0 if all checks pass.
 *
 *	task		alone
 *	task meet N	with tasks 1 to N, all running this
 */
#include <errno.h>
#include <link.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "pvas.h"

extern char **environ;
extern const ElfW(Ehdr) __ehdr_start __attribute__((weak, visibility("hidden")));

static int failed;

#define CHECK(cond)							\
	do {								\
		if (!(cond)) {						\
			printf("task.c:%d: not so: %s\n", __LINE__, #cond); \
			failed = 1;					\
		}							\
	} while (0)

static char data[100] = "data";

/* The auxiliary vector, as completed by the loader. */
static void check_auxv(void)
{
	const ElfW(Ehdr) *e = &__ehdr_start;

	CHECK(getauxval(AT_PHDR) == (unsigned long)e + e->e_phoff);
	CHECK(getauxval(AT_PHENT) == e->e_phentsize);
	CHECK(getauxval(AT_PHNUM) == e->e_phnum);
	CHECK(getauxval(AT_ENTRY) == (unsigned long)e + e->e_entry);
	CHECK(getauxval(2 /* AT_EXECFD */) == 0);
#ifndef STATIC
	CHECK(getauxval(AT_BASE) && !memcmp((void *)getauxval(AT_BASE), "\177ELF", 4));
#else
	CHECK(getauxval(AT_BASE) == 0);
#endif
}

static void check_self(void)
{
	struct pvas_task_info info, all[4];
	uint64_t size;
	size_t length;
	void *base;
	int self = pvas_task_get_index();

	CHECK(self > 0);
	CHECK(pvas_space_get_id(NULL) != 0);
	CHECK(pvas_task_get(self, &info) == 0);
	CHECK(info.state == PVAS_TASK_RUNNING);
	CHECK(info.pid == getpid());
	CHECK(pvas_partition_get(self, &base, &length) == 0);
	CHECK(info.base == base && info.length == length);
	CHECK((char *)&failed >= (char *)base && (char *)&failed < (char *)base + length);
	CHECK((char *)&info >= (char *)base && (char *)&info < (char *)base + length);
	CHECK(pvas_task_find(data) == self);
	CHECK(pvas_task_find(&info) == self);
	CHECK(pvas_task_find(NULL) == -ENOENT);
	CHECK(pvas_task_find((void *)-1L) == -ENOENT);
	CHECK(pvas_space_get_bounds(NULL, NULL, NULL, &size) == 0 && size == length);
	CHECK(pvas_task_list(NULL, all, 4) >= 1);
	CHECK(pvas_task_get(1000000, &info) == -EINVAL);
	CHECK(pvas_partition_get(1000000, NULL, NULL) == -EINVAL);
}

static void check_names(void)
{
	int self = pvas_task_get_index();
	void *p;

	CHECK(pvas_name_export("data", data) == 0);
	CHECK(pvas_name_export("data", data) == -EEXIST);
	CHECK(pvas_name_import(self, "data", &p) == self && p == data);
	CHECK(pvas_name_import(PVAS_ANY, "data", &p) > 0);
	CHECK(pvas_name_import_wait(self, "data", -1, &p) == self);
	CHECK(pvas_name_import_wait(self, "none", 60, &p) == -ETIMEDOUT);
	CHECK(pvas_name_unexport("data") == 0);
	CHECK(pvas_name_unexport("data") == -ENOENT);
}

/* A fork child is not a task; a vfork child counts as its parent. */
static void check_children(void)
{
	char *argv[] = { "true", NULL };
	volatile int seen = 0;
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid == 0)
		_exit(pvas_task_get_index() == -ESRCH && pvas_name_export("x", NULL) == -ESRCH
		      ? 0 : 1);
	waitpid(pid, &status, 0);
	CHECK(status == 0);
	pid = fork();
	if (pid == 0) {
		struct timespec ts;	/* a fork child still has the vdso */

		_exit(clock_gettime(CLOCK_MONOTONIC, &ts) ? 1 : 0);
	}
	waitpid(pid, &status, 0);
	CHECK(status == 0);
	pid = vfork();
	if (pid == 0) {
		seen = pvas_task_get_index();
		_exit(0);
	}
	waitpid(pid, &status, 0);
	CHECK(seen == pvas_task_get_index());
	CHECK(posix_spawn(&pid, "/bin/true", NULL, NULL, argv, environ) == 0);
	waitpid(pid, &status, 0);
	CHECK(status == 0);
	CHECK(pvas_task_get_index() > 0);
}

/* Each task adds 1 to a counter in the memory of each other, by its pointer. */
static void meet(int n)
{
	static int counter;
	int self = pvas_task_get_index();
	int i, tries, *theirs;
	void *p;

	CHECK(pvas_name_export("counter", &counter) == 0);
	for (i = 1; i <= n; i++) {
		CHECK(pvas_name_import_wait(i, "counter", 20000, &p) == i);
		theirs = p;
		CHECK(pvas_task_find(theirs) == i);
		CHECK((theirs == &counter) == (i == self));
		__atomic_fetch_add(theirs, 1, __ATOMIC_SEQ_CST);
	}
	for (tries = 0; tries < 20000 && __atomic_load_n(&counter, __ATOMIC_SEQ_CST) < n; tries++)
		usleep(1000);
	CHECK(counter == n);
	/* No task waits for this one any more. Those with lower indices end: detect it. */
	for (i = 1; i < self; i++)
		CHECK(pvas_name_import_wait(i, "never", 20000, &p) == -EOWNERDEAD);
}

int main(int argc, char **argv)
{
	if (argc == 3) {
		meet(atoi(argv[2]));
		return failed;
	}
	check_auxv();
	if (pvas_task_get_index() < 0) {
		printf("not a task\n");
		return 1;
	}
	check_self();
	check_names();
	check_children();
	return failed;
}
