// SPDX-License-Identifier: GPL-2.0-only
/*
 * The end of tasks whose files do not let go: a FUSE server that does not answer, and
 * another user's socket that lingers. No memory stays that no process has.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "pvas_test.h"
#include "silent_fuse.h"

#define MIB (1UL << 20)
#define LARGE (64 * MIB)
#define SMALL_KIB 16384
#define PAGE FUSE_PAGE
#define RW (PROT_READ | PROT_WRITE)
#define WAIT_MS "/sys/module/pvas/parameters/reclaim_wait_ms"

static long shmem_kib(void)
{
	return pt_file_kib("/proc/meminfo", "Shmem:");
}

/* The task changes its page of the silent server's file when it is told to, and stays. */
static void change_when_told(char *page)
{
	sigset_t set;
	int sig;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGUSR2);
	sigprocmask(SIG_BLOCK, &set, NULL);
	pt_say("r");
	sigwait(&set, &sig);
	page[0] = sig == SIGUSR2 ? 1 : FUSE_ANSWERED;
	pt_say("d");
	pause();
}

/* All tasks change it; the server does not answer for what the last one stores. */
static bool have_changed(const pid_t *pid, int n, int from)
{
	int i;

	for (i = 0; i < n; i++) {
		kill(pid[i], i < n - 1 ? SIGUSR1 : SIGUSR2);
		if (pt_hear(from) != 'd')
			return false;
	}
	return true;
}

/* At the partition's bottom a dirty page of the silent server's; above it much memory */
TASK(dirty_fuse_below)
{
	int fd = atoi(pt_args[1]), mem = memfd_create("x", 0);
	void *at = (void *)(pt_base() + MIB);
	char *page, *p, *shared;

	page = mmap(at, PAGE, RW, MAP_SHARED | MAP_FIXED_NOREPLACE, fd, 0);
	CHECK(page == at);
	p = mmap(NULL, LARGE, RW, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(p != MAP_FAILED);
	CHECK_EQ(0, ftruncate(mem, LARGE));
	shared = mmap(NULL, LARGE, RW, MAP_SHARED, mem, 0);
	CHECK(shared != MAP_FAILED);
	if (pt_failed)
		return;
	memset(p, 1, LARGE);
	memset(shared, 1, LARGE);
	change_when_told(page);
}

#define TASKS 3

static void end_with_silent_server(struct __test_metadata *_metadata, int file, pid_t server)
{
	long shmem = shmem_kib();
	struct pvas_space *space = PT_SPACE();
	pid_t pid[TASKS];
	int fds[2], i;

	ASSERT_EQ(0, pipe(fds));
	for (i = 0; i < TASKS; i++) {
		ASSERT_EQ(i + 1, pt_start_task_fds(space, i + 1, "dirty_fuse_below", fds[1], file,
						   &pid[i]));
		ASSERT_EQ('r', pt_hear(fds[0]));
	}
	ASSERT_TRUE(have_changed(pid, TASKS, fds[0]));
	EXPECT_LT(TASKS * LARGE / 1024, pt_resident_kib());
	for (i = 0; i < TASKS; i++)
		kill(pid[i], SIGKILL);
	for (i = 0; i < 200 && (pt_resident_kib() > SMALL_KIB ||
				shmem_kib() > shmem + SMALL_KIB); i++)
		usleep(50000);
	EXPECT_GT(SMALL_KIB, pt_resident_kib());
	EXPECT_GT(shmem + SMALL_KIB, shmem_kib());
	/* But they wait for the server, as any process does. */
	pt_kill(server);
	for (i = 0; i < TASKS; i++) {
		EXPECT_EQ(256 + SIGKILL, pt_wait(pid[i]));
	}
	pvas_space_destroy(space);
}

/* a FUSE server that never answers keeps none of the memory of tasks that end together */
MODULE_TEST(silent_server, "the launcher's memory")
{
	const char *dir = pt_tmpdir();
	char path[256], wait_ms[32];
	int file, i;
	pid_t server;

	PT_NEED_ROOT();
	ASSERT_EQ(0, unshare(CLONE_NEWNS));
	server = fuse_up(dir);
	if (server < 0)
		SKIP(return, "no FUSE: %s", strerror(-server));
	snprintf(path, sizeof(path), "%s/f", dir);
	file = open(path, O_RDWR);
	ASSERT_LE(0, file);
	ASSERT_EQ(0, pt_read_file(WAIT_MS, wait_ms, sizeof(wait_ms)));
	pt_write_file(WAIT_MS, "500");
	end_with_silent_server(_metadata, file, server);
	pt_write_file(WAIT_MS, wait_ms);
	close(file);
	for (i = 0; i < 100 && pt_spaces(); i++)
		usleep(50000);
	EXPECT_EQ(0, pt_spaces());
	umount2(dir, MNT_DETACH);
}

/* ---- many such servers: the work queue on which all users' spaces are freed ---- */

#define MANY 8
#define FREE_QUEUE "+pvas_free"
#define LATE_QUEUE "+pvas_late"

/*
 * To be chosen by the OOM killer. It has no descriptor of the file, whose close would wait
 * for the server as soon as one task has changed the page.
 */
TASK(dirty_fuse_alone)
{
	int fd = atoi(pt_args[1]);
	char *page = mmap(NULL, PAGE, RW, MAP_SHARED, fd, 0);

	CHECK(page != MAP_FAILED);
	close(fd);
	CHECK_EQ(0, pt_write_file("/proc/self/oom_score_adj", "1000"));
	if (!pt_failed)
		change_when_told(page);
}

/* How many workers are at work for a queue of this name */
static int workers(const char *queue)
{
	char path[300], comm[64];
	struct dirent *e;
	DIR *dir = opendir("/proc");
	int n = 0;

	while (dir && (e = readdir(dir))) {
		snprintf(path, sizeof(path), "/proc/%s/comm", e->d_name);
		n += atoi(e->d_name) && !pt_read_file(path, comm, sizeof(comm)) &&
		     strstr(comm, queue);
	}
	if (dir)
		closedir(dir);
	return n;
}

/* When told: a space of another user's that is made, used and freed */
static int one_job(void *arg)
{
	int before, err, i;
	struct pt_raw raw;
	pid_t pid;

	pt_hear(*(int *)arg);
	before = pt_spaces();
	err = pt_dumpable() ?: pt_raw_make(&raw);
	if (err)
		return err;
	pid = pt_raw_spawn(&raw, 1);
	if (pid > 0)
		pt_kill(pid);
	pt_raw_close(&raw);
	for (i = 0; i < 200 && pt_spaces() > before; i++)
		usleep(50000);
	return pid < 0 ? pid : pt_spaces() > before ? -ETIME : 0;
}

/* The OOM killer takes one of them, which is waited for: the kernel counts no requests. */
static bool end_one_by_oom(pid_t pid[MANY])
{
	int tries, i, st;

	if (pt_write_file("/proc/sysrq-trigger", "f"))
		return false;
	for (tries = 0; tries < 400; tries++, usleep(25000)) {
		for (i = 0; i < MANY; i++) {
			if (!pid[i] || waitpid(pid[i], &st, WNOHANG) != pid[i])
				continue;
			pid[i] = 0;
			return WIFSIGNALED(st) && WTERMSIG(st) == SIGKILL;
		}
	}
	return false;
}

static void end_many_by_oom(struct __test_metadata *_metadata, int file)
{
	struct pvas_space *space[MANY];
	pid_t pid[MANY];
	int fds[2], i, most = 0;

	ASSERT_EQ(0, pipe(fds));
	for (i = 0; i < MANY; i++) {
		space[i] = PT_SPACE();
		ASSERT_EQ(1, pt_start_task_fds(space[i], 1, "dirty_fuse_alone", fds[1], file,
					       &pid[i]));
		ASSERT_EQ('r', pt_hear(fds[0]));
	}
	ASSERT_TRUE(have_changed(pid, MANY, fds[0]));
	for (i = 0; i < MANY; i++) {
		ASSERT_TRUE(end_one_by_oom(pid));
	}
	for (i = 0; i < MANY; i++)
		pvas_space_destroy(space[i]);
	for (i = 0; i < 100 && most < MANY; i++, usleep(50000))
		most = workers(LATE_QUEUE) > most ? workers(LATE_QUEUE) : most;
	EXPECT_LE(MANY, most);
	/* Each counts for its user. */
	EXPECT_LE(MANY, pt_spaces());
	for (i = 0; i < 20 && workers(FREE_QUEUE); i++)
		usleep(50000);
	EXPECT_GT(20, i);
}

/*
 * nor do such servers occupy workers of the queue that all users have in common, which runs
 * 256 works at a time: what waits for one counts for its user until it has ended
 */
MODULE_TEST(silent_servers_and_others, "the launcher's memory")
{
	const char *dir = pt_tmpdir();
	pid_t server, other;
	int file, go[2];
	char path[256];

	PT_NEED_ROOT();
	ASSERT_EQ(0, unshare(CLONE_NEWNS));
	server = fuse_up(dir);
	if (server < 0)
		SKIP(return, "no FUSE: %s", strerror(-server));
	ASSERT_EQ(0, pipe(go));
	/* From before there is the file, which it could not close. */
	other = fork();
	if (!other)
		_exit(-pt_as_nobody(one_job, &go[0]));
	snprintf(path, sizeof(path), "%s/f", dir);
	file = open(path, O_RDWR);
	ASSERT_LE(0, file);
	end_many_by_oom(_metadata, file);
	EXPECT_EQ(1, write(go[1], "g", 1));
	EXPECT_EQ(0, pt_wait(other));
	pt_kill(server);
	close(file);
	EXPECT_TRUE(pt_spaces_gone());
	umount2(dir, MNT_DETACH);
}

/* ---- a release on the machine's one work item for them that does not end ---- */

/* Closes a socket that lingers, in the middle of a poll: whoever ends that releases it. */
static int linger(void)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(0x7f000001) };
	struct iocb poll = { .aio_lio_opcode = IOCB_CMD_POLL, .aio_buf = POLLRDHUP }, *ask = &poll;
	struct linger long_time = { 1, 100000 };
	int listener = socket(AF_INET, SOCK_STREAM, 0), out = socket(AF_INET, SOCK_STREAM, 0), in;
	socklen_t len = sizeof(at);
	aio_context_t ctx = 0;
	static char much[65536];

	if (bind(listener, (void *)&at, len) || listen(listener, 1) ||
	    getsockname(listener, (void *)&at, &len) || connect(out, (void *)&at, len))
		return -errno;
	in = accept(listener, NULL, NULL);
	setsockopt(out, SOL_SOCKET, SO_LINGER, &long_time, sizeof(long_time));
	fcntl(out, F_SETFL, O_NONBLOCK);
	while (write(out, much, sizeof(much)) > 0)
		;
	poll.aio_fildes = out;
	if (in < 0 || syscall(SYS_io_setup, 1, &ctx) || syscall(SYS_io_submit, ctx, 1, &ask) != 1)
		return -errno;
	close(out);
	shutdown(in, SHUT_WR);
	return 0;
}

static pid_t start_lingering(void)
{
	int fds[2], err = -EPIPE;
	pid_t pid;

	if (system("ip link set lo up") || pipe(fds))
		return -ENOTSUP;
	pid = fork();
	if (!pid) {
		err = linger();
		if (write(fds[1], &err, sizeof(err)) == sizeof(err) && !err)
			pause();
		_exit(1);
	}
	if (read(fds[0], &err, sizeof(err)) != sizeof(err))
		err = -EPIPE;
	close(fds[0]);
	close(fds[1]);
	/* Now the work item is in it. */
	sleep(1);
	return err ?: pid;
}

/* Removed when it is attached: what is left of it is in files that the kernel has alone. */
TASK(map_segment_and_end)
{
	int id = shmget(IPC_PRIVATE, LARGE, IPC_CREAT | 0600);
	char *p = shmat(id, NULL, 0);

	CHECK(p != (void *)-1);
	CHECK_EQ(0, shmctl(id, IPC_RMID, NULL));
	if (p != (void *)-1)
		memset(p, 1, LARGE);
}

TASK(map_memfd_and_end)
{
	int mem = memfd_create("x", MFD_CLOEXEC);
	char *p;

	CHECK_EQ(0, ftruncate(mem, LARGE));
	p = mmap(NULL, LARGE, RW, MAP_SHARED, mem, 0);
	CHECK(p != MAP_FAILED);
	if (p != MAP_FAILED)
		memset(p, 1, LARGE);
}

/* files that were mapped are released before waitpid() returns, whoever holds up others' */
MODULE_TEST(held_up_releases, "the launcher's memory")
{
	static const char *const tasks[] = { "map_memfd_and_end", "map_segment_and_end" };
	struct pvas_space *space = PT_SPACE();
	long shmem = shmem_kib();
	pid_t attacker, pid;
	int i;

	PT_NEED_ROOT();
	attacker = start_lingering();
	if (attacker < 0)
		SKIP(return, "no such socket: %s", strerror(-attacker));
	for (i = 0; i < 4; i++) {
		pid = pt_start_task(space, 1, tasks[i % 2]);
		ASSERT_LT(0, pid);
		EXPECT_EQ(0, pt_wait(pid));
		EXPECT_GT(shmem + SMALL_KIB, shmem_kib());
	}
	/* The same at the end of the last task of a space that is closed */
	pid = pt_start_task(space, 1, "map_memfd_and_end");
	ASSERT_LT(0, pid);
	pvas_space_destroy(space);
	EXPECT_LE(0, pt_wait(pid));
	EXPECT_GT(shmem + SMALL_KIB, shmem_kib());
	pt_kill(attacker);
}

PT_MAIN()
