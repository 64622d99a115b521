// SPDX-License-Identifier: GPL-2.0-only
/*
 * The exec of a task whose rights another thread changes just then: the program is in the space
 * only with the rights that the task had before.
 */
#define _GNU_SOURCE
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "pvas_test.h"

#define LIBRARY_SIGNAL	33	/* with it the user backend ends threads: see libpvas/user/stay.h */
#define ROUNDS		12	/* of which some hit the moment */

/* The lines of the thread's status that make its rights */
static const char *rights(void)
{
	static const char *const names[] = { "Groups:", "CapEff:", "CapPrm:", "Seccomp_filters:" };
	static char text[8192];
	char line[4096];
	FILE *f = fopen("/proc/thread-self/status", "r");
	size_t i;

	*text = 0;
	while (f && fgets(line, sizeof(line), f))
		for (i = 0; i < PT_ARRAY_SIZE(names); i++)
			if (!strncmp(line, names[i], strlen(names[i])))
				strcat(text, line);
	if (f)
		fclose(f);
	return text;
}

/* The variable has those before. */
TASK(check_rights)
{
	if (pvas_task_get_index() > 0)
		CHECK_EQ(0, strcmp(getenv("RIGHTS"), rights()));
}

static void block_library_signal(int how)
{
	unsigned long set = 1UL << (LIBRARY_SIGNAL - 1);

	CHECK_EQ(0, syscall(SYS_rt_sigprocmask, how, &set, NULL, 8));
}

static int is_pending(void)
{
	unsigned long set = 0;

	syscall(SYS_rt_sigpending, &set, 8);
	return set >> (LIBRARY_SIGNAL - 1) & 1;
}

static void install_filter(unsigned int flags)
{
	struct sock_filter allow = { .code = BPF_RET | BPF_K, .k = SECCOMP_RET_ALLOW };
	struct sock_fprog program = { 1, &allow };

	CHECK_EQ(0, prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	CHECK_EQ(0, syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program));
}

/* ---- all threads ---- */

/* The exec waits for this thread, which then gives all a filter. */
static void *confine_all(void *arg)
{
	block_library_signal(SIG_BLOCK);
	*(volatile int *)arg = 1;
	usleep(300000);
	install_filter(SECCOMP_FILTER_FLAG_TSYNC);
	block_library_signal(SIG_UNBLOCK);
	return pt_idle_thread(NULL);
}

TASK(exec_confined)
{
	volatile int begun = 0;
	pthread_t t;

	setenv("RIGHTS", rights(), 1);
	CHECK_EQ(0, pthread_create(&t, NULL, confine_all, (void *)&begun));
	while (!begun)
		usleep(1000);
	pt_exec_as("check_rights", NULL);
}

/* by a filter for all threads */
PVAS_TEST(by_another_thread)
{
	EXPECT_EQ(0, pt_run_task("exec_confined"));
}

/* ---- the first thread ---- */

static void drop_groups(void)
{
	gid_t group = 4242;

	/* glibc's function would do it in all threads. */
	syscall(SYS_setgroups, 1, &group);
}

static void drop_capabilities(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct caps[2];

	CHECK_EQ(0, syscall(SYS_capget, &head, caps));
	caps[0].effective = caps[1].effective = 0;
	CHECK_EQ(0, syscall(SYS_capset, &head, caps));
}

static void change(const char *what)
{
	if (*what == 'f')
		install_filter(0);
	else if (*what == 'g')
		drop_groups();
	else
		drop_capabilities();
}

static void *exec_by_thread(void *arg)
{
	usleep(2000 + getpid() * 97 % 3000);
	setenv("RIGHTS", rights(), 1);
	pt_exec_as("check_rights", NULL);
	return arg;
}

/*
 * The first thread blocks the signal for short, so as to be reachable when the exec begins, and
 * not when it is called.
 */
TASK(exec_beside_change)
{
	int changed = 0, i;
	pthread_t t;

	CHECK_EQ(0, pthread_create(&t, NULL, exec_by_thread, NULL));
	for (;;) {
		block_library_signal(SIG_BLOCK);
		for (i = 0; i < 6 && !changed; i++) {
			usleep(100);
			if (is_pending()) {
				change(getenv("CHANGE"));
				changed = 1;
			}
		}
		block_library_signal(SIG_UNBLOCK);
		for (i = 0; i < 3; i++)
			usleep(100);
	}
}

/* ... or by what the first thread, which goes on as the program, does to itself */
PVAS_TEST(by_the_first_thread)
{
	static const char *const what[] = { "filter", "groups", "capabilities" };
	size_t i;

	for (i = 0; i < ROUNDS * PT_ARRAY_SIZE(what); i++) {
		setenv("CHANGE", what[i / ROUNDS], 1);
		ASSERT_EQ(0, pt_run_task("exec_beside_change")) TH_LOG("%s", what[i / ROUNDS]);
	}
}

/* ---- limits ---- */

/* More than that is mapped in the mm, but not by the program. */
TASK(exec_with_limit)
{
	struct rlimit limit;

	CHECK_EQ(0, getrlimit(atoi(pt_args[0]), &limit));
	limit.rlim_cur = 400UL << 20;
	CHECK_EQ(0, setrlimit(atoi(pt_args[0]), &limit));
	execl("/bin/true", "true", (char *)NULL);
	CHECK_EQ(0, errno);
}

TASK(map_and_say)
{
	CHECK(mmap(NULL, 2UL << 30, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) != MAP_FAILED);
	pt_say("r");
	pause();
}

static int run_with_limit(struct pvas_space *space, const char *limit)
{
	char *argv[] = { (char *)pt_self(), "--task", "exec_with_limit", (char *)limit, NULL };
	pid_t pid;
	int ret = pvas_task_spawn(space, 1, argv[0], argv, environ, NULL, &pid);

	return ret < 0 ? ret : pt_wait(pid);
}

/* a limit of memory that the task has set does not count what its peers have */
PVAS_TEST(by_limits)
{
	struct pvas_space *space;
	int ready[2];
	pid_t pid;

	PT_NEED_USER("the module counts the peers' memory");
	space = PT_SPACE();
	ASSERT_EQ(0, pipe(ready));
	pid = pt_start_task_fd(space, 2, "map_and_say", ready[1]);
	ASSERT_LT(0, pid);
	ASSERT_EQ('r', pt_hear(ready[0]));
	EXPECT_EQ(0, run_with_limit(space, "2"));	/* RLIMIT_DATA */
	EXPECT_EQ(0, run_with_limit(space, "9"));	/* RLIMIT_AS */
	pt_kill(pid);
	pvas_space_destroy(space);
}

/* ---- a control group ---- */

TASK(exec_in_group)
{
	CHECK_EQ(0, pt_write_file(getenv("GROUP"), pt_number(getpid())));
	pt_exec_as("check_outside_if_user", NULL);
}

/* memory would be charged to the launcher's group, whatever the task's allows */
PVAS_TEST(by_group)
{
	static const char *const roots[] = { "/sys/fs/cgroup/memory", "/sys/fs/cgroup" };
	char dir[128], file[160];
	size_t i;

	for (i = 0; i < PT_ARRAY_SIZE(roots); i++) {
		snprintf(dir, sizeof(dir), "%s/pvas-test-%d", roots[i], getpid());
		snprintf(file, sizeof(file), "%s/cgroup.procs", dir);
		if (!mkdir(dir, 0755) && !access(file, W_OK))
			break;
		rmdir(dir);
	}
	if (i == PT_ARRAY_SIZE(roots))
		SKIP(return, "no control group can be made");
	setenv("GROUP", file, 1);
	EXPECT_EQ(0, pt_run_task("exec_in_group"));
	EXPECT_EQ(0, rmdir(dir));
}

PT_MAIN()
