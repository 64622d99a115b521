// SPDX-License-Identifier: GPL-2.0-only
/* PVAS_IOC_DESTROY, error by error, and what closing the file does; without libpvas. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/landlock.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "pvas_test.h"

/* with a task: EBUSY; with KILL it ends it; then the file can make another */
PVAS_TEST(destroy)
{
	struct pvas_destroy destroy = { .size = sizeof(destroy) };
	struct pt_raw raw, second;
	pid_t pid;

	ASSERT_EQ(0, pt_raw_make(&raw));
	pid = pt_raw_spawn(&raw, 1);
	ASSERT_LT(0, pid);
	EXPECT_EQ(-EBUSY, pt_ioctl(raw.fd, PVAS_IOC_DESTROY, &destroy));
	EXPECT_EQ(pid, pt_raw_call(&raw, 1, SYS_getpid));
	destroy.flags = PVAS_DESTROY_KILL;
	EXPECT_EQ(0, pt_ioctl(raw.fd, PVAS_IOC_DESTROY, &destroy));
	EXPECT_EQ(256 + SIGKILL, pt_wait(pid));
	EXPECT_EQ(-ENOENT, pt_ioctl(raw.fd, PVAS_IOC_DESTROY, &destroy));
	EXPECT_EQ(-ENOENT, pt_raw_arm(raw.fd, 0, 1, 0));
	EXPECT_EQ(-ENOENT, pt_raw_arm(raw.fd, raw.create.id, 1, 0));
	EXPECT_EQ(-ESRCH, pt_raw_count(raw.fd));

	pt_raw_init(&second, PVAS_SHIFT_DEFAULT);
	close(second.fd);
	second.fd = raw.fd;
	EXPECT_EQ(0, pt_raw_create(&second));
	EXPECT_NE(raw.create.id, second.create.id);
	destroy.flags = 0;
	EXPECT_EQ(0, pt_ioctl(raw.fd, PVAS_IOC_DESTROY, &destroy));
	pt_raw_close(&raw);
}

/* Has the line of a space in /proc/pvas that word? */
static bool shown(uint32_t id, const char *word)
{
	FILE *f = fopen("/proc/pvas", "re");
	char line[512], name[32];
	bool found = false;

	snprintf(name, sizeof(name), "space %u ", id);
	while (f && fgets(line, sizeof(line), f))
		found |= !strncmp(line, name, strlen(name)) && strstr(line, word);
	if (f)
		fclose(f);
	return found;
}

/* with KILL a space ends for those, too, who have found it by its key: it lets nobody in */
PVAS_TEST(destroy_with_others_attached)
{
	struct pvas_destroy destroy = { .size = sizeof(destroy), .flags = PVAS_DESTROY_KILL };
	struct pvas_attach attach = {
		.size = sizeof(attach), .key = (uint64_t)"common", .key_len = 6,
	};
	struct pt_raw raw, again;
	int other = pt_open();
	pid_t pid;

	pt_raw_init(&raw, PVAS_SHIFT_DEFAULT);
	raw.create.flags |= PVAS_CREATE_KEY;
	raw.create.key = attach.key;
	raw.create.key_len = attach.key_len;
	ASSERT_EQ(0, pt_raw_create(&raw));
	EXPECT_EQ(0, pt_ioctl(other, PVAS_IOC_ATTACH, &attach));
	pid = pt_raw_spawn(&raw, 1);
	ASSERT_LT(0, pid);
	EXPECT_EQ(0, pt_ioctl(raw.fd, PVAS_IOC_DESTROY, &destroy));
	EXPECT_EQ(256 + SIGKILL, pt_wait(pid));
	EXPECT_EQ(-ENOENT, pt_raw_arm(other, 0, 1, 0));
	/* It is there as long as the other file is, but not open. */
	EXPECT_TRUE(shown(raw.create.id, " closing"));
	EXPECT_FALSE(shown(raw.create.id, " open"));
	/* The key is free again, for a space in which children live. */
	pt_raw_init(&again, PVAS_SHIFT_DEFAULT);
	again.create.flags |= PVAS_CREATE_KEY;
	again.create.key = attach.key;
	again.create.key_len = attach.key_len;
	ASSERT_EQ(0, pt_raw_create(&again));
	pid = pt_raw_spawn(&again, 1);
	EXPECT_EQ(pid, pt_raw_call(&again, 1, SYS_getpid));
	pt_kill(pid);
	pt_raw_close(&again);
	pt_raw_close(&raw);
	close(other);
}

static int kill_space(void *arg)
{
	struct pvas_destroy destroy = { .size = sizeof(destroy), .flags = PVAS_DESTROY_KILL };

	return pt_ioctl(((struct pt_raw *)arg)->fd, PVAS_IOC_DESTROY, &destroy);
}

/* The tasks have no numbers there. */
static int kill_from_namespace(void *arg)
{
	if (unshare(CLONE_NEWUSER | CLONE_NEWPID))
		return -ENOTSUP;
	return pt_in_child(kill_space, arg);
}

/* A Landlock domain can forbid signals to processes outside. */
static int kill_from_domain(void *arg)
{
	struct landlock_ruleset_attr attr = { .handled_access_fs = LANDLOCK_ACCESS_FS_MAKE_SOCK };
	int fd = syscall(SYS_landlock_create_ruleset, &attr, sizeof(attr), 0);

	if (fd < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    syscall(SYS_landlock_restrict_self, fd, 0))
		return -ENOTSUP;
	return kill_space(arg);
}

static bool has_landlock(void)
{
	return syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION) > 0;
}

/* a process that has the file and has confined itself ends no tasks by it */
PVAS_TEST(destroy_by_confined)
{
	struct pt_raw raw;
	pid_t pid;

	ASSERT_EQ(0, pt_raw_make(&raw));
	pid = pt_raw_spawn(&raw, 1);
	ASSERT_LT(0, pid);
	EXPECT_EQ(-EPERM, pt_in_child(kill_from_namespace, &raw));
	EXPECT_EQ(has_landlock() ? -EPERM : -ENOTSUP, pt_in_child(kill_from_domain, &raw));
	EXPECT_EQ(pid, pt_raw_call(&raw, 1, SYS_getpid));
	EXPECT_EQ(0, pt_in_child(kill_space, &raw));
	EXPECT_EQ(256 + SIGKILL, pt_wait(pid));
	pt_raw_close(&raw);
}

/* an armed process is a reason too: EBUSY; with KILL it gets SIGKILL */
PVAS_TEST(destroy_armed)
{
	struct pvas_destroy destroy = { .size = sizeof(destroy) };
	struct pt_raw raw;
	int fds[2], err = -1;
	pid_t pid;

	ASSERT_EQ(0, pt_raw_make(&raw));
	ASSERT_EQ(0, pipe(fds));
	pid = fork();
	if (!pid) {
		err = pt_raw_arm(raw.fd, 0, 1, 0);
		_exit(write(fds[1], &err, sizeof(err)) != sizeof(err) || pause());
	}
	ASSERT_EQ(sizeof(err), read(fds[0], &err, sizeof(err)));
	ASSERT_EQ(0, err);
	EXPECT_EQ(-EBUSY, pt_ioctl(raw.fd, PVAS_IOC_DESTROY, &destroy));
	destroy.flags = PVAS_DESTROY_KILL;
	EXPECT_EQ(0, pt_ioctl(raw.fd, PVAS_IOC_DESTROY, &destroy));
	EXPECT_EQ(256 + SIGKILL, pt_wait(pid));
	pt_raw_close(&raw);
}

/* closing the file kills the tasks, if so asked, and only then */
PVAS_TEST(close_kills_or_not)
{
	struct pt_raw raw;
	pid_t pid;

	ASSERT_EQ(0, pt_raw_make(&raw));
	pid = pt_raw_spawn(&raw, 1);
	ASSERT_LT(0, pid);
	close(raw.fd);
	EXPECT_EQ(256 + SIGKILL, pt_wait(pid));

	pt_raw_init(&raw, PVAS_SHIFT_DEFAULT);
	raw.create.flags = 0;
	ASSERT_EQ(0, pt_raw_create(&raw));
	pid = pt_raw_spawn(&raw, 1);
	ASSERT_LT(0, pid);
	close(raw.fd);
	raw.fd = pt_open();
	EXPECT_EQ(pid, pt_raw_call(&raw, 1, SYS_getpid));
	/* Closed to new ones. */
	EXPECT_EQ(-ENOENT, pt_raw_arm(raw.fd, raw.create.id, 2, 0));
	EXPECT_EQ(0, pt_raw_query(&raw));
	pt_kill(pid);
	EXPECT_EQ(-ENOENT, pt_raw_query(&raw));
	pt_raw_close(&raw);
}

/* two files race to create, spawn and destroy: nothing but the errors expected */
PVAS_TEST(destroy_races_with_spawn)
{
	struct pvas_destroy destroy = { .size = sizeof(destroy), .flags = PVAS_DESTROY_KILL };
	struct pt_raw raw;
	unsigned int round;
	pid_t pid;
	int ret;

	for (round = 0; round < 30; round++) {
		ASSERT_EQ(0, pt_raw_make(&raw));
		pid = fork();
		if (!pid) {
			unsigned int i;

			for (i = 0; i < 1000; i++) {
				ret = pt_raw_arm(raw.fd, raw.create.id, 1 + i % 40, 0);
				/* EPERM: no longer this file's, and not closed yet */
				if (ret && ret != -ENOENT && ret != -EPERM)
					_exit(1);
				if (!ret && pt_raw_arm(raw.fd, 0, 0, PVAS_SPAWN_CANCEL))
					_exit(2);
			}
			_exit(0);
		}
		usleep(1000 * (round % 8));
		EXPECT_EQ(0, pt_ioctl(raw.fd, PVAS_IOC_DESTROY, &destroy));
		ret = pt_wait(pid);
		EXPECT_TRUE(ret == 0 || ret == 256 + SIGKILL) TH_LOG("child %d", ret);
		pt_raw_close(&raw);
	}
}

/* ---- a creator that lives on ---- */

#define MUCH (64L << 20)

static pid_t *creator_pid;

/* A space whose creator has closed its file and waits; @use is for those who use it. */
struct held {
	struct pt_raw raw, use;
	pthread_t maker;
	int go[2];
};

static int tell_pid(void *arg)
{
	(void)arg;
	*creator_pid = getpid();
	return 0;
}

static void *make_and_hold(void *arg)
{
	struct held *held = arg;
	struct pt_slot steps[] = {
		{ .nr = SYS_close, .args = { held->raw.fd } },
		{ .nr = SYS_read, .args = { held->go[0], PT_DATA_AT + PT_DATA_LEN - 8, 1 } },
	};
	long ret[2];

	held->raw.after = steps;
	held->raw.n_after = PT_ARRAY_SIZE(steps);
	held->raw.after_ret = ret;
	return (void *)(long)pt_raw_create(&held->raw);
}

/* With a task that has much memory; its pid */
static pid_t make_held(struct __test_metadata *_metadata, struct held *held)
{
	char path[64];
	pid_t task;

	creator_pid = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, (void *)creator_pid);
	ASSERT_EQ(0, pipe(held->go));
	pt_raw_init(&held->raw, PVAS_SHIFT_DEFAULT);
	held->raw.create.flags = 0;
	held->raw.prepare = tell_pid;
	held->use = held->raw;
	ASSERT_EQ(0, pthread_create(&held->maker, NULL, make_and_hold, held));
	while (pt_raw_count(held->use.fd) < 0)
		usleep(1000);
	snprintf(path, sizeof(path), "/proc/%d/mem", *creator_pid);
	held->use.mem = open(path, O_RDWR | O_CLOEXEC);
	held->use.data = calloc(1, PT_DATA_LEN);
	/* The creator's last steps are there: a task's calls must not change them. */
	ASSERT_EQ(PT_DATA_LEN, pread(held->use.mem, held->use.data, PT_DATA_LEN, PT_DATA_AT));
	task = pt_raw_spawn(&held->use, 1);
	ASSERT_LT(0, task);
	EXPECT_LT(0, pt_raw_call(&held->use, 1, SYS_mmap, 0, MUCH, PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0));
	EXPECT_LE(MUCH >> 10, pt_status_kib(*creator_pid, "VmRSS:"));
	return task;
}

static bool end_creator(struct held *held)
{
	bool told = write(held->go[1], "g", 1) == 1;
	void *err;

	pthread_join(held->maker, &err);
	close(held->go[0]);
	close(held->go[1]);
	close(held->use.mem);
	free(held->use.data);
	munmap(creator_pid, 4096);
	held->raw.fd = -1;
	pt_raw_close(&held->raw);
	return told && !err;
}

/* the last task's memory is freed when it ends, though nobody can enter any more */
PVAS_TEST(creator_outlives_the_last_task)
{
	struct held held;
	pid_t pid = make_held(_metadata, &held);

	/* It's the last file of the space. */
	close(held.use.fd);
	pt_kill(pid);
	EXPECT_GT(MUCH >> 11, pt_status_kib(*creator_pid, "VmRSS:"));
	EXPECT_TRUE(end_creator(&held));
}

/*
 * The file is in a socket that is in itself: after the end of the process only the kernel's
 * search for such sockets, which the end of any other one starts, finds that out.
 */
static int leave_in_flight(int fd)
{
	union { struct cmsghdr head; char room[CMSG_SPACE(3 * sizeof(int))]; } control;
	struct iovec text = { "f", 1 };
	struct msghdr msg = {
		.msg_iov = &text, .msg_iovlen = 1, .msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	int fds[3] = { fd };

	if (socketpair(AF_UNIX, SOCK_DGRAM, 0, &fds[1]))
		return -errno;
	control.head = (struct cmsghdr){ CMSG_LEN(sizeof(fds)), SOL_SOCKET, SCM_RIGHTS };
	memcpy(CMSG_DATA(&control.head), fds, sizeof(fds));
	if (sendmsg(fds[1], &msg, 0) != 1)
		return -errno;
	close(fd);
	return 0;
}

/* A process that has the only file of the space then, and no pipe that others wait for */
static pid_t pass_on(int fd, bool in_flight)
{
	int fds[2], err = -EPIPE, i;
	pid_t pid;

	if (pipe(fds))
		return -errno;
	pid = fork();
	if (!pid) {
		for (i = 3; i < 256; i++)
			if (i != fd && i != fds[1])
				close(i);
		err = in_flight ? leave_in_flight(fd) : 0;
		if (write(fds[1], &err, sizeof(err)) == sizeof(err))
			pause();
		_exit(0);
	}
	close(fd);
	if (read(fds[0], &err, sizeof(err)) != sizeof(err))
		err = -EPIPE;
	close(fds[0]);
	close(fds[1]);
	return err ?: pid;
}

enum { CREATOR, LAST_TASK, LAST_FILE };

static void end_in_order(struct __test_metadata *_metadata, const int order[3], bool in_flight)
{
	struct held held;
	pid_t task = make_held(_metadata, &held), holder = pass_on(held.use.fd, in_flight);
	int i;

	ASSERT_LT(0, holder);
	for (i = 0; i < 3; i++) {
		if (order[i] == CREATOR) {
			EXPECT_TRUE(end_creator(&held));
		} else if (order[i] == LAST_FILE) {
			pt_kill(holder);
			close(socket(AF_UNIX, SOCK_DGRAM, 0));
		} else {
			pt_kill(task);
			EXPECT_GT(MUCH >> 11, pt_resident_kib());
		}
	}
}

static long module_references(void)
{
	char text[32] = "-1";

	pt_read_file("/sys/module/pvas/refcnt", text, sizeof(text));
	return atol(text);
}

/* creator, last task and last file end in any order: no space is left, and no memory */
PVAS_TEST(any_order)
{
	static const int orders[][3] = {
		{ CREATOR, LAST_TASK, LAST_FILE }, { CREATOR, LAST_FILE, LAST_TASK },
		{ LAST_TASK, CREATOR, LAST_FILE }, { LAST_TASK, LAST_FILE, CREATOR },
		{ LAST_FILE, CREATOR, LAST_TASK }, { LAST_FILE, LAST_TASK, CREATOR },
	};
	long before = pt_file_kib("/proc/meminfo", "MemAvailable:"), references;
	size_t i, tries;
	int fd = pt_open();

	references = module_references();
	for (i = 0; i < 2 * PT_ARRAY_SIZE(orders); i++) {
		end_in_order(_metadata, orders[i / 2], i % 2);
		EXPECT_EQ(0, pt_raw_spaces_left(fd)) TH_LOG("round %zu", i);
	}
	for (tries = 0; tries < 100; tries++, usleep(50000))
		if (pt_file_kib("/proc/meminfo", "MemAvailable:") > before - (MUCH >> 10))
			break;
	EXPECT_GT(100, tries);
	for (tries = 0; tries < 100 && module_references() > references; tries++)
		usleep(50000);
	EXPECT_EQ(references, module_references());
	close(fd);
}

PT_MAIN()
