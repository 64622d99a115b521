// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The user backend: what tasks leave behind, or give up, does not use the
 * launcher's rights, memory and workers. See stray_task.c.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "helpers.h"
#include "pvas.h"
#include "user/worker.h"
#include "kselftest_harness.h"

static const struct pvas_create_attr user = {
	.size = sizeof(user), .backend = PVAS_BACKEND_USER,
};

static int start(struct pvas_space *s, char **argv, pid_t *pid)
{
	argv[0] = (char *)ours("stray_task");
	return pvas_task_spawn(s, PVAS_ANY, argv[0], argv, environ, NULL, pid);
}

static int run(struct pvas_space *s, const char *what)
{
	char *argv[] = { NULL, (char *)what, NULL };
	pid_t pid;
	int ret = start(s, argv, &pid);

	return ret < 0 ? ret : end_of(pid);
}

/* 0: as it is here; 1: where a container forbids what is fast. */
FIXTURE(strays)
{
	struct pvas_space *s;
};

FIXTURE_VARIANT(strays)
{
	int contained;
};

FIXTURE_VARIANT_ADD(strays, plain) {
	.contained = 0,
};

FIXTURE_VARIANT_ADD(strays, contained) {
	.contained = 1,
};

FIXTURE_SETUP(strays)
{
	const int nr[] = {
		SYS_kcmp, SYS_pidfd_getfd, SYS_process_vm_readv, SYS_process_vm_writev,
	};

	if (variant->contained)
		forbid(nr, 4, EPERM);
	ASSERT_EQ(pvas_space_create(&self->s, &user), 0) TH_LOG("%s", pvas_error_get());
}

FIXTURE_TEARDOWN(strays)
{
	pvas_space_destroy(self->s);
}

/* The teardown is the test: it comes back, though they end no earlier than it. */
TEST_F(strays, dont_dismiss_workers)
{
	const struct user_space *u = self->s->priv;
	char text[12], cookie[24], *argv[] = { NULL, "strays", text, cookie, NULL };
	char buf[64];
	int p[2], i;
	pid_t pid;

	ASSERT_EQ(pipe2(p, O_CLOEXEC), 0);
	fcntl(p[1], F_SETFD, 0);
	snprintf(text, sizeof(text), "%d", p[1]);
	snprintf(cookie, sizeof(cookie), "%#lx", (unsigned long)u->cookie);
	ASSERT_GT(start(self->s, argv, &pid), 0);
	EXPECT_EQ(end_of(pid), 0);
	close(p[1]);
	/* They write to the end: never more than a pipe holds. */
	for (i = 0; i < 100; i++) {
		ASSERT_GT(read(p[0], buf, sizeof(buf)), 0);
	}
	fcntl(p[0], F_SETFL, O_NONBLOCK);
}

/* A call that only the supervisor makes costs no worker's time if others make it. */
TEST_F(strays, cant_call_workers)
{
	const struct user_space *u = self->s->priv;
	char number[12], cookie[24], *argv[] = { NULL, "unknown", number, cookie, NULL };
	unsigned int i, served[2];
	pid_t pid;

	snprintf(cookie, sizeof(cookie), "%#lx", (unsigned long)u->cookie);
	for (i = 0; i < 2; i++) {
		served[i] = u->nr_served;
		snprintf(number, sizeof(number), "%u", i * 1000);
		ASSERT_GT(start(self->s, argv, &pid), 0);
		EXPECT_EQ(end_of(pid), 0);
		served[i] = u->nr_served - served[i];
	}
	EXPECT_LT(served[1], served[0] + 500);
}

static char path[] = "/proc/self/exe";
static volatile char target[8] = "intact";
static volatile uint64_t act[4];

/* The addresses that programs outside try to change, as arguments. */
static void say_where(char a[3][24])
{
	memcpy((char *)target, "intact", 7);
	act[0] = 0x1000;			/* a handler, and SA_RESTORER */
	act[1] = 0x04000000;
	act[2] = 0;
	snprintf(a[0], sizeof(a[0]), "%#lx", (unsigned long)path);
	snprintf(a[1], sizeof(a[1]), "%#lx", (unsigned long)target);
	snprintf(a[2], sizeof(a[2]), "%#lx", (unsigned long)act);
}

/* A program that a task has become, in the milliseconds before that is noticed. */
TEST_F(strays, exec_leaves_the_launchers_memory)
{
	char a[3][24], *argv[] = { NULL, "exec", a[0], a[1], a[2], NULL, NULL };
	pid_t pid;
	int i;

	say_where(a);
	for (i = 0; i < 12; i++) {
		argv[5] = i & 1 ? "thread" : "first";
		ASSERT_GT(start(self->s, argv, &pid), 0);
		EXPECT_EQ(end_of(pid), 0);
	}
	EXPECT_STREQ((char *)target, "intact");
	EXPECT_EQ(act[2], 0);
}

/* The same by a system call in a peer's code. */
TEST_F_TIMEOUT(strays, exec_by_a_peers_code, 60)
{
	char a[3][24], fd[12], at[24], *lend[] = { NULL, "lend", fd, NULL };
	char *argv[] = { NULL, "borrow", a[0], a[1], a[2], at, NULL };
	pid_t lender, pid;
	uint64_t where;
	int p[2], i;

	ASSERT_EQ(pipe(p), 0);
	snprintf(fd, sizeof(fd), "%d", p[1]);
	ASSERT_GT(start(self->s, lend, &lender), 0);
	ASSERT_EQ(read(p[0], &where, sizeof(where)), sizeof(where));
	snprintf(at, sizeof(at), "%#lx", (unsigned long)where);
	say_where(a);
	for (i = 0; i < 4; i++) {
		ASSERT_GT(start(self->s, argv, &pid), 0);
		EXPECT_EQ(end_of(pid), 0);
	}
	EXPECT_STREQ((char *)target, "intact");
	EXPECT_EQ(act[2], 0);
	/* They are seen to have left: no partition is lost. */
	EXPECT_EQ(pvas_task_list(self->s, NULL, 0), 1);
	kill(lender, SIGKILL);
	end_of(lender);
}

/*
 * A task has ended and been waited for; the supervisor has not seen it yet, or can't
 * free the partition yet. A program has its number. Returns the other's status.
 */
static int inherit(struct pvas_space *s, int seen)
{
	struct user_space *u = s->priv;
	char a[3][24], at[24], *heir[] = { NULL, "inherit", at, a[0], a[1], a[2], NULL };
	char *sleeper[] = { "sleep", "100", NULL };
	struct pvas_spawn_attr attr = { .size = sizeof(attr), .set_fds = 1, .fds = { 0, -1, -1 } };
	int p[2], i, index, status;
	pthread_mutex_t *lock;
	pid_t pid, other;
	char c;

	heir[0] = (char *)ours("stray_task");
	index = pvas_task_spawn(s, PVAS_ANY, "/bin/sleep", sleeper, environ, NULL, &pid);
	if (index < 0 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, p))
		return -1;
	say_where(a);
	snprintf(at, sizeof(at), "%#lx", (unsigned long)u->parts[index].base);
	attr.fds[0] = p[0];
	if (pvas_task_spawn(s, PVAS_ANY, heir[0], heir, environ, &attr, &other) < 0 ||
	    read(p[1], &c, 1) != 1)
		return -1;
	lock = seen ? &u->parts[index].lock : &u->lock;
	pthread_mutex_lock(lock);
	kill(pid, SIGKILL);
	end_of(pid);
	for (i = 0; seen && i < 5000 && u->parts[index].state != PVAS_PART_ENDING; i++)
		usleep(1000);
	if (write(p[1], &pid, sizeof(pid)) != sizeof(pid))
		kill(other, SIGKILL);
	status = end_of(other);
	pthread_mutex_unlock(lock);
	close(p[0]);
	close(p[1]);
	return status;
}

TEST_F_TIMEOUT(strays, number_of_an_ended_task, 60)
{
	int seen, status;

	for (seen = 0; seen < 2; seen++) {
		status = inherit(self->s, seen);
		if (status == 77 << 8)
			SKIP(return, "can't choose the number of a process");
		EXPECT_EQ(status, 0);
		EXPECT_STREQ((char *)target, "intact") TH_LOG("seen: %d", seen);
		EXPECT_EQ(act[2], 0);
	}
}

/*
 * Until its thread makes another call a fork may not be complete. The thread's number is
 * another process' one day, which must not be asked about it: that can hang.
 */
TEST_F(strays, forks_of_an_ended_task)
{
	char *argv[] = { NULL, "fork", NULL };
	const struct user_space *u = self->s->priv;
	int i, index;
	pid_t pid;

	index = start(self->s, argv, &pid);
	ASSERT_GT(index, 0);
	for (i = 0; i < 10000 && !__atomic_load_n(&u->parts[index].nr_forks, __ATOMIC_RELAXED); i++)
		usleep(1000);
	EXPECT_EQ(u->parts[index].nr_forks, 1);
	EXPECT_EQ(u->parts[index].forks[0].tid, pid);
	kill(pid, SIGKILL);
	EXPECT_EQ(end_of(pid), SIGKILL);
	EXPECT_EQ(pvas_task_list(self->s, NULL, 0), 0);
	EXPECT_EQ(u->parts[index].nr_forks, 0);
}

TEST_F(strays, modes_of_descriptors)
{
	EXPECT_EQ(run(self->s, "modes"), 0);
}

TEST_F(strays, rights)
{
	EXPECT_EQ(run(self->s, "rights"), 0);
}

TEST_F(strays, links_to_read_only_memory)
{
	EXPECT_EQ(run(self->s, "links"), 0);
}

TEST_F(strays, die_with_the_launcher)
{
	EXPECT_EQ(run(self->s, "death"), 0);
}

/* The pid of the lock's owner: F_GETLK in another process reports it. */
static pid_t lock_of(const char *path)
{
	struct flock lock = { .l_type = F_WRLCK };
	int fd, p[2];
	pid_t pid, owner = -1;

	if (pipe(p))
		return -1;
	pid = fork();
	if (!pid) {
		fd = open(path, O_RDWR);
		owner = fcntl(fd, F_GETLK, &lock) || lock.l_type == F_UNLCK ? 0 : lock.l_pid;
		_exit(write(p[1], &owner, sizeof(owner)) != sizeof(owner));
	}
	if (read(p[0], &owner, sizeof(owner)) != sizeof(owner))
		owner = -1;
	end_of(pid);
	close(p[0]);
	close(p[1]);
	return owner;
}

/* A file that tasks map is opened and closed for them: the launcher's locks stay. */
TEST_F(strays, locks_of_the_launcher)
{
	char file[] = "/tmp/pvas-lock-XXXXXX", *argv[] = { NULL, "lock", file, NULL };
	struct flock lock = { .l_type = F_WRLCK };
	int fd = mkstemp(file);
	pid_t pid;

	ASSERT_EQ(ftruncate(fd, 4096), 0);
	ASSERT_EQ(fcntl(fd, F_SETLK, &lock), 0);
	EXPECT_EQ(lock_of(file), getpid());
	ASSERT_GT(start(self->s, argv, &pid), 0);
	EXPECT_EQ(end_of(pid), 0);
	EXPECT_EQ(lock_of(file), getpid());
	unlink(file);
}

/* The workers begin with a copy of the launcher's descriptors: a pipe ends all the same. */
TEST(pipes_end)
{
	struct pvas_space *s;
	int p[2];
	char c;

	ASSERT_EQ(pipe2(p, O_CLOEXEC), 0);
	ASSERT_EQ(pvas_space_create(&s, &user), 0);
	close(p[1]);
	EXPECT_EQ(read(p[0], &c, 1), 0);
	pvas_space_destroy(s);
}

/* ---- segments of huge pages ---- */

static int huge_pages(int n)
{
	FILE *f = fopen("/proc/sys/vm/nr_overcommit_hugepages", n < 0 ? "r" : "w");
	int now = n;

	if (!f)
		return -1;
	if (n < 0 ? fscanf(f, "%d", &now) != 1 : fprintf(f, "%d", n) < 0)
		now = -1;
	return fclose(f) ? -1 : now;
}

/* Their length is no multiple of the page's: they take more than that. */
TEST_F(strays, segments_of_huge_pages)
{
	char text[12], *argv[] = { NULL, "segment", text, NULL };
	int was = huge_pages(-1), id;
	pid_t pid;

	if (was < 0 || huge_pages(was + 8) < 0)
		SKIP(return, "can't have huge pages");
	id = shmget(IPC_PRIVATE, (2UL << 20) + 4096, IPC_CREAT | SHM_HUGETLB | 0600);
	snprintf(text, sizeof(text), "%d", id);
	if (id < 0) {
		huge_pages(was);
		SKIP(return, "no huge pages");
	}
	EXPECT_GT(start(self->s, argv, &pid), 0);
	EXPECT_EQ(end_of(pid), 0);
	shmctl(id, IPC_RMID, NULL);
	huge_pages(was);
}

/* ---- a worker that comes back when nobody waits for it ---- */

struct late {
	struct user_space u;
	int at_it;
	int go;
	int left;
	int again;
};

static void *come_late(void *arg)
{
	struct late *l = arg;

	user_worker_busy(&l->u);
	__atomic_store_n(&l->at_it, 1, __ATOMIC_RELEASE);
	while (!__atomic_load_n(&l->go, __ATOMIC_ACQUIRE))
		usleep(1000);
	user_worker_idle(&l->u);
	l->left = user_worker_retired();
	l->again = user_worker_busy(&l->u);
	return NULL;
}

/* It takes none of the calls that are for others, and waits for none itself. */
TEST(late_worker)
{
	static struct late l;
	pthread_t t;

	pthread_mutex_init(&l.u.pool_lock, NULL);
	user_init_condition(&l.u.pool_changed);
	l.u.stop = 1;
	l.u.nr_live = 1;
	ASSERT_EQ(pthread_create(&t, NULL, come_late, &l), 0);
	while (!__atomic_load_n(&l.at_it, __ATOMIC_ACQUIRE))
		usleep(1000);
	user_workers_stop(&l.u);
	EXPECT_EQ(l.u.nr_live, 1);
	l.go = 1;
	pthread_join(t, NULL);
	EXPECT_EQ(l.left, 1);
	EXPECT_EQ(l.u.nr_live, 0);
	EXPECT_EQ(l.again, -EINTR);
	EXPECT_EQ(user_workers_join(&l.u), 0);
}

TEST_HARNESS_MAIN
