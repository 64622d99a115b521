// SPDX-License-Identifier: GPL-2.0-only
/*
 * Read processes of other users. A user can make this block for any time: by memory
 * that is mapped from a file whose server does not answer, by userfaultfd(2), or by
 * holding the mmap lock, which readers of maps need. So a helper process reads, and is
 * abandoned when the time is over, even if SIGKILL can't end it yet. The time is limited
 * for each user, so that a slow user hides only his own processes.
 */
#include "ps.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"
#include "linux_names.h"

#define CHUNK		32768
#define SECOND		1000000L
#define FREE_US		20000		/* time per process that is not counted, */
#define ALL_FREE_US	SECOND		/* of each user in all */
#define ALL_SLOW_US	(10 * SECOND)	/* of all users together; above it each has only */
#define SHORT_US	SECOND		/* this: enough for a space that nobody has made slow */
#define MAX_STUCK	64

enum job { OPEN, READ, MEMORY, COMPARE, NAMESPACE };

struct request {
	enum job job;
	pid_t pid;
	pid_t other;
	uint64_t from;
	size_t len;
	char file[16];
};

struct answer {
	int64_t result;		/* bytes in @data, the result of kcmp(2), an inode, or -errno */
	char data[CHUNK];
};

/* A user, and how long his processes took in this snapshot */
struct slow_user {
	uid_t uid;
	int64_t us[PS_PHASES];
	int64_t free_us;
};

/* An abandoned helper that may still exist */
struct stuck {
	pid_t helper;
	uid_t uid;
};

static const int64_t limits[PS_PHASES] = {
	[PS_FINDING] = 3 * SECOND, [PS_MEASURING] = 30 * SECOND,
};

static struct slow_user *slow;
static uint32_t nr_slow;
static int64_t all_slow;
static struct stuck stuck[MAX_STUCK];
static uint32_t nr_stuck;
static pid_t helper;
static int helper_fd = -1;	/* a socket */
static struct answer answer;

/* The process that is being read */
static struct {
	uid_t uid;
	enum ps_phase phase;
	int64_t start;
	int64_t us;		/* in requests */
	bool late;
} turn;

/* ---- the helper ---- */

static int64_t result_of(int64_t n)
{
	return n < 0 ? -errno : n;
}

static int64_t open_file(const struct request *q, int *fd)
{
	char path[64];

	if (*fd >= 0)
		close(*fd);
	snprintf(path, sizeof(path), "/proc/%d/%s", q->pid, q->file);
	*fd = open(path, O_RDONLY | O_CLOEXEC);
	return *fd < 0 ? -errno : 0;
}

static int64_t pid_namespace(const struct request *q)
{
	struct stat st;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/ns/pid", q->pid);
	return stat(path, &st) ? -errno : (int64_t)st.st_ino;
}

static int64_t work(const struct request *q, int *fd, char *data)
{
	struct iovec local = { data, q->len }, remote = { (void *)q->from, q->len };

	switch (q->job) {
	case OPEN:
		return open_file(q, fd);
	case READ:
		return result_of(read(*fd, data, q->len));
	case NAMESPACE:
		return pid_namespace(q);
	case MEMORY:
		return result_of(process_vm_readv(q->pid, &local, 1, &remote, 1, 0));
	default:
		return result_of(syscall(SYS_kcmp, q->pid, q->other, KCMP_VM, 0, 0));
	}
}

/* It may outlive pvasps, so it must not keep pipes or directories of pvasps open. */
static void run_helper(int sock)
{
	int null = open("/dev/null", O_RDWR), i, fd = -1;
	struct request q;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	setpgid(0, 0);
	if (null < 0 || chdir("/"))
		_exit(1);
	sock = fcntl(sock, F_DUPFD, 3);
	for (i = 0; i < 3; i++)
		dup2(null, i);
	dup2(sock, 3);
	syscall(SYS_close_range, 4, ~0U, 0);
	while (recv(3, &q, sizeof(q), 0) == sizeof(q)) {
		size_t len = offsetof(struct answer, data);

		answer.result = work(&q, &fd, answer.data);
		if ((q.job == READ || q.job == MEMORY) && answer.result > 0)
			len += answer.result;
		if (send(3, &answer, len, MSG_NOSIGNAL) < 0)
			break;
	}
	_exit(0);
}

static void reap_stuck(void)
{
	uint32_t i, left = 0;

	for (i = 0; i < nr_stuck; i++)
		if (waitpid(stuck[i].helper, NULL, WNOHANG) == 0)
			stuck[left++] = stuck[i];
	nr_stuck = left;
}

static bool start_helper(void)
{
	int pair[2];

	if (helper_fd >= 0)
		return true;
	if (nr_stuck == MAX_STUCK)
		reap_stuck();
	if (nr_stuck == MAX_STUCK || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return false;
	helper = fork();
	if (!helper)
		run_helper(pair[1]);
	close(pair[1]);
	if (helper < 0)
		close(pair[0]);
	else
		helper_fd = pair[0];
	return helper > 0;
}

/* ---- time ---- */

static struct slow_user *user_of(uid_t uid, bool add)
{
	uint32_t i;

	for (i = 0; i < nr_slow; i++)
		if (slow[i].uid == uid)
			return &slow[i];
	if (!add)
		return NULL;
	slow = ps_grow(slow, nr_slow, sizeof(*slow));
	slow[nr_slow] = (struct slow_user){ .uid = uid };
	return &slow[nr_slow++];
}

/* The time that pvasps takes to process the bytes counts, too. */
static void end_turn(void)
{
	struct slow_user *user;
	int64_t us, free_us;

	if (!turn.start)
		return;
	user = user_of(turn.uid, true);
	us = now_us() - turn.start;
	free_us = us < FREE_US ? us : FREE_US;
	if (free_us > ALL_FREE_US - user->free_us)
		free_us = ALL_FREE_US - user->free_us;
	user->free_us += free_us;
	user->us[turn.phase] += us - free_us;
	all_slow += us - free_us;
	turn.us = turn.start = 0;
}

static int64_t time_left(void)
{
	const struct slow_user *user = user_of(turn.uid, false);
	int64_t limit = all_slow > ALL_SLOW_US ? SHORT_US : limits[turn.phase];

	return limit - turn.us - (user ? user->us[turn.phase] : 0);
}

static void block(uid_t uid)
{
	struct slow_user *user = user_of(uid, true);
	int i;

	for (i = 0; i < PS_PHASES; i++)
		user->us[i] += limits[i];
}

static void abandon_helper(void)
{
	kill(helper, SIGKILL);
	close(helper_fd);
	helper_fd = -1;
	stuck[nr_stuck++] = (struct stuck){ helper, turn.uid };
	block(turn.uid);
}

void ps_reader_begin(void)
{
	uint32_t i;

	turn.us = turn.start = 0;
	free(slow);
	slow = NULL;
	nr_slow = 0;
	all_slow = 0;
	reap_stuck();
	for (i = 0; i < nr_stuck; i++)
		block(stuck[i].uid);
}

bool ps_reader_turn(uid_t uid, enum ps_phase phase)
{
	end_turn();
	turn.uid = ps_account_of(uid);
	turn.phase = phase;
	turn.start = now_us();
	turn.late = time_left() <= 0;
	return !turn.late;
}

bool ps_reader_late(void)
{
	return turn.late;
}

/* ---- requests ---- */

static bool answered(int64_t until)
{
	struct pollfd fd = { .fd = helper_fd, .events = POLLIN };
	int64_t left;
	int n = 0;

	/* EINTR: signals are handled by the live view, later */
	while (n <= 0 && (left = until - now_us()) > 0)
		n = poll(&fd, 1, left / 1000 + 1);
	return n > 0;
}

static int64_t send_request(const struct request *q)
{
	int64_t start = now_us(), left = time_left();
	ssize_t n = -1;

	if (left > 0 && start_helper() && send(helper_fd, q, sizeof(*q), MSG_NOSIGNAL) > 0 &&
	    answered(start + left))
		n = recv(helper_fd, &answer, sizeof(answer), 0);
	turn.us += now_us() - start;
	if (n >= (ssize_t)offsetof(struct answer, data))
		return answer.result;
	turn.late = true;
	if (helper_fd >= 0)
		abandon_helper();
	return -ETIME;
}

int ps_read_memory(pid_t pid, uint64_t from, void *to, size_t len)
{
	struct request q = { .job = MEMORY, .pid = pid };
	size_t done;
	int64_t n;

	for (done = 0; done < len; done += n) {
		q.from = from + done;
		q.len = len - done < CHUNK ? len - done : CHUNK;
		n = send_request(&q);
		if (n < 0)
			return n;
		if ((size_t)n != q.len)
			return -EFAULT;
		memcpy((char *)to + done, answer.data, n);
	}
	return 0;
}

int ps_compare_memory(pid_t a, pid_t b)
{
	return send_request(&(struct request){ .job = COMPARE, .pid = a, .other = b });
}

int64_t ps_pid_namespace(pid_t pid)
{
	return send_request(&(struct request){ .job = NAMESPACE, .pid = pid });
}

static ssize_t take_bytes(void *cookie, char *buf, size_t len)
{
	struct request q = { .job = READ, .len = len < CHUNK ? len : CHUNK };
	int64_t n = send_request(&q);

	(void)cookie;
	if (n < 0) {
		errno = -n;
		return -1;
	}
	memcpy(buf, answer.data, n);
	return n;
}

FILE *ps_reader_open(pid_t pid, const char *file)
{
	struct request q = { .job = OPEN, .pid = pid };

	snprintf(q.file, sizeof(q.file), "%s", file);
	if (send_request(&q) < 0)
		return NULL;
	return fopencookie(NULL, "r", (cookie_io_functions_t){ .read = take_bytes });
}

bool ps_next_line(FILE *f, char *text, size_t size)
{
	size_t len;
	int c;

	if (!fgets(text, size, f))
		return false;
	len = strlen(text);
	if (len && text[len - 1] != '\n')
		do
			c = getc(f);
		while (c != '\n' && c != EOF);
	return true;
}
