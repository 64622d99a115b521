// SPDX-License-Identifier: GPL-2.0-only
/* A child that reads what may never come: see ask.h. */
#include "ask.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"
#include "linux_names.h"

#define AT_ONCE_MS	10	/* Any number of answers may take so long. */
#define KILLED_MS	100	/* until a child must have ended */
/* So many unused numbers end the descriptors that a child looks at. */
#define GAP		256

/* A child needs nothing in it. */
static void *unneeded;
static size_t unneeded_length;

void ask_without(void *begin, size_t length)
{
	unneeded = begin;
	unneeded_length = length;
}

pid_t fork_without_signal(void)
{
	return (pid_t)syscall(SYS_clone, 0, NULL, NULL, NULL, NULL);
}

/* Not those that are files: to close one can take as long as its server likes. */
static void close_quick(int to)
{
	struct statx stx;
	int fd, unused = 0;

	for (fd = STDIN_FILENO; unused < GAP; fd++) {
		if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE, &stx)) {
			unused++;
			continue;
		}
		unused = 0;
		if (fd != to && !S_ISREG(stx.stx_mode) && !S_ISDIR(stx.stx_mode))
			close(fd);
	}
}

/*
 * It keeps no file of pvasrun's: if it hangs, it holds up no reader of them; and no memory of
 * tasks, which would be used as long as it hangs, also in closing a file.
 */
static void __attribute__((noreturn)) run(void (*answer)(const void *about), const void *about,
					  int to)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (unneeded_length)
		munmap(unneeded, unneeded_length);
	close_quick(to);
	dup2(to, STDIN_FILENO);
	syscall(SYS_close_range, STDIN_FILENO + 1, ~0U, 0);
	answer(about);
	_exit(0);
}

int ask_begin(struct ask *ask, void (*answer)(const void *about), const void *about)
{
	int ends[2], err;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	ask->child = fork_without_signal();
	err = ask->child < 0 ? -errno : 0;
	if (!ask->child)
		run(answer, about, ends[1]);
	close(ends[1]);
	ask->from = ends[0];
	if (err)
		close(ends[0]);
	return err;
}

bool ask_read(const struct ask *ask, void *answer, size_t len, int64_t *patience)
{
	struct pollfd ready = { .fd = ask->from, .events = POLLIN };
	const int64_t begin = now_ms();
	int64_t took;
	bool known;

	known = *patience > 0 && poll(&ready, 1, (int)*patience) == 1 &&
		read(ask->from, answer, len) == (ssize_t)len;
	took = now_ms() - begin;
	*patience -= took > AT_ONCE_MS ? took : 0;
	return known;
}

void ask_end(struct ask *ask)
{
	struct pollfd closed = { .fd = ask->from };

	kill(ask->child, SIGKILL);
	/* Its files are closed on its way out, where nothing holds it up any more. */
	if (poll(&closed, 1, KILLED_MS) == 1)
		waitpid(ask->child, NULL, __WALL);
	close(ask->from);
}
