// SPDX-License-Identifier: GPL-2.0-only
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
#include <sys/rseq.h>
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

/*
 * KCSAN's reports are passed over: most are of the kernel's own races, and vm/run, who has
 * the whole log, knows which are not.
 */
static bool pt_is_complaint(const char *line, bool *race)
{
	size_t i;

	if (strstr(line, "BUG: KCSAN:"))
		*race = true;
	else if (strstr(line, "======"))
		*race = false;
	for (i = 0; !*race && i < PT_ARRAY_SIZE(complaints); i++)
		if (strstr(line, complaints[i]))
			return true;
	return false;
}

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
	bool race = false;
	int found = 0;
	ssize_t n;

	if (fd < 0)
		return 0;
	while ((n = read(fd, line, sizeof(line) - 1)) > 0 || (n < 0 && errno == EPIPE)) {
		if (n < 0)
			continue;
		line[n] = '\0';
		if (!pt_is_complaint(line, &race))
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
 * pvas_start; the index is at offset 12. It looks every two milliseconds: no
 * memory is shared with the test, which writes by /proc/PID/mem.
 *
 * pt_make does one call after the other, the slots lie in a row from %rdi on.
 */
_Static_assert(offsetof(struct pvas_start, index) == 12, "the stub reads it there");
_Static_assert(sizeof(struct pt_slot) == 128, "the stub multiplies by it");
_Static_assert(offsetof(struct pt_slot, ret) == 64, "the stub stores there");
__asm__(".pushsection .rodata\n"
	"	.globl pt_stub, pt_stub_end, pt_make\n"
	"pt_stub:\n"
	"	mov 12(%rdi), %r15d\n"
	"	shl $7, %r15\n"
	"	add $0x10100000, %r15\n"
	"1:	mov (%r15), %edx\n"
	"	cmp $1, %edx\n"
	"	je 2f\n"
	"	mov $35, %eax\n"	/* nanosleep */
	"	lea 9f(%rip), %rdi\n"
	"	xor %esi, %esi\n"
	"	syscall\n"
	"	jmp 1b\n"
	"2:	call 8f\n"
	"	movl $2, (%r15)\n"
	"	jmp 1b\n"
	"pt_make:\n"
	"	mov %rdi, %r15\n"
	"3:	call 8f\n"
	"	add $128, %r15\n"
	"	jmp 3b\n"
	"8:	mov 8(%r15), %rax\n"
	"	mov 16(%r15), %rdi\n"
	"	mov 24(%r15), %rsi\n"
	"	mov 32(%r15), %rdx\n"
	"	mov 40(%r15), %r10\n"
	"	mov 48(%r15), %r8\n"
	"	mov 56(%r15), %r9\n"
	"	syscall\n"
	"	mov %rax, 64(%r15)\n"
	"	ret\n"
	"	.balign 8\n"
	"9:	.quad 0, 2000000\n"
	"pt_stub_end:\n"
	".popsection\n");
extern const char pt_stub[], pt_stub_end[], pt_make[];

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

#define TABLE_LEN	(PT_TABLE_ENTRIES * sizeof(struct pvas_part))
#define SLOTS_LEN	(PT_SLOTS * sizeof(struct pt_slot))	/* two pages */
#define STACK_AT	(PT_TABLE_AT + TABLE_LEN + 0x10000UL)	/* of the creator's last steps */
#define STACK_LEN	4096UL

/* Where things are in the creator's PT_DATA_AT. */
struct making {
	struct pvas_create create;
	struct pvas_create first;
	char key[PVAS_KEY_MAX];
	char nth_text[16], nth_left[16];
	char go;
	struct pt_slot step[64];
};

static void *map_at(unsigned long at, size_t len)
{
	void *p = mmap((void *)at, len, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

static void add_step(struct making *m, unsigned int *n, long nr, long a, long b, long c, long d)
{
	struct pt_slot *slot = &m->step[(*n)++];

	*slot = (struct pt_slot){ .nr = nr, .args = { a, b, c, d } };
}

static bool is_kept(const struct pt_raw *raw, const char *line, unsigned long lo)
{
	return strstr(line, "[vdso]") || strstr(line, "[vvar") || strstr(line, "[vsyscall]") ||
	       (lo >= PT_STUB_AT && lo < PT_STUB_AT + 4096) ||
	       (lo >= PT_SLOTS_AT && lo < PT_DATA_AT + PT_DATA_LEN) ||
	       (lo >= PT_TABLE_AT && lo < STACK_AT + STACK_LEN) ||
	       (raw->user && lo == (unsigned long)raw->user) || (raw->keep && lo == raw->keep);
}

/* A space is to hold nothing else: unmap what lies between what it keeps. */
static void add_unmaps(const struct pt_raw *raw, struct making *m, unsigned int *n)
{
	unsigned long lo, hi, from = 4096;
	FILE *f = fopen("/proc/self/maps", "re");
	char line[512];

	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%lx-%lx", &lo, &hi) != 2 || !is_kept(raw, line, lo))
			continue;
		if (lo > from && lo < 1UL << 47)
			add_step(m, n, SYS_munmap, from, lo - from, 0, 0);
		if (lo < 1UL << 47)
			from = hi;
	}
	add_step(m, n, SYS_munmap, from, (1UL << 47) - 4096 - from, 0, 0);
}

static int creator(struct pt_raw *raw, int answer, int go)
{
	char *stub = map_at(PT_STUB_AT, 4096);
	struct making *m = map_at(PT_DATA_AT, PT_DATA_LEN);
	unsigned int n = 0;
	size_t i;
	int err;

	if (!stub || !m || !map_at(PT_SLOTS_AT, SLOTS_LEN) ||
	    !map_at(PT_TABLE_AT, TABLE_LEN) || !map_at(STACK_AT, STACK_LEN))
		return -ENOTSUP;
	memcpy(stub, pt_stub, pt_stub_end - pt_stub);
	mprotect(stub, 4096, PROT_READ | PROT_EXEC);
	m->create = raw->create;
	if (m->create.key && !(m->create.key >> 47) && m->create.key_len <= sizeof(m->key))
		m->create.key = (uint64_t)memcpy(m->key, (void *)m->create.key, m->create.key_len);
	if (raw->user)
		memcpy(raw->user, &raw->create, sizeof(raw->create));
	if (raw->user)
		mprotect(raw->user, 4096, PROT_READ);
	err = raw->prepare ? raw->prepare(raw->prepare_arg) : 0;
	if (err)
		return err;
	if (!raw->as_is) {
		/* The kernel writes there when it likes. */
		syscall(SYS_rseq, (char *)__builtin_thread_pointer() + __rseq_offset, 32,
			RSEQ_FLAG_UNREGISTER, RSEQ_SIG);
		add_unmaps(raw, m, &n);
	}
	if (raw->first) {
		m->first = raw->first->create;
		add_step(m, &n, SYS_ioctl, raw->first->fd, PVAS_IOC_CREATE, (long)&m->first, 0);
	}
	if (raw->nth_fd) {
		strcpy(m->nth_text, raw->nth_text);
		add_step(m, &n, SYS_pwrite64, raw->nth_fd, (long)m->nth_text,
			 strlen(m->nth_text), 0);
	}
	add_step(m, &n, SYS_ioctl, raw->fd, PVAS_IOC_CREATE,
		 (long)(raw->user ? raw->user : &m->create), 0);
	err = n - 1;
	if (raw->nth_fd) {
		add_step(m, &n, SYS_pread64, raw->nth_fd, (long)m->nth_left, 15, 0);
		add_step(m, &n, SYS_pwrite64, raw->nth_fd, (long)"0", 1, 0);
		m->step[n - 1].args[1] = (long)strcpy(&m->nth_text[14], "0");
	}
	m->step[62].nr = err;
	m->step[62].ret = n;
	for (i = 0; i < raw->n_after; i++)
		m->step[n++] = raw->after[i];
	add_step(m, &n, SYS_write, answer, (long)m, sizeof(*m), 0);
	add_step(m, &n, SYS_read, go, (long)&m->go, 1, 0);
	add_step(m, &n, SYS_exit_group, 0, 0, 0, 0);
	__asm__ volatile("movq %0, %%rsp\n\tjmpq *%1" : :
			 "r"(STACK_AT + STACK_LEN), "r"(PT_STUB_AT + (pt_make - pt_stub)),
			 "D"(m->step) : "memory");
	__builtin_unreachable();
}

static int read_all(int fd, void *buf, size_t len)
{
	size_t have = 0;
	ssize_t n;

	while (have < len && (n = read(fd, (char *)buf + have, len - have)) > 0)
		have += n;
	return have == len ? 0 : -ECHILD;
}

/* Of the space: of all that its mm has, for as long as it lives. */
static int open_mem(pid_t pid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/mem", pid);
	return open(path, O_RDWR | O_CLOEXEC);
}

static int creator_says(struct pt_raw *raw, pid_t pid, int answer)
{
	struct making m;
	size_t i;
	int err;

	memset(&m, 0, sizeof(m));
	/* An error before its last steps comes alone. */
	if (read_all(answer, &m, sizeof(m)))
		return m.create.size == -1U ? (int)m.create.flags : -ECHILD;
	err = m.step[m.step[62].nr].ret;
	memcpy(raw->nth_left, m.nth_left, sizeof(raw->nth_left));
	for (i = 0; i < raw->n_after; i++)
		raw->after_ret[i] = m.step[m.step[62].ret + i].ret;
	if (err)
		return err;
	raw->create = m.create;
	raw->mem = open_mem(pid);
	raw->data = calloc(1, PT_DATA_LEN);
	return raw->mem < 0 || !raw->data ? -ENOTSUP : 0;
}

int pt_raw_create(struct pt_raw *raw)
{
	struct pvas_create failed = { .size = -1U };
	int answer[2], go[2], err;
	pid_t pid;

	if (pipe2(answer, O_CLOEXEC) || pipe2(go, O_CLOEXEC))
		return -errno;
	pid = fork();
	if (!pid) {
		close(go[1]);
		failed.flags = creator(raw, answer[1], go[0]);
		_exit(write(answer[1], &failed, sizeof(failed)) != sizeof(failed));
	}
	close(answer[1]);
	close(go[0]);
	err = creator_says(raw, pid, answer[0]);
	close(answer[0]);
	close(go[1]);
	pt_wait(pid);
	return err;
}

int pt_raw_make(struct pt_raw *raw)
{
	pt_raw_init(raw, PVAS_SHIFT_DEFAULT);
	return pt_raw_create(raw);
}

void pt_raw_close(struct pt_raw *raw)
{
	close(raw->fd);
	if (raw->mem > 0)
		close(raw->mem);
	free(raw->data);
	memset(raw, 0, sizeof(*raw));
	raw->fd = -1;
}

static bool get(const struct pt_raw *raw, unsigned long at, void *buf, size_t len)
{
	return pread(raw->mem, buf, len, at) == (ssize_t)len;
}

static bool put(const struct pt_raw *raw, unsigned long at, const void *buf, size_t len)
{
	return pwrite(raw->mem, buf, len, at) == (ssize_t)len;
}

struct pvas_part pt_raw_part(const struct pt_raw *raw, unsigned int index)
{
	struct pvas_part part = { .state = -1U };

	get(raw, PT_TABLE_AT + index * sizeof(part), &part, sizeof(part));
	return part;
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

	pt_raw_forget(raw, index);
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

#define CALL_TIMEOUT_MS 20000

static unsigned long slot_at(unsigned int index)
{
	return PT_SLOTS_AT + index * sizeof(struct pt_slot);
}

void pt_raw_forget(struct pt_raw *raw, unsigned int index)
{
	static const struct pt_slot idle;

	if (index < PT_SLOTS)
		put(raw, slot_at(index), &idle, sizeof(idle));
}

void pt_raw_ask(struct pt_raw *raw, unsigned int index, long nr, const long args[6])
{
	struct pt_slot slot = { .nr = nr };
	uint32_t asked = 1;

	memcpy(slot.args, args, sizeof(slot.args));
	put(raw, PT_DATA_AT, raw->data, PT_DATA_LEN);
	put(raw, slot_at(index), &slot, sizeof(slot));
	/* Last, for now the puppet looks at the rest. */
	put(raw, slot_at(index), &asked, sizeof(asked));
}

bool pt_raw_answer(struct pt_raw *raw, unsigned int index, long *ret)
{
	struct pt_slot slot;

	if (!get(raw, slot_at(index), &slot, sizeof(slot)) || slot.state != 2)
		return false;
	*ret = slot.ret;
	return get(raw, PT_DATA_AT, raw->data, PT_DATA_LEN);
}

long pt_raw_call_args(struct pt_raw *raw, unsigned int index, long nr, const long args[6])
{
	long limit = pt_now_ms() + CALL_TIMEOUT_MS, ret;

	pt_raw_ask(raw, index, nr, args);
	while (!pt_raw_answer(raw, index, &ret)) {
		if (pt_now_ms() > limit)
			return -ETIMEDOUT;
		usleep(1000);
	}
	return ret;
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
