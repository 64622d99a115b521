// SPDX-License-Identifier: GPL-2.0
/* What the test programs share: see pvas_test.h. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "pvas_test.h"

#define NOBODY 65534

/* ---- anything ---- */

int pt_backend(void)
{
	const char *name = getenv("PVAS_TEST_BACKEND");

	return name && !strcmp(name, "user") ? PVAS_BACKEND_USER : PVAS_BACKEND_KERNEL;
}

bool pt_have_device(const char **why)
{
	int fd = open("/dev/pvas", O_RDWR | O_CLOEXEC);

	if (fd < 0) {
		*why = errno == ENOENT ? "no /dev/pvas: the module is not loaded" :
					 "/dev/pvas can't be opened";
		return false;
	}
	close(fd);
	return true;
}

int pt_open(void)
{
	return open("/dev/pvas", O_RDWR | O_CLOEXEC);
}

long pt_ioctl(int fd, unsigned long cmd, void *arg)
{
	long ret = ioctl(fd, cmd, arg);

	return ret < 0 ? -errno : ret;
}

int pt_become(uid_t uid)
{
	return setgroups(0, NULL) || setresgid(uid, uid, uid) || setresuid(uid, uid, uid) ?
	       -errno : 0;
}

int pt_dumpable(void)
{
	return prctl(PR_SET_DUMPABLE, 1) ? -errno : 0;
}

static int in_child_as(int (*fn)(void *arg), void *arg, uid_t uid)
{
	int fds[2], ret = -ECHILD;
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC))
		return -errno;
	pid = fork();
	if (!pid) {
		if (uid && pt_become(uid))
			_exit(1);
		ret = fn(arg);
		_exit(write(fds[1], &ret, sizeof(ret)) != sizeof(ret));
	}
	close(fds[1]);
	if (read(fds[0], &ret, sizeof(ret)) != sizeof(ret))
		ret = -ECHILD;
	close(fds[0]);
	pt_wait(pid);
	return ret;
}

int pt_in_child(int (*fn)(void *arg), void *arg)
{
	return in_child_as(fn, arg, 0);
}

int pt_as_nobody(int (*fn)(void *arg), void *arg)
{
	return in_child_as(fn, arg, NOBODY);
}

int pt_wait(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, __WALL) < 0)
		if (errno != EINTR)
			return -errno;
	return WIFSIGNALED(status) ? 256 + WTERMSIG(status) : WEXITSTATUS(status);
}

int pt_read_file(const char *path, char *buf, size_t len)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return -errno;
	n = read(fd, buf, len - 1);
	close(fd);
	if (n < 0)
		return -errno;
	buf[n] = '\0';
	buf[strcspn(buf, "\n")] = '\0';
	return 0;
}

int pt_write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	int err = 0;

	if (fd < 0)
		return -errno;
	if (write(fd, text, strlen(text)) < 0)
		err = -errno;
	close(fd);
	return err;
}

long pt_now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

long pt_ia32(long nr, long a, long b, long c, long d, long e, long f)
{
	long ret;

	/* %ebp is the sixth argument; r8 to r11 are lost in some kernels. */
	__asm__ volatile("push %%rbp\n\tmov %7, %%rbp\n\tint $0x80\n\tpop %%rbp"
			 : "=a"(ret)
			 : "a"(nr), "b"(a), "c"(b), "d"(c), "S"(d), "D"(e), "r"(f)
			 : "r8", "r9", "r10", "r11", "memory");
	return (int)ret;
}

static char tmpdir[64];

void pt_remove_tmpdir(void)
{
	char cmd[128];

	if (!tmpdir[0])
		return;
	snprintf(cmd, sizeof(cmd), "rm -rf %s", tmpdir);
	if (system(cmd))
		fprintf(stderr, "# can't remove %s\n", tmpdir);
	tmpdir[0] = '\0';
}

/* Short, for it must fit where a program has /lib64/ld-linux-x86-64.so.2. */
const char *pt_tmpdir(void)
{
	if (tmpdir[0])
		return tmpdir;
	strcpy(tmpdir, "/tmp/pvXXXXXX");
	if (!mkdtemp(tmpdir) || chmod(tmpdir, 0777)) {
		perror("# mkdtemp");
		exit(1);
	}
	return tmpdir;
}

unsigned int pt_timeout(void)
{
	const char *s = getenv("TIMEOUT");

	return s && atoi(s) > 0 ? atoi(s) : 60;
}

/* ---- the kernel log ---- */

static const char * const complaints[] = {
	"WARNING:", "BUG:", "BUG ", "Oops", "general protection fault, ", "suspicious RCU",
	"circular locking", "KASAN", "UBSAN", "INFO: lockdep", "blocked for more than", "stall",
	"refcount_t", "list_add", "list_del", "Bad page", "bad rss", "can't be unmapped",
};

int pt_kmsg_mark(const char *name)
{
	char mark[128];
	int fd = open("/dev/kmsg", O_RDWR | O_NONBLOCK | O_CLOEXEC);

	if (fd < 0)
		return -1;
	lseek(fd, 0, SEEK_END);
	snprintf(mark, sizeof(mark), "pvas-test: %s\n", name);
	if (write(fd, mark, strlen(mark)) < 0)
		fprintf(stderr, "# can't mark the kernel log\n");
	return fd;
}

int pt_kmsg_complaints(int fd)
{
	char line[2048];
	int found = 0;
	size_t i;
	ssize_t n;

	if (fd < 0)
		return 0;
	while ((n = read(fd, line, sizeof(line) - 1)) > 0 || (n < 0 && errno == EPIPE)) {
		if (n < 0)
			continue;
		line[n] = '\0';
		for (i = 0; i < PT_ARRAY_SIZE(complaints) && !strstr(line, complaints[i]); i++)
			;
		if (i == PT_ARRAY_SIZE(complaints))
			continue;
		fprintf(stderr, "# kernel: %s", line);
		found++;
	}
	close(fd);
	return found;
}

/* ---- raw ---- */

/*
 * The puppet, which is what the spaces here have for a loader: a loop that waits
 * for a system call in its slot, does it and stores the result. %rdi is struct
 * pvas_start; the index is at offset 12.
 */
_Static_assert(offsetof(struct pvas_start, index) == 12, "the stub reads it there");
_Static_assert(sizeof(struct pt_slot) == 128, "the stub multiplies by it");
_Static_assert(offsetof(struct pt_slot, ret) == 64, "the stub stores there");
__asm__(".pushsection .rodata\n"
	"	.globl pt_stub, pt_stub_end\n"
	"pt_stub:\n"
	"	mov 12(%rdi), %r15d\n"
	"	shl $7, %r15\n"
	"	add $0x10100000, %r15\n"
	"1:	mov (%r15), %edx\n"
	"	cmp $1, %edx\n"
	"	je 2f\n"
	"	mov $202, %eax\n"	/* futex(slot, FUTEX_WAIT, state, NULL) */
	"	mov %r15, %rdi\n"
	"	xor %esi, %esi\n"
	"	xor %r10d, %r10d\n"
	"	syscall\n"
	"	jmp 1b\n"
	"2:	mov 8(%r15), %rax\n"
	"	mov 16(%r15), %rdi\n"
	"	mov 24(%r15), %rsi\n"
	"	mov 32(%r15), %rdx\n"
	"	mov 40(%r15), %r10\n"
	"	mov 48(%r15), %r8\n"
	"	mov 56(%r15), %r9\n"
	"	syscall\n"
	"	mov %rax, 64(%r15)\n"
	"	movl $2, (%r15)\n"
	"	mov $202, %eax\n"	/* futex(slot, FUTEX_WAKE, 1) */
	"	mov %r15, %rdi\n"
	"	mov $1, %esi\n"
	"	mov $1, %edx\n"
	"	syscall\n"
	"	jmp 1b\n"
	"pt_stub_end:\n"
	".popsection\n");
extern const char pt_stub[], pt_stub_end[];

void pt_raw_init(struct pt_raw *raw, unsigned int shift)
{
	memset(raw, 0, sizeof(*raw));
	raw->fd = pt_open();
	raw->create.size = sizeof(raw->create);
	raw->create.shift = shift;
	raw->create.loader = PT_STUB_AT;
	raw->create.table = PT_TABLE_AT;
	raw->create.table_entries = PT_TABLE_ENTRIES;
	raw->create.flags = PVAS_CREATE_KILL_ON_CLOSE;
}

static void *map_at(unsigned long at, size_t len, int memfd, off_t off)
{
	void *p = mmap((void *)at, len, PROT_READ | PROT_WRITE,
		       MAP_SHARED | (at ? MAP_FIXED_NOREPLACE : 0), memfd, off);

	return p == MAP_FAILED ? NULL : p;
}

static size_t table_length(void)
{
	return PT_TABLE_ENTRIES * sizeof(struct pvas_part);
}

#define SLOTS_LEN	(PT_SLOTS * sizeof(struct pt_slot))	/* two pages */
#define MEMFD_LEN	(SLOTS_LEN + PT_DATA_LEN + table_length())

static int creator(int memfd, struct pt_raw *raw)
{
	void *stub = mmap((void *)PT_STUB_AT, 4096, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	long err;

	if (stub == MAP_FAILED || !map_at(PT_SLOTS_AT, SLOTS_LEN, memfd, 0) ||
	    !map_at(PT_DATA_AT, PT_DATA_LEN, memfd, SLOTS_LEN) ||
	    !map_at(PT_TABLE_AT, table_length(), memfd, SLOTS_LEN + PT_DATA_LEN))
		return -ENOTSUP;
	memcpy(stub, pt_stub, pt_stub_end - pt_stub);
	mprotect(stub, 4096, PROT_READ | PROT_EXEC);
	if (raw->prepare) {
		err = raw->prepare(raw->prepare_arg);
		if (err)
			return err;
	}
	err = pt_ioctl(raw->fd, PVAS_IOC_CREATE, raw->user ? raw->user : &raw->create);
	if (raw->finish)
		raw->finish(raw->prepare_arg);
	return err;
}

int pt_raw_create(struct pt_raw *raw)
{
	struct { int err; struct pvas_create create; } answer = { .err = -ECHILD };
	int fds[2], memfd;
	pid_t pid;

	memfd = memfd_create("puppets", MFD_CLOEXEC);
	if (memfd < 0 || ftruncate(memfd, MEMFD_LEN) || pipe2(fds, O_CLOEXEC))
		return -errno;
	pid = fork();
	if (!pid) {
		answer.err = creator(memfd, raw);
		answer.create = raw->create;
		_exit(write(fds[1], &answer, sizeof(answer)) != sizeof(answer));
	}
	close(fds[1]);
	if (read(fds[0], &answer, sizeof(answer)) != sizeof(answer))
		answer.err = -ECHILD;
	close(fds[0]);
	pt_wait(pid);
	if (!answer.err) {
		raw->create = answer.create;
		raw->slots = map_at(0, SLOTS_LEN, memfd, 0);
		raw->data = map_at(0, PT_DATA_LEN, memfd, SLOTS_LEN);
		raw->table = map_at(0, table_length(), memfd, SLOTS_LEN + PT_DATA_LEN);
	}
	close(memfd);
	return answer.err;
}

int pt_raw_make(struct pt_raw *raw)
{
	pt_raw_init(raw, PVAS_SHIFT_DEFAULT);
	return pt_raw_create(raw);
}

void pt_raw_close(struct pt_raw *raw)
{
	close(raw->fd);
	if (raw->slots)
		munmap(raw->slots, SLOTS_LEN);
	if (raw->data)
		munmap(raw->data, PT_DATA_LEN);
	if (raw->table)
		munmap(raw->table, table_length());
	memset(raw, 0, sizeof(*raw));
	raw->fd = -1;
}

int pt_raw_arm(int fd, uint32_t id, uint32_t index, uint32_t flags)
{
	struct pvas_spawn spawn = {
		.size = sizeof(spawn), .id = id, .index = index, .flags = flags,
	};

	return pt_ioctl(fd, PVAS_IOC_SPAWN, &spawn);
}

pid_t pt_raw_spawn_by(struct pt_raw *raw, unsigned int index, int (*exec)(void *arg), void *arg)
{
	int fds[2], err = 0;
	pid_t pid;

	if (index < PT_SLOTS)
		raw->slots[index].state = 0;
	if (pipe2(fds, O_CLOEXEC))
		return -errno;
	pid = fork();
	if (!pid) {
		err = pt_raw_arm(raw->fd, 0, index, 0);
		if (!err)
			err = exec(arg);
		_exit(write(fds[1], &err, sizeof(err)) != sizeof(err));
	}
	close(fds[1]);
	if (read(fds[0], &err, sizeof(err)) != sizeof(err))
		err = 0;
	close(fds[0]);
	if (err)
		pt_wait(pid);
	return err ? err : pid;
}

static int exec_true(void __attribute__((unused)) *arg)
{
	execl("/bin/true", "puppet", (char *)NULL);
	return -errno;
}

pid_t pt_raw_spawn(struct pt_raw *raw, unsigned int index)
{
	return pt_raw_spawn_by(raw, index, exec_true, NULL);
}

#define CALL_TIMEOUT_S 20

long pt_raw_call_args(struct pt_raw *raw, unsigned int index, long nr, const long args[6])
{
	struct pt_slot *slot = &raw->slots[index];
	struct timespec limit = { .tv_sec = 1 };
	int i;

	slot->nr = nr;
	for (i = 0; i < 6; i++)
		slot->args[i] = args[i];
	__atomic_store_n(&slot->state, 1, __ATOMIC_SEQ_CST);
	syscall(SYS_futex, &slot->state, FUTEX_WAKE, 1, NULL, NULL, 0);
	for (i = 0; i < CALL_TIMEOUT_S; i++) {
		while (__atomic_load_n(&slot->state, __ATOMIC_SEQ_CST) == 1)
			if (syscall(SYS_futex, &slot->state, FUTEX_WAIT, 1, &limit, NULL, 0) &&
			    errno == ETIMEDOUT)
				break;
		if (__atomic_load_n(&slot->state, __ATOMIC_SEQ_CST) == 2)
			return slot->ret;
	}
	return -ETIMEDOUT;
}

long pt_raw_spawn_open(struct pt_raw *raw, unsigned int index, pid_t *pid)
{
	*pid = pt_raw_spawn(raw, index);
	if (*pid < 0)
		return *pid;
	strcpy(raw->data, "/dev/pvas");
	return pt_raw_call(raw, index, SYS_openat, AT_FDCWD, PT_DATA_AT, O_RDWR);
}

void pt_kill(pid_t pid)
{
	if (pid <= 0)
		return;
	kill(pid, SIGKILL);
	pt_wait(pid);
}

int pt_raw_count(int fd)
{
	struct pvas_query query = { .size = sizeof(query) };
	long err = pt_ioctl(fd, PVAS_IOC_QUERY, &query);

	return err ? (int)err : (int)query.count;
}

int pt_raw_spaces(int fd)
{
	struct pvas_info info = { .size = sizeof(info) };
	long err = pt_ioctl(fd, PVAS_IOC_INFO, &info);

	return err ? (int)err : (int)info.spaces;
}

int pt_raw_query(void *arg)
{
	const struct pt_raw *raw = arg;
	struct pvas_query query = { .size = sizeof(query), .id = raw->create.id };

	return pt_ioctl(pt_open(), PVAS_IOC_QUERY, &query);
}

/* ---- functions that run in tasks ---- */

static struct pt_task *tasks;
int pt_failed;
char **pt_args;

void pt_register(struct pt_task *task)
{
	task->next = tasks;
	tasks = task;
}

void pt_check_failed(const char *file, int line, const char *what, long got, long want)
{
	pt_failed++;
	fprintf(stderr, "# %s:%d: %s: got %ld, want %ld\n", file, line, what, got, want);
}

static int run_here(const char *name)
{
	struct pt_task *task;

	for (task = tasks; task; task = task->next)
		if (!strcmp(task->name, name))
			return task->fn();
	fprintf(stderr, "# no task function %s\n", name);
	return 1;
}

int pt_main(int argc, char **argv, int (*run)(int argc, char **argv))
{
	if (argc >= 3 && !strcmp(argv[1], "--task")) {
		pt_args = argv + 3;
		return run_here(argv[2]);
	}
	return run(argc, argv);
}

const char *pt_self(void)
{
	static char path[PATH_MAX];
	ssize_t n;

	if (!path[0]) {
		n = readlink("/proc/self/exe", path, sizeof(path) - 1);
		path[n < 0 ? 0 : n] = '\0';
	}
	return path;
}

char *const *pt_task_argv(const char *name)
{
	static char *argv[4];

	argv[0] = (char *)pt_self();
	argv[1] = (char *)"--task";
	argv[2] = (char *)name;
	return argv;
}
