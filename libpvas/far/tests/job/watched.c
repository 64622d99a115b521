// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Of the program that tests a job's far memory: another process looks at it, as a debugger does.
 * It gets what was written there, or an error where the kernel does not wait for a page, and never
 * zeros.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "job.h"

enum { PAGES = 8 * MIB / PAGE };

static bool has(const char *p, char c)
{
	size_t i;

	for (i = 0; i < PAGE; i++)
		if (p[i] != c)
			return false;
	return true;
}

static char of_page(size_t n)
{
	return (char)(1 + n % 100);
}

/* In a child: 1 if something else was found; 2 if the first page has become another one */
static int look(int mem, char *p)
{
	static char page[PAGE];
	struct iovec here = { page, PAGE }, there = { NULL, PAGE };
	size_t n;

	for (n = 0; n < PAGES; n++) {
		there.iov_base = p + n * PAGE;
		if (pread(mem, page, PAGE, (off_t)(uintptr_t)there.iov_base) == PAGE &&
		    !has(page, of_page(n)))
			return 1;
		if (process_vm_readv(getppid(), &here, 1, &there, 1, 0) == PAGE &&
		    !has(page, of_page(n)))
			return 1;
	}
	memset(page, 'w', PAGE);
	return pwrite(mem, page, PAGE, (off_t)(uintptr_t)p) == PAGE ? 2 : 0;
}

void test_watched(void)
{
	char *p = far_memory(PAGES * PAGE), path[64];
	int status, mem;
	size_t n;
	pid_t pid;

	/* Where only descendants may be looked at */
	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
	for (n = 0; n < PAGES; n++)
		memset(p + n * PAGE, of_page(n), PAGE);
	evict();
	snprintf(path, sizeof(path), "/proc/%d/mem", getpid());
	pid = fork();
	if (!pid) {
		mem = open(path, O_RDWR);
		_exit(mem < 0 ? 0 : look(mem, p));
	}
	check(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) != 1);
	evict();
	check(has(p, WEXITSTATUS(status) == 2 ? 'w' : of_page(0)));
	for (n = 1; n < PAGES; n++)
		check(has(p + n * PAGE, of_page(n)));
}

/* Dies with far memory full of 'F', resident or not, and with some of 'L' that is not far. */
void test_core(void)
{
	static char local[PAGE];
	char *p = far_memory(PAGES * PAGE);

	check(is_far(p));
	memset(local, 'L', sizeof(local));
	memset(p, 'F', PAGES * PAGE);
	evict();
	memset(p, 'F', PAGE);
	abort();
}
