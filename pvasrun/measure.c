// SPDX-License-Identifier: GPL-2.0-only
/*
 * --check-run: run a program once as an ordinary process, and tell how large a partition it
 * needs. Its address space is read when it ends, by ptrace(2): a process that has ended has none.
 * All threads are traced, because any of them can be the last, or call execve(2).
 */
#include "measure.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/pvas.h>

#include "job.h"
#include "precheck.h"
#include "report.h"

/* More than the number of partitions: the search for a number of tasks ends here. */
#define MANY_TASKS	4096

/*
 * Below this the kernel itself places nothing of a position-independent program, also not with
 * an unlimited stack, where it begins above 21 TB. MAP_32BIT is not meant.
 */
#define KERNELS_CHOICE	(1ULL << 44)
#define ABOVE_32_BITS	(1ULL << 32)

/* Of a program that ends */
struct extent {
	uint64_t peak;		/* the most address space that it had at once; 0: unknown */
	uint64_t chosen;	/* where the program has placed something itself; 0: nowhere */
};

static volatile sig_atomic_t running;	/* the program's pid */

static void pass_on(int sig)
{
	if (running)
		kill(running, sig);
}

/* A terminal sends these to the program, too. */
static void set_signals(void)
{
	struct sigaction pass = { .sa_handler = pass_on, .sa_flags = SA_RESTART };
	struct sigaction ignore = { .sa_handler = SIG_IGN };

	sigaction(SIGTERM, &pass, NULL);
	sigaction(SIGHUP, &pass, NULL);
	sigaction(SIGINT, &ignore, NULL);
	sigaction(SIGQUIT, &ignore, NULL);
}

#define OPTIONS	(PTRACE_O_TRACEEXIT | PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL)

/* Waits until it is traced, and becomes the program. */
static void become(int go, char **argv)
{
	char byte;

	if (read(go, &byte, 1) == 1)
		execvp(argv[0], argv);
	_exit(precheck_status(-errno));
}

static int start(char **argv)
{
	int ends[2], err = 0;
	pid_t pid;

	if (pipe(ends) < 0)
		return -errno;
	pid = fork();
	if (!pid) {
		close(ends[1]);
		become(ends[0], argv);
	}
	close(ends[0]);
	if (pid < 0 || ptrace(PTRACE_SEIZE, pid, NULL, OPTIONS) < 0)
		err = -errno;
	running = pid > 0 ? pid : 0;
	set_signals();
	if (!err && write(ends[1], "", 1) < 0)
		err = -errno;
	close(ends[1]);
	if (err && pid > 0)
		waitpid(pid, NULL, 0);
	return err ? err : pid;
}

/* A number of /proc/TID/status; 0: there is none */
static uint64_t read_status(pid_t tid, const char *format)
{
	char path[64], line[128];
	uint64_t number = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/status", tid);
	file = fopen(path, "re");
	if (!file)
		return 0;
	while (!number && fgets(line, sizeof(line), file))
		sscanf(line, format, &number);
	fclose(file);
	return number;
}

static uint64_t read_peak(pid_t tid)
{
	return read_status(tid, "VmPeak: %" SCNu64) << 10;
}

/* clone(2) can make processes that are traced like threads. */
static bool is_thread_of(pid_t tid, pid_t pid)
{
	return tid == pid || read_status(tid, "Tgid: %" SCNu64) == (uint64_t)pid;
}

static uint64_t find_chosen(pid_t pid)
{
	uint64_t at = 0, found = 0;
	char path[64], line[512];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	file = fopen(path, "re");
	if (!file)
		return 0;
	while (!found && fgets(line, sizeof(line), file))
		if (sscanf(line, "%" SCNx64 "-", &at) == 1 && at >= ABOVE_32_BITS &&
		    at < KERNELS_CHOICE)
			found = at;
	fclose(file);
	return found;
}

static bool stops(int sig)
{
	return sig == SIGSTOP || sig == SIGTSTP || sig == SIGTTIN || sig == SIGTTOU;
}

/* A program that a task executes is in the same partition. */
static void add_extent(struct extent *extent, pid_t tid)
{
	uint64_t peak = read_peak(tid);

	if (peak > extent->peak)
		extent->peak = peak;
	extent->chosen = find_chosen(tid);
}

/* Lets a stopped thread go on; *@extent is added to where it ends. */
static void let_go_on(pid_t pid, pid_t tid, int status, struct extent *extent)
{
	int event = status >> 16, sig = WSTOPSIG(status);

	if (!is_thread_of(tid, pid)) {
		ptrace(PTRACE_DETACH, tid, NULL, event ? 0 : sig);
		return;
	}
	if (event == PTRACE_EVENT_EXIT)
		add_extent(extent, tid);
	if (event == PTRACE_EVENT_STOP && stops(sig))
		ptrace(PTRACE_LISTEN, tid, NULL, NULL);
	else
		ptrace(PTRACE_CONT, tid, NULL, event ? 0 : sig);
}

static int run(char **argv, struct extent *extent)
{
	int status, pid = start(argv);
	pid_t tid;

	*extent = (struct extent){ 0 };
	if (pid < 0) {
		report_error("cannot run %s and watch it: %s", argv[0], strerror(-pid));
		return STATUS_FAILED;
	}
	for (;;) {
		tid = waitpid(-1, &status, __WALL);
		if (tid < 0 && errno != EINTR) {
			report_error("cannot wait for %s: %s", argv[0], strerror(errno));
			return STATUS_FAILED;
		}
		if (tid > 0 && WIFSTOPPED(status))
			let_go_on(pid, tid, status, extent);
		else if (tid == pid)
			break;
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

uint64_t measure_partition(uint64_t peak)
{
	uint64_t size = 1ULL << PVAS_SHIFT_MIN;

	while (size <= 1ULL << PVAS_SHIFT_MAX && size / 2 < peak)
		size *= 2;
	return size <= 1ULL << PVAS_SHIFT_MAX ? size : 0;
}

unsigned int measure_tasks(uint64_t size)
{
	unsigned int tasks = 0;

	while (tasks < MANY_TASKS && precheck_partition_size(tasks + 1) >= size)
		tasks++;
	return tasks;
}

/* In whole MiB: it is no power of two. */
static int print_need(const char *name, uint64_t peak)
{
	uint64_t size = measure_partition(peak);
	char text[24];

	printf("%s: up to %" PRIu64 " MiB of address space", name, (peak + (1 << 20) - 1) >> 20);
	if (!size) {
		printf(", which may not fit the largest partition (%s)\n",
		       size_text(1ULL << PVAS_SHIFT_MAX, text));
		return STATUS_CANNOT_EXECUTE;
	}
	printf(", which fits a partition of %s", size_text(size, text));
	if (size > 1ULL << PVAS_SHIFT_MIN)
		printf(", as up to %u tasks have", measure_tasks(size));
	printf("\n");
	return 0;
}

int measure_run(char **argv)
{
	struct extent extent;
	int status;

	fflush(stdout);
	status = run(argv, &extent);
	if (!extent.peak) {
		report_error("%s: what it reserves is unknown (status %d)", argv[0], status);
		return status ? status : STATUS_FAILED;
	}
	if (status)
		report_warning("%s: status %d: more may be reserved if it succeeds", argv[0], status);
	if (extent.chosen)
		printf("%s: memory at %#" PRIx64 ", an address of its own choice: if it needs it there, it cannot be a task (or in a job: env PVAS_EXEC=leave %s, as a process outside the space)\n",
		       argv[0], extent.chosen, argv[0]);
	return print_need(argv[0], extent.peak);
}
