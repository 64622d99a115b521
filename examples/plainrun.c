// SPDX-License-Identifier: GPL-2.0-only
/*
 * Run a team as N plain processes with one shared segment, for comparison with
 * `pvasrun -n N`.
 *
 * usage: plainrun -n N [--segment MIB] program [argument...]
 *
 * The segment is a memory file: it takes memory only where it is written to. The
 * first process that fails ends the job, and determines its exit status.
 */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static int complain(const char *what, int err)
{
	fprintf(stderr, "plainrun: %s: %s\n", what, strerror(err));
	return 1;
}

static int make_segment(unsigned long mib)
{
	char text[16];
	int fd = memfd_create("plainrun", 0);

	if (fd < 0)
		return -errno;
	if (ftruncate(fd, mib << 20))
		return -errno;
	snprintf(text, sizeof(text), "%d", fd);
	return setenv("PLAIN_SEGMENT", text, 1) ? -errno : 0;
}

static int start(pid_t *pid, unsigned int rank, char **argv)
{
	char text[16];

	snprintf(text, sizeof(text), "%u", rank);
	if (setenv("PLAIN_RANK", text, 1))
		return errno;
	return posix_spawnp(pid, argv[0], NULL, NULL, argv, environ);
}

static void end_all(const pid_t *pids, unsigned int n)
{
	while (n--)
		if (pids[n] > 0)
			kill(pids[n], SIGTERM);
}

static void forget(pid_t *pids, unsigned int n, pid_t pid)
{
	while (n--)
		if (pids[n] == pid)
			pids[n] = 0;
}

static int exit_status(int status)
{
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static int wait_all(pid_t *pids, unsigned int n)
{
	int status, first = 0;
	pid_t pid;

	while ((pid = wait(&status)) > 0) {
		forget(pids, n, pid);
		if (status && !first) {
			first = exit_status(status);
			fprintf(stderr, "plainrun: process %d: status %d\n", pid, first);
			end_all(pids, n);
		}
	}
	return first;
}

static int run(unsigned long n, char **argv)
{
	pid_t *pids = calloc(n, sizeof(*pids));
	unsigned int i;
	int err = 0;

	if (!pids)
		return complain("memory", ENOMEM);
	for (i = 0; i < n && !err; i++)
		err = start(&pids[i], i, argv);
	if (err) {
		/* posix_spawn leaves the pid undefined when it fails */
		pids[i - 1] = 0;
		complain(argv[0], err);
		end_all(pids, n);
	}
	err = wait_all(pids, n) ?: err ? 1 : 0;
	free(pids);
	return err;
}

static int usage(void)
{
	fputs("usage: plainrun -n N [--segment MIB] program [argument...]\n", stderr);
	return 2;
}

int main(int argc, char **argv)
{
	static const struct option names[] = {
		{ "segment", required_argument, NULL, 's' },
		{ 0 },
	};
	unsigned long n = 0, mib = 256;
	char size[16];
	int c, err;

	while ((c = getopt_long(argc, argv, "+n:", names, NULL)) != -1) {
		if (c == 'n')
			n = strtoul(optarg, NULL, 10);
		else if (c == 's')
			mib = strtoul(optarg, NULL, 10);
		else
			return usage();
	}
	if (!n || n > 4096 || !mib || mib > 1 << 20 || optind == argc)
		return usage();
	snprintf(size, sizeof(size), "%lu", n);
	err = make_segment(mib);
	if (err || setenv("PLAIN_SIZE", size, 1))
		return complain("the shared segment", err ? -err : errno);
	return run(n, argv + optind);
}
