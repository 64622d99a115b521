// SPDX-License-Identifier: GPL-2.0-only
/*
 * Leaves a process behind that has made terabytes of its memory its environment, which needs no
 * privilege, and ends.
 *
 * usage: big_environment FILE	the pid of that process
 */
#include <linux/prctl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#define LARGEST		(8UL << 40)
#define SMALLEST	(1UL << 30)

static uint64_t reserve(size_t *size)
{
	void *p;

	for (*size = LARGEST; *size >= SMALLEST; *size /= 2) {
		p = mmap(NULL, *size, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (p != MAP_FAILED)
			return (uint64_t)p;
	}
	return 0;
}

static int become_big(void)
{
	size_t size;
	uint64_t at = reserve(&size);
	struct prctl_mm_map map = {
		.start_code = at, .end_code = at + 1, .start_data = at, .end_data = at + 1,
		.start_stack = at + 2, .start_brk = at + 1, .brk = at + 2,
		.arg_start = at, .arg_end = at, .env_start = at, .env_end = at + size,
		.exe_fd = (uint32_t)-1,
	};

	return at && !prctl(PR_SET_MM, PR_SET_MM_MAP, &map, sizeof(map), 0) ? 0 : -1;
}

int main(int argc, char **argv)
{
	FILE *file = argc > 1 ? fopen(argv[1], "w") : NULL;
	int ready[2];
	char byte;
	pid_t pid;

	if (!file || pipe(ready))
		return 1;
	pid = fork();
	if (!pid) {
		setsid();
		signal(SIGTERM, SIG_IGN);
		if (become_big() || write(ready[1], "", 1) != 1)
			return 1;
		close(ready[1]);
		sleep(100);
		return 0;
	}
	close(ready[1]);
	fprintf(file, "%d\n", pid);
	fclose(file);
	return pid > 0 && read(ready[0], &byte, 1) == 1 ? 0 : 1;
}
