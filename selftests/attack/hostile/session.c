// SPDX-License-Identifier: GPL-2.0-only
/*
 * A session is a supervisor of root's, which adopts all orphans below it, a
 * manager that belongs to the attacking user, and what that one starts. At the
 * end all but the supervisor get SIGKILL until nobody is left.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../left.h"
#include "hostile.h"

#define KILL_SECONDS	90

static pid_t supervisors[MAX_SESSIONS];
static unsigned int n_sessions;

static void limit(int what, rlim_t most)
{
	struct rlimit l = { most, most };

	setrlimit(what, &l);
}

int become(uid_t uid, bool keep_root_without_caps)
{
	struct __user_cap_header_struct head = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct none[2] = { 0 };

	if (setgroups(0, NULL) || setresgid(uid, uid, uid) || setresuid(uid, uid, uid))
		return -errno;
	if (keep_root_without_caps &&
	    (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || syscall(SYS_capset, &head, none)))
		return -errno;
	return prctl(PR_SET_DUMPABLE, 1) ? -errno : 0;
}

static void as_manager(struct manager *m)
{
	int fds[2];

	limit(RLIMIT_CORE, 0);
	limit(RLIMIT_NPROC, 400);
	limit(RLIMIT_FSIZE, 16 << 20);
	limit(RLIMIT_MEMLOCK, 1 << 20);
	limit(RLIMIT_NOFILE, 1100);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fds) || dup2(fds[0], MAIL_FD) < 0 ||
	    dup2(fds[1], MAIL_FD + 1) < 0)
		_exit(1);
	close(fds[0]);
	close(fds[1]);
	if (!plans[m->plan].root && become(m->uid, m->uid == 0))
		_exit(1);
	manage(m);
	_exit(0);
}

static pid_t parent_of(pid_t pid)
{
	char path[64], stat[512], *p;
	pid_t parent = 0;
	char state;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	read_proc(path, stat, sizeof(stat));
	p = strrchr(stat, ')');
	if (!p || sscanf(p + 1, " %c %d", &state, &parent) != 2)
		return 0;
	return parent;
}

static bool is_below(pid_t pid, pid_t top)
{
	int depth;

	for (depth = 0; pid > 1 && depth < 50; depth++) {
		pid = parent_of(pid);
		if (pid == top)
			return true;
	}
	return false;
}

/* How many got a signal. Each round finds what came about in the one before. */
static int kill_below(pid_t top, pid_t *one)
{
	DIR *dir = opendir("/proc");
	struct dirent *d;
	int n = 0;

	while (dir && (d = readdir(dir))) {
		pid_t pid = atoi(d->d_name);

		if (pid <= 1 || pid == top || !is_below(pid, top))
			continue;
		kill(pid, SIGKILL);
		*one = pid;
		n++;
	}
	if (dir)
		closedir(dir);
	return n;
}

/* All that wait, and for which locks, in the kernel's log */
static void show_blocked(void)
{
	int fd = open("/proc/sysrq-trigger", O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, "w", 1) != 1 || write(fd, "d", 1) != 1)
		fprintf(stderr, "hostile: no sysrq\n");
	if (fd >= 0)
		close(fd);
}

static void end_session(unsigned int session)
{
	double deadline = now() + KILL_SECONDS;
	pid_t one = 0, pid;
	char path[32], stack[200];
	int left;

	do {
		left = kill_below(getpid(), &one);
		while ((pid = waitpid(-1, NULL, WNOHANG | __WALL)) > 0)
			;
		if (pid < 0 && errno == ECHILD)
			return;
		usleep(20000);
	} while (now() < deadline);
	snprintf(path, sizeof(path), "/proc/%d/stack", (int)one);
	stack[read_proc(path, stack, sizeof(stack))] = '\0';
	found(F_KILL, session, one, left, 0, stack);
	show_blocked();
}

static void supervise(struct manager *m)
{
	sigset_t term;
	pid_t pid;

	prctl(PR_SET_CHILD_SUBREAPER, 1);
	sigemptyset(&term);
	sigaddset(&term, SIGTERM);
	pid = fork();
	if (!pid)
		as_manager(m);
	while (sigtimedwait(&term, NULL, &(struct timespec){ .tv_nsec = 100000000 }) != SIGTERM)
		while (waitpid(-1, NULL, WNOHANG | __WALL) > 0)
			;
	end_session(m->session);
	_exit(0);
}

static unsigned int choose_plan(struct manager *m, const char *names)
{
	unsigned int i, sum = 0, at;

	for (i = 0; i < n_plans(); i++)
		if (!names || strstr(names, plans[i].name))
			sum += plans[i].weight;
	at = rnd(&m->rng, sum ? sum : 1);
	for (i = 0; i < n_plans(); i++) {
		if (names && !strstr(names, plans[i].name))
			continue;
		if (at < plans[i].weight)
			return i;
		at -= plans[i].weight;
	}
	return 0;
}

/* How long this round has to be, in usual ones. */
unsigned int start_sessions(uint64_t seed, unsigned int round, const char *names)
{
	static const uid_t uids[] = { 1000, 1000, 1001, 0 };
	unsigned long long rng = mix(seed, round);
	unsigned int i, length = 1;

	n_sessions = 3 + rnd(&rng, 2);
	for (i = 0; i < n_sessions; i++) {
		struct manager m = {
			.rng = mix(mix(seed, round), 100 + i), .session = i + 1, .seed = seed,
			.round = round, .uid = uids[rnd(&rng, ARRAY(uids))],
		};

		/* One at least that attacks, and says what it does. */
		do
			m.plan = choose_plan(&m, names);
		while (!i && !names && (plans[m.plan].root || plans[m.plan].length > 1));
		if (plans[m.plan].length > length)
			length = plans[m.plan].length;
		supervisors[i] = fork();
		if (!supervisors[i])
			supervise(&m);
		printf("# round %u session %u: %s, uid %u\n", round, m.session, plans[m.plan].name,
		       plans[m.plan].root ? 0 : m.uid);
	}
	fflush(stdout);
	return length;
}

void stop_sessions(void)
{
	unsigned int i;

	for (i = 0; i < n_sessions; i++)
		kill(supervisors[i], SIGTERM);
	for (i = 0; i < n_sessions; i++) {
		while (waitpid(supervisors[i], NULL, WNOHANG) == 0) {
			print_findings();
			usleep(20000);
		}
	}
}
