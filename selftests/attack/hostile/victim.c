// SPDX-License-Identifier: GPL-2.0-only
/*
 * The innocent: those who hold secrets, as tasks and as plain processes, and
 * canaries, who start programs and jobs all the time, each of which must work.
 * SIGTERM, which all have blocked, ends them.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/pvas.h>
#include <pvas.h>

#include "../left.h"
#include "hostile.h"

#define SECRET_PAGES	16
#define JOB_SECONDS	60

static pid_t victims[8], canaries[2];
static unsigned int n_victims;

static bool told_to_end(unsigned int ms)
{
	struct timespec t = { ms / 1000, ms % 1000 * 1000000L };
	sigset_t term;

	sigemptyset(&term);
	sigaddset(&term, SIGTERM);
	return sigtimedwait(&term, NULL, &t) == SIGTERM;
}

static void fill_secret(uint64_t *p, uint64_t secret, size_t pages)
{
	size_t i;

	for (i = 0; i < pages * PAGE / 8; i++)
		p[i] = secret_word(secret, i);
}

static bool is_secret(const uint64_t *p, uint64_t secret, size_t pages)
{
	size_t i;

	for (i = 0; i < pages * PAGE / 8; i++)
		if (p[i] != secret_word(secret, i))
			return false;
	return true;
}

/* Pages come and go, full of the secret: in a pipe, in a file of the page cache, in memory. */
static void churn(const uint64_t *page, int pipe_fds[2], int file)
{
	static char back[16 * PAGE];
	void *p;
	int i;

	for (i = 0; i < 12; i++)
		if (write(pipe_fds[1], page, PAGE) < 0)
			break;
	while (read(pipe_fds[0], back, sizeof(back)) > 0)
		;
	for (i = 0; i < 12; i++)
		if (pwrite(file, page, PAGE, i * PAGE) < 0)
			break;
	if (ftruncate(file, 0))
		return;
	p = mmap(NULL, 32 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (i = 0; p != MAP_FAILED && i < 32; i++)
		memcpy((char *)p + i * PAGE, page, PAGE);
	if (p != MAP_FAILED)
		munmap(p, 32 * PAGE);
}

static int secret_file(void)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/tmp/hostile-%d", getpid());
	fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	unlink(path);
	return fd;
}

static int hold_secret(uint64_t secret)
{
	uint64_t *p = mmap(NULL, SECRET_PAGES * PAGE, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int fds[2], file = secret_file();

	if (p == MAP_FAILED || pipe2(fds, O_NONBLOCK | O_CLOEXEC))
		return 2;
	fill_secret(p, secret, SECRET_PAGES);
	board_add_victim((uintptr_t)p, secret);
	while (!told_to_end(30)) {
		churn(p, fds, file);
		if (!is_secret(p, secret, SECRET_PAGES))
			return 1;
	}
	return 0;
}

/* Gives up root's rights, for an ordinary user's, as a daemon that wants a core file. */
static void be_careless(void)
{
	struct board board;
	unsigned int i;

	board_read(&board);
	if (setresgid(1000, 1000, 1000) || setresuid(1000, 1000, 1000)) {
		usleep(500000);
		return;
	}
	prctl(PR_SET_DUMPABLE, 1);
	for (i = 0; i < board.n_victims; i++)
		if (board.victims[i].uid == 0 && pvas_task_find((void *)board.victims[i].addr) > 0)
			board_add_victim(board.victims[i].addr, board.victims[i].secret);
	usleep(3000000);
}

int victim_task(uint64_t secret, bool careless)
{
	if (!careless)
		return hold_secret(secret);
	be_careless();
	return 0;
}

static void one_victim(uid_t uid, uint64_t secret, bool as_task, uint64_t seed,
		       unsigned int round)
{
	struct pvas_create_attr attr = { .size = sizeof(attr), .backend = PVAS_BACKEND_KERNEL };
	struct manager m = { .seed = seed, .round = round, .next = uid ? 2 : 1 };
	struct pvas_space *space;
	int status = 0;
	pid_t pid;

	if (uid && become(uid, false))
		_exit(2);
	if (!as_task)
		_exit(hold_secret(secret));
	if (pvas_space_create(&space, &attr))
		_exit(2);
	pid = start_role(space, "victim", &m, 0);
	if (pid < 0)
		_exit(4);
	while (!told_to_end(50))
		if (waitpid(pid, &status, WNOHANG) == pid)
			_exit(3);
	kill(pid, SIGTERM);
	waitpid(pid, &status, 0);
	pvas_space_destroy(space);
	_exit(WIFSIGNALED(status) ? 100 + WTERMSIG(status) : WEXITSTATUS(status));
}

void start_victims(uint64_t seed, unsigned int round)
{
	static const struct { uid_t uid; bool task; } kinds[] = {
		{ 0, false }, { 0, true }, { UID_VICTIM, false }, { UID_VICTIM, true },
	};
	struct board board;
	unsigned int i, tries;

	for (i = 0; i < ARRAY(kinds); i++) {
		victims[i] = fork();
		if (!victims[i])
			one_victim(kinds[i].uid, mix(seed ^ round, 1 + i), kinds[i].task, seed,
				   round);
		/* One after the other: each writes its entry to the board. */
		for (tries = 0; tries < 1000; tries++) {
			board_read(&board);
			if (board.n_victims > i)
				break;
			usleep(5000);
		}
	}
	n_victims = ARRAY(kinds);
}

void stop_victims(void)
{
	unsigned int i;
	int status;

	for (i = 0; i < n_victims; i++) {
		kill(victims[i], SIGTERM);
		if (waitpid(victims[i], &status, 0) == victims[i] && status)
			found(F_VICTIM, 0, victims[i], status, 0, NULL);
	}
}

/* ---- canaries ---- */

static void run_true(void)
{
	int status = 0;
	pid_t pid = fork();

	if (!pid) {
		execl("/bin/true", "true", (char *)NULL);
		_exit(errno);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || !status)
		return;
	if (WIFEXITED(status) && WEXITSTATUS(status) == STUB_EXIT)
		found(F_EXEC_CAPTURED, 0, getuid(), status, 0, NULL);
	else
		found(F_EXEC_FAILED, 0, getuid(), status, WEXITSTATUS(status), NULL);
}

static int wait_with_patience(pid_t pid, int *status)
{
	double deadline = now() + JOB_SECONDS;

	while (now() < deadline) {
		if (waitpid(pid, status, WNOHANG) == pid)
			return 0;
		usleep(1000);
	}
	kill(pid, SIGKILL);
	return -ETIMEDOUT;
}

/* When waitpid() has returned, the partition is free. */
static void run_job(void)
{
	struct pvas_create_attr attr = { .size = sizeof(attr), .backend = PVAS_BACKEND_KERNEL };
	struct pvas_task_info left[4];
	struct manager m = { .next = 1 };
	struct pvas_space *space;
	double begin = now();
	int status = 0, err;
	pid_t pid;

	err = pvas_space_create(&space, &attr);
	if (err) {
		found(F_JOB, 0, getuid(), 1, err, pvas_error_get());
		return;
	}
	pid = start_role(space, "true", &m, 0);
	if (pid < 0)
		found(F_JOB, 0, getuid(), 2, pid, pvas_error_get());
	else if (wait_with_patience(pid, &status))
		found(F_JOB_SLOW, 0, getuid(), (now() - begin) * 1000, 0, NULL);
	else if (status)
		found(F_JOB, 0, getuid(), 3, status, NULL);
	else if (pvas_task_list(space, left, 4) > 0)
		found(F_RECLAIM, 0, getuid(), (now() - begin) * 1000, 0, NULL);
	pvas_space_destroy(space);
}

/* A job that others of the user have begun, as pvasexec joins it. */
static void join_by_key(unsigned int i)
{
	struct pvas_attach attach = { .size = sizeof(attach), .key_len = 5 };
	char key[8] = "job-0";
	int fd = open("/dev/pvas", O_RDWR | O_CLOEXEC), status, err;

	key[4] += i % 4;
	attach.key = (uintptr_t)key;
	if (!ioctl(fd, PVAS_IOC_ATTACH, &attach)) {
		status = raw_task(fd, &err);
		if (WIFEXITED(status) && WEXITSTATUS(status) == STUB_EXIT)
			found(F_EXEC_CAPTURED, 0, getuid(), status, 1, "by its key");
	}
	close(fd);
}

static void canary(uid_t uid)
{
	unsigned int i;

	if (uid && become(uid, false))
		_exit(2);
	for (i = 0; !told_to_end(100); i++) {
		run_true();
		if (i % 8 == 4)
			run_job();
		join_by_key(i);
	}
	_exit(0);
}

void start_canaries(void)
{
	unsigned int i;

	for (i = 0; i < 2; i++) {
		canaries[i] = fork();
		if (!canaries[i])
			canary(i ? UID_VICTIM : 0);
	}
}

void stop_canaries(void)
{
	unsigned int i;

	for (i = 0; i < 2; i++)
		kill(canaries[i], SIGTERM);
	for (i = 0; i < 2; i++)
		waitpid(canaries[i], NULL, 0);
}
