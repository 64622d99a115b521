// SPDX-License-Identifier: GPL-2.0-only
/* How the processes of a session come about. Runs as the attacking user. */
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <pvas.h>

#include "../../silent_fuse.h"
#include "../left.h"
#include "hostile.h"

static bool write_all(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	const bool done = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

	if (fd >= 0)
		close(fd);
	return done;
}

static struct pvas_space *make_space(void)
{
	struct pvas_create_attr attr = { .size = sizeof(attr), .backend = PVAS_BACKEND_KERNEL };
	struct pvas_space *space = NULL;

	return pvas_space_create(&space, &attr) ? NULL : space;
}

pid_t start_role(struct pvas_space *space, const char *role, struct manager *m, unsigned int arg)
{
	char words[6][24];
	char *argv[] = { self_path, (char *)"--role", (char *)role, words[0], words[1],
			 words[2], words[3], words[4], words[5], NULL };
	static char *envp[] = { (char *)"PATH=/usr/bin:/bin", NULL };
	pid_t pid;

	snprintf(words[0], 24, "%lu", m->seed);
	snprintf(words[1], 24, "%u", m->round);
	snprintf(words[2], 24, "%u", m->session);
	snprintf(words[3], 24, "%u", m->plan);
	snprintf(words[4], 24, "%u", m->next++);
	snprintf(words[5], 24, "%u", arg);
	if (pvas_task_spawn(space, PVAS_ANY, self_path, argv, envp, NULL, &pid) < 0)
		return -1;
	return pid;
}

/* The library's handle hides its descriptor: the last one opened is it. */
int device_fd(void)
{
	char path[32], target[64];
	int fd;
	ssize_t n;

	for (fd = 99; fd > 2; fd--) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		n = readlink(path, target, sizeof(target) - 1);
		if (n > 0 && (target[n] = 0, !strcmp(target, "/dev/pvas")))
			return fd;
	}
	return -1;
}

void fork_actor(struct manager *m, enum bias bias, unsigned int ops)
{
	struct actor a = { .bias = bias };
	unsigned int number = m->next++;

	if (fork())
		return;
	actor_init(&a, m->session, m->plan, number, m->seed, m->round);
	keep_fd(&a, raw6(SYS_dup, device_fd(), 0, 0, 0, 0, 0));
	actor_run(&a, ops);
	_exit(0);
}

static void judge_bystander(struct manager *m, pid_t pid, int status)
{
	/* It may be killed, with the space; nothing else may happen to it. */
	if (status && status != SIGKILL)
		found(F_BYSTANDER_DIED, m->session, pid, status, 0, NULL);
}

static void plan_peers(struct manager *m)
{
	static const enum bias biases[] = { BIAS_NONE, BIAS_MM, BIAS_MM, BIAS_RING, BIAS_PROC,
					    BIAS_CRED, BIAS_PVAS };
	struct pvas_space *space = make_space();
	pid_t by, pid, attackers[3] = { 0 };
	unsigned int i;
	int status;

	if (!space)
		return;
	by = start_role(space, "bystander", m, 0);
	/* Until it has seen the space as it is without attackers. */
	for (i = 0; by > 0 && i < 500 && !peer_ready(); i++)
		usleep(10000);
	for (;;) {
		for (i = 0; i < 3; i++)
			if (attackers[i] <= 0)
				attackers[i] = start_role(space, "attacker", m,
							  biases[rnd(&m->rng, ARRAY(biases))]);
		usleep(20000);
		if (!rnd(&m->rng, 50) && attackers[i = rnd(&m->rng, 3)] > 0)
			kill(attackers[i], SIGKILL);
		while ((pid = waitpid(-1, &status, WNOHANG | __WALL)) > 0) {
			if (pid == by) {
				judge_bystander(m, pid, status);
				pvas_space_destroy(space);
				return;
			}
			for (i = 0; i < 3; i++)
				if (attackers[i] == pid)
					attackers[i] = 0;
		}
	}
}

/* One after the other, so that each is alone: some calls ask for that. */
static void plan_solo(struct manager *m)
{
	struct pvas_space *space = make_space();
	pid_t pid;
	int i;

	if (!space)
		return;
	for (;;) {
		pid = start_role(space, "attacker", m, BIAS_NS);
		for (i = 0; pid > 0 && i < 200 && waitpid(pid, NULL, WNOHANG) == 0; i++)
			usleep(10000);
		if (i == 200) {
			kill(pid, SIGKILL);
			waitpid(pid, NULL, 0);
		}
		while (waitpid(-1, NULL, WNOHANG | __WALL) > 0)
			;
		usleep(50000 * rnd(&m->rng, 4));
	}
}

static void plan_plain(struct manager *m)
{
	unsigned int i;

	for (;;) {
		for (i = 0; i < 4; i++)
			fork_actor(m, rnd(&m->rng, BIAS_N), 20 + rnd(&m->rng, 100));
		usleep(300000);
		while (waitpid(-1, NULL, WNOHANG | __WALL) > 0)
			;
	}
}

/* Processes that arm, and never come, or not as one would think. */
static void plan_arm(struct manager *m)
{
	struct pvas_space *space = make_space();
	struct actor a = { .bias = BIAS_PVAS };
	pid_t pids[8] = { 0 };
	unsigned int i;

	if (!space)
		return;
	for (i = 0;; i = (i + 1) % 8) {
		if (pids[i] > 0)
			kill(pids[i], SIGKILL);
		while (waitpid(-1, NULL, WNOHANG | __WALL) > 0)
			;
		m->next++;
		pids[i] = fork();
		if (!pids[i]) {
			actor_init(&a, m->session, m->plan, m->next, m->seed, m->round);
			arm_and_end(&a, device_fd());
			_exit(0);
		}
		usleep(30000);
	}
}

/* A user namespace in which one may mount, with the caller as its root */
static bool enter_namespaces(const struct manager *m)
{
	char map[32];

	snprintf(map, sizeof(map), "0 %u 1", m->uid);
	return !unshare(CLONE_NEWUSER | CLONE_NEWNS) &&
	       write_all("/proc/self/setgroups", "deny") && write_all("/proc/self/uid_map", map) &&
	       write_all("/proc/self/gid_map", map);
}

/* Tasks that leave a page which the file server never takes */
static void plan_deaf(struct manager *m)
{
	struct pvas_space *space;
	unsigned int i;

	if (!enter_namespaces(m) || fuse_up(DEAF_DIR) < 0)
		return;
	space = make_space();
	for (i = 0; space && i < 80; i++)
		start_role(space, "deaf", m, 0);
	for (;;)
		pause();
}

/* A job of root's with a secret, and a task in it that gives up its rights. */
static void plan_careless(struct manager *m)
{
	struct pvas_space *space = make_space();

	if (!space)
		return;
	start_role(space, "victim", m, 0);
	usleep(300000);
	for (;;) {
		pid_t pid = start_role(space, "careless", m, 0);

		if (pid < 0 || waitpid(pid, NULL, 0) < 0)
			usleep(100000);
	}
}

const struct plan plans[] = {
	{ "peers",    plan_peers,    8, false, 1 },
	{ "solo",     plan_solo,     4, false, 1 },
	{ "creator",  plan_creator,  3, false, 1 },
	{ "arm",      plan_arm,	     3, false, 1 },
	{ "plain",    plan_plain,    3, false, 1 },
	{ "keyed",    plan_keyed,    2, false, 1 },
	{ "deaf",     plan_deaf,     1, false, 3 },
	{ "careless", plan_careless, 1, true, 1 },
};

unsigned int n_plans(void)
{
	return ARRAY(plans);
}

void manage(struct manager *m)
{
	for (;;) {
		plans[m->plan].run(m);
		usleep(100000);
	}
}
