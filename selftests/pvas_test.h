/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Shared by the test programs.
 *
 * pt_raw_*  the ABI alone, without libpvas: a space whose loader is a stub of
 *	     ours, and whose tasks are *puppets* that do the system calls they
 *	     are told to
 * pt_*	     tests that need real programs as tasks: through libpvas
 *
 * A test program has TEST()s of the kernel's harness, and TASK()s: functions
 * that run inside a task, started by pt_run_task("name"). Both are in one file,
 * so what is tested and what does it stand together. Some TASK()s are in all:
 * "succeed", "ready_and_pause", "dirty" and more in pvas_task.c.
 */
#ifndef PVAS_TEST_H
#define PVAS_TEST_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include <linux/pvas.h>

#include "clock.h"
#include "pvas.h"

#define PT_ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

/* ---- anything ---- */

/* The backend to test: PVAS_TEST_BACKEND=user, or the kernel's */
int pt_backend(void);
/* Is there a device to test? If not, why. */
bool pt_have_device(const char **why);
/* An own open file of it. */
int pt_open(void);
/* For what is not there before this version, and can't be tried */
bool pt_kernel_before(unsigned int major, unsigned int minor);
/* As userfaultfd(2), from 5.11 on without the right to serve the kernel's own faults */
int pt_userfaultfd(int flags);
/* -errno, or what the call returned */
long pt_ioctl(int fd, unsigned long cmd, void *arg);
/* Runs @fn in a child process; its result, or -ECHILD if it died. */
int pt_in_child(int (*fn)(void *arg), void *arg);
/* As @fn in a child that belongs to nobody:nogroup. */
int pt_as_nobody(int (*fn)(void *arg), void *arg);
/* Sets all of the caller's ids, and has no other groups; 0 or -errno */
int pt_become(uid_t uid);
/* Fit for a space again: who changes its ids is not dumpable. 0 or -errno */
int pt_dumpable(void);
/* Exit status of @pid: 0 to 255, or 256 + the signal. */
int pt_wait(pid_t pid);
/* A file of /proc or /sys, to its first newline; -errno */
int pt_read_file(const char *path, char *buf, size_t len);
/* The first number in a file that comes after this word; -1: it is not there */
long pt_file_kib(const char *path, const char *name);
/* The same of /proc/PID/status; and the memory of the first space in /proc/pvas */
long pt_status_kib(pid_t pid, const char *name);
long pt_resident_kib(void);
int pt_write_file(const char *path, const char *text);
/*
 * Ends a child, which then stands still in its exit, with its memory; 0 or -1. Not even
 * SIGKILL ends it then, but pt_let_exit() does.
 */
int pt_hold_exit(pid_t pid);
void pt_let_exit(pid_t pid);
/* int $0x80: an ia32 system call of this 64-bit process */
long pt_ia32(long nr, long a, long b, long c, long d, long e, long f);
/* A directory to write in, gone when the test ends. */
const char *pt_tmpdir(void);
void pt_remove_tmpdir(void);

/* Marks the kernel log; -1 if it can't be read. */
int pt_kmsg_mark(const char *name);
/* Says what the kernel complained of since, and returns how often. */
int pt_kmsg_complaints(int fd);

/* ---- raw: no libpvas ---- */

#define PT_SLOTS	64	/* puppets that can be talked to: indices below it */
#define PT_STUB_AT	0x10000000UL
#define PT_SLOTS_AT	0x10100000UL
#define PT_DATA_AT	0x10200000UL	/* for arguments of puppets' calls */
#define PT_DATA_LEN	0x10000UL
#define PT_TABLE_AT	0x20000000UL
#define PT_TABLE_ENTRIES 8192U

/* One system call to be done by a puppet. */
struct pt_slot {
	uint32_t state;		/* 0 idle, 1 asked, 2 done */
	uint32_t pad;
	int64_t nr;
	int64_t args[6];
	int64_t ret;
	int64_t fill[7];
};

struct pt_raw {
	int fd;
	int mem;			/* the space's memory, as /proc/PID/mem */
	struct pvas_create create;	/* the request, then the answer */
	char *data;			/* what is at PT_DATA_AT before and after each call */
	int (*prepare)(void *arg);	/* in the creator, before it unmaps all else */
	void *prepare_arg;
	bool as_is;			/* it does not unmap anything */
	uintptr_t keep;			/* nor the area that begins here */
	const struct pt_slot *after;	/* calls it makes then, at most 8, and what they return */
	size_t n_after;
	long *after_ret;
	bool lives;			/* the creator stays until pt_raw_let_go(), */
	pid_t creator;			/* and is this process */
	int go;
	struct pt_raw *first;		/* just before, the creator makes this space */
	void *user;			/* if set: a page for the ioctl's struct, read-only */
	int nth_fd;			/* if set: the creator's fail-nth, set to @nth_text */
	char nth_text[12], nth_left[16];
};

/* A request that will do; then change it. */
void pt_raw_init(struct pt_raw *raw, unsigned int shift);
int pt_raw_create(struct pt_raw *raw);
/* Create with everything at its default; 0 or -errno. */
int pt_raw_make(struct pt_raw *raw);
/* Ends a creator that lives; its exit status, as pt_wait(). */
int pt_raw_let_go(struct pt_raw *raw);
void pt_raw_close(struct pt_raw *raw);
/* A puppet at @index: pid or -errno */
pid_t pt_raw_spawn(struct pt_raw *raw, unsigned int index);
/* The same by an exec of yours, which returns -errno if it fails. */
pid_t pt_raw_spawn_by(struct pt_raw *raw, unsigned int index, int (*exec)(void *arg), void *arg);
/* The result of a system call that the puppet at @index does; -errno as it is. */
long pt_raw_call_args(struct pt_raw *raw, unsigned int index, long nr, const long args[6]);
#define pt_raw_call(raw, index, nr, ...) \
	pt_raw_call_args(raw, index, nr, (const long[6]){ __VA_ARGS__ })
/*
 * The same in two steps: ask, and look for the answer. Forget before somebody else is there. False
 * as long as no process has the space's mm, which then takes nothing from outside.
 */
bool pt_raw_ask(struct pt_raw *raw, unsigned int index, long nr, const long args[6]);
bool pt_raw_answer(struct pt_raw *raw, unsigned int index, long *ret);
void pt_raw_forget(struct pt_raw *raw, unsigned int index);
/* The entry in the partition table of the space header */
struct pvas_part pt_raw_part(const struct pt_raw *raw, unsigned int index);
/* A puppet that opens /dev/pvas: its descriptor or -errno */
long pt_raw_spawn_open(struct pt_raw *raw, unsigned int index, pid_t *pid);
void pt_kill(pid_t pid);
/* SPAWN in the caller */
int pt_raw_arm(int fd, uint32_t id, uint32_t index, uint32_t flags);
/* How many tasks QUERY counts; -errno */
int pt_raw_count(int fd);
/* How many spaces INFO counts; -errno */
int pt_raw_spaces(int fd);
/* As many in the end: one is counted until its memory is freed, a moment after its file. */
int pt_raw_spaces_left(int fd);
/* QUERY by id, with a file of its own: 0 or -errno. @arg is a struct pt_raw. */
int pt_raw_query(void *arg);

/* ---- with libpvas ---- */

struct pt_task {
	const char *name;
	int (*fn)(void);
	struct pt_task *next;
};

void pt_register(struct pt_task *task);
/* Seconds a test may take: $TIMEOUT, or 60 */
unsigned int pt_timeout(void);
/* main() of each test program. */
int pt_main(int argc, char **argv, int (*run)(int argc, char **argv));

/* In a task function: a failure is reported, and counted. */
extern int pt_failed;
void pt_check_failed(const char *file, int line, const char *what, long got, long want);

#define CHECK_EQ(want, expr) do { \
	long want__ = (long)(want), got__ = (long)(expr); \
	if (want__ != got__) \
		pt_check_failed(__FILE__, __LINE__, #expr, got__, want__); \
} while (0)

#define CHECK(expr) do { \
	if (!(expr)) \
		pt_check_failed(__FILE__, __LINE__, #expr, 0, 1); \
} while (0)

/* The expression fails with -1 and this errno. */
#define CHECK_ERR(error, expr) do { \
	errno = 0; \
	long got__ = (long)(expr); \
	int err__ = got__ == -1 ? errno : 0; \
	if (err__ != (error)) \
		pt_check_failed(__FILE__, __LINE__, #expr, err__, (error)); \
} while (0)

/* Defines what runs in a task; TASK_TEST() the test that runs it, too. */
#define TASK(name_) \
	static void task_body_##name_(void); \
	static int task_##name_(void) \
	{ \
		task_body_##name_(); \
		return pt_failed != 0; \
	} \
	static struct pt_task task_object_##name_ = { .name = #name_, .fn = task_##name_ }; \
	static void __attribute__((constructor)) task_register_##name_(void) \
	{ \
		pt_register(&task_object_##name_); \
	} \
	static void task_body_##name_(void)

#define PT_NEED_DEVICE() do { \
	const char *why__; \
	if (pt_backend() == PVAS_BACKEND_KERNEL && !pt_have_device(&why__)) \
		SKIP(return, "%s", why__); \
} while (0)

/* For guarantees that the user backend doesn't give: see doc/backends.md. */
#define PT_NEED_MODULE(why) do { \
	if (pt_backend() != PVAS_BACKEND_KERNEL) \
		SKIP(return, "user backend: " why); \
} while (0)

/* For what the module does otherwise. */
#define PT_NEED_USER(why) do { \
	if (pt_backend() != PVAS_BACKEND_USER) \
		SKIP(return, "module: " why); \
} while (0)

/* As PVAS_TEST(), of the ABI or of a promise that needs the module. */
#define MODULE_TEST(name_, why_) \
	static void module_##name_(struct __test_metadata *_metadata); \
	PVAS_TEST(name_) \
	{ \
		PT_NEED_MODULE(why_); \
		module_##name_(_metadata); \
	} \
	static void module_##name_(struct __test_metadata __attribute__((unused)) *_metadata)

#define PT_NEED_ROOT() do { \
	if (geteuid()) \
		SKIP(return, "must be root"); \
} while (0)

/* Kernels with PREEMPT_RT have none. */
#define PT_NEED_HUGE_PAGES() do { \
	if (access("/sys/kernel/mm/transparent_hugepage", F_OK)) \
		SKIP(return, "no transparent huge pages in this kernel"); \
} while (0)

#define PVAS_TEST(name_) \
	static void body_##name_(struct __test_metadata *_metadata); \
	TEST(name_) \
	{ \
		int kmsg; \
		PT_NEED_DEVICE(); \
		kmsg = pt_kmsg_mark(#name_); \
		body_##name_(_metadata); \
		pt_remove_tmpdir(); \
		EXPECT_EQ(0, pt_kmsg_complaints(kmsg)); \
	} \
	static void body_##name_(struct __test_metadata __attribute__((unused)) *_metadata)

#define TASK_TEST(name_) \
	static void task_body_##name_(void); \
	PVAS_TEST(name_) \
	{ \
		EXPECT_EQ(0, pt_run_task(#name_)); \
	} \
	TASK(name_)

/*
 * A space of the backend to test; the test is over if there is none. The second has
 * partitions of another size.
 */
#define PT_SPACE() PT_SPACE_OF(0)
#define PT_SPACE_OF(partition) ({ \
	struct pvas_space *space__ = NULL; \
	ASSERT_EQ(0, pt_create(&space__, (partition), 0)) TH_LOG("%s", pvas_error_get()); \
	space__; \
})

/* The same for those that are no test: 0 or -errno; @flags are pvas_space_create()'s. */
int pt_create(struct pvas_space **space, uint64_t partition, unsigned int flags);
/* How many spaces the module has; none, if the backend to test is the user's. */
int pt_spaces(void);
/* Are they gone? Waits for up to 5 s. */
bool pt_spaces_gone(void);
/* Exit status of the task function @name, run in a space of its own, or -errno. */
int pt_run_task(const char *name);
/* The same, with an argument. */
int pt_run_task_with(const char *name, const char *arg);
/* The same, with the descriptor of a page of shared memory as its argument. */
int pt_run_task_with_page(const char *name);
/* The same in a given space; pid or -errno. */
pid_t pt_start_task(struct pvas_space *space, unsigned int index, const char *name);
/* The index it got, or -errno; pt_args[] has the numbers of two descriptors. */
int pt_start_task_fds(struct pvas_space *space, unsigned int index, const char *name, int fd0,
		      int fd1, pid_t *pid);
/* As pt_start_task(), with one. */
pid_t pt_start_task_fd(struct pvas_space *space, unsigned int index, const char *name, int fd);
/* The arguments that start a task function. */
char *const *pt_task_argv(const char *name);
/* argv[3...] of a task function */
extern char **pt_args;
/* This program. */
const char *pt_self(void);
/* Of a thread that waits for ever. */
void *pt_idle_thread(void *arg);

/* In a task: one letter to the descriptor in pt_args[0]. */
void pt_say(const char *what);
/* The letter; 0 if there comes none. */
char pt_hear(int fd);

/* In a task: become its function @name, with an argument, which may be NULL. */
void pt_exec_as(const char *name, const char *arg);
/* The arguments for that; good until the next call, as the number */
char *const *pt_argv_as(const char *name, const char *arg);
const char *pt_number(long n);
/* Threads that sleep */
void pt_start_threads(int n);

/* In a task: its partition. */
uintptr_t pt_base(void);
size_t pt_size(void);
bool pt_inside(const void *p, size_t len);

/* Otherwise the harness would allow each test 30 s, on any machine. */
#define PT_HARNESS() \
	static int pt_run_harness(int argc, char **argv) \
	{ \
		struct __fixture_metadata *f; \
		struct __test_metadata *t; \
		for (f = __fixture_list; f; f = f->next) \
			for (t = f->tests; t; t = t->next) \
				t->timeout = pt_timeout(); \
		return test_harness_run(argc, argv); \
	}

#define PT_MAIN() \
	PT_HARNESS() \
	int main(int argc, char **argv) \
	{ \
		return pt_main(argc, argv, pt_run_harness); \
	}

#endif /* PVAS_TEST_H */
