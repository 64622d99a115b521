// SPDX-License-Identifier: LGPL-2.1-or-later
/* Of the program that tests a job's far memory: malloc(), descriptors, another program */
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "job.h"
#include "pvas.h"

static bool has(const char *p, size_t size, char c)
{
	size_t i;

	for (i = 0; i < size; i++)
		if (p[i] != c)
			return false;
	return true;
}

void test_heap(void)
{
	const volatile size_t huge = SIZE_MAX / 2;
	char *p = malloc(4 * MIB), *small, *q;
	void *aligned = NULL;
	int status;
	pid_t pid;

	check(p && malloc_usable_size(p) >= 4 * MIB);
	memset(p, 'a', 4 * MIB);
	check(is_far(p));
	evict();
	p = realloc(p, 9 * MIB);
	check(is_far(p) && has(p, 4 * MIB, 'a'));
	memset(p, 'b', 9 * MIB);
	evict();
	small = realloc(p, 1000);
	check(has(small, 1000, 'b'));
	small = realloc(small, 3 * MIB);
	check(is_far(small) && has(small, 1000, 'b'));
	q = calloc(3, MIB);
	check(is_far(q) && has(q, 3 * MIB, 0));
	check(!posix_memalign(&aligned, 1 << 16, 3 * MIB) && is_far(aligned));
	check(!((uintptr_t)aligned & 0xffff) && malloc_usable_size(aligned) >= 3 * MIB);
	check(posix_memalign(&aligned, 24, 3 * MIB) == EINVAL);
	memset(aligned, 'c', 3 * MIB);
	check(has(small, 1000, 'b') && has(q, 3 * MIB, 0) && has(aligned, 3 * MIB, 'c'));
	check(!reallocarray(NULL, huge, 3) && errno == ENOMEM);
	check(!malloc(2 * huge) && errno == ENOMEM);
	/* With the module, a child can free what it does not have. */
	pid = fork();
	if (!pid) {
		if (getenv("PVASRUN_FAR"))
			free(q);
		p = malloc(2 * MIB);
		memset(p, 'd', 2 * MIB);
		_exit(!has(p, 2 * MIB, 'd'));
	}
	check(waitpid(pid, &status, 0) == pid && !status);
	check(has(q, 3 * MIB, 0));
	free(q);
	free(aligned);
	free(small);
	free(NULL);
}

/* The program closes all descriptors, and opens what it wants. */
void test_closed(void)
{
	char *p = far_memory(RAM);

	memset(p, 'a', RAM);
	check(!syscall(SYS_close_range, 3, ~0U, 0));
	evict();
	check(has(p, RAM, 'a'));
	check(open("/dev/null", O_RDONLY) == 3 && open("/dev/null", O_RDONLY) == 4);
	evict();
	check(has(p, RAM, 'a'));
}

/* Pages that compress well, of 64 MiB, and are the task's alone */
void test_large(void)
{
	uint64_t *p = malloc(64 * MIB), rank = (uint64_t)atoi(getenv("PVAS_RANK")) << 32;
	size_t i, n = 64 * MIB / 8, words = PAGE / 8;

	check(is_far(p));
	for (i = 0; i < n; i++)
		p[i] = rank | i / words;
	for (i = 0; i < n; i++)
		check(p[i] == (rank | i / words));
}

/* A store fails meanwhile: after the first round a file is made, two after its end are the last. */
void test_rounds(void)
{
	const char *file = getenv("FAR_TEST_FILE");
	uint64_t *p = malloc(2 * RAM), round;
	size_t i, n = 2 * RAM / 8;
	int left = 2;

	check(is_far(p));
	for (round = 1; left; round++) {
		for (i = 0; i < n; i++)
			p[i] = round << 32 | i;
		for (i = 0; i < n; i++)
			check(p[i] == (round << 32 | i));
		if (round == 1)
			check(!close(open(file, O_CREAT | O_WRONLY, 0600)));
		else
			left -= access(file, F_OK) != 0;
	}
}

static sigjmp_buf out;

static void on_segv(int sig)
{
	(void)sig;
	siglongjmp(out, 1);
}

/* A task ends while another one reads its memory: that finds what was there, or nothing. */
void test_leaving(void)
{
	unsigned int rank = (unsigned int)atoi(getenv("PVAS_RANK"));
	volatile uint64_t *p = (uint64_t *)far_memory(2 * RAM);
	size_t i;

	for (i = 0; i < 2 * RAM / 8; i++)
		p[i] = 1;
	if (rank) {
		check(!pvas_name_export("far", (void *)p));
		while (__atomic_load_n(&p[0], __ATOMIC_ACQUIRE) == 1)
			usleep(1000);
		_exit(0);
	}
	p = memory_of(1);
	signal(SIGSEGV, on_segv);
	if (sigsetjmp(out, 1))
		return;
	__atomic_store_n(&p[0], 2, __ATOMIC_RELEASE);
	for (;;)
		for (i = 0; i < 2 * RAM / 8; i += PAGE / 8)
			check(p[i]);
}

/* Programs that execute one another in the space each have far memory. */
void test_again(void)
{
	const char *left = getenv("FAR_TEST_LEFT");
	char text[2] = { left ? (char)(*left - 1) : '3' };
	char *p = far_memory(RAM), self[4096];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	check(n > 0);
	self[n] = '\0';
	memset(p, 'a', RAM);
	evict();
	check(has(p, RAM, 'a'));
	if (*text == '0')
		return;
	setenv("FAR_TEST_LEFT", text, 1);
	execl(self, "task", "again", NULL);
	_exit(1);
}
