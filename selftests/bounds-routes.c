// SPDX-License-Identifier: GPL-2.0-only
/*
 * Every way to change an mm, tried by a task on what is not its own: a peer's memory, the
 * header, the gaps, beyond the end of user space. Each must be refused, and no mapping, lock
 * or byte outside of its partition may change. doc/mm-routes.md has the ways.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/io_uring.h>
#include <linux/mempolicy.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <linux/userfaultfd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "pvas_test.h"
#include "maps.h"
#include "others.h"

#define HIGH		(1UL << 32)	/* the kernel calls by the lower half */
#define X32		0x40000000UL
#define LEN		(2 * PAGE)

/* The task's own */
static char *own;
static int shm = -1, uffd = -1, uring = -1, tcp = -1;

/* As it is: not one bit of the number is glibc's business. */
static long raw(unsigned long nr, long a, long b, long c, long d, long e, long f)
{
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	long ret;

	__asm__ volatile("syscall" : "=a"(ret)
			 : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return ret;
}

/* ---- by number: each in four forms ---- */

/* T: the target's address, L: its length, O: memory of our own */
enum { T = -1000, L, O, END };

static const struct call {
	const char *name;
	long nr, nr32;
	long args[5];
} calls[] = {
	{ "munmap", SYS_munmap, 91, { T, L } },
	{ "mprotect", SYS_mprotect, 125, { T, L, PROT_NONE } },
	{ "mprotect growsdown", SYS_mprotect, 125, { T, L, PROT_NONE | PROT_GROWSDOWN } },
	{ "pkey_mprotect", SYS_pkey_mprotect, 380, { T, L, PROT_NONE, -1 } },
	{ "madvise dontneed", SYS_madvise, 219, { T, L, MADV_DONTNEED } },
	{ "madvise free", SYS_madvise, 219, { T, L, MADV_FREE } },
	{ "madvise dontfork", SYS_madvise, 219, { T, L, MADV_DONTFORK } },
	{ "madvise dontdump", SYS_madvise, 219, { T, L, MADV_DONTDUMP } },
	{ "madvise wipeonfork", SYS_madvise, 219, { T, L, MADV_WIPEONFORK } },
	{ "madvise mergeable", SYS_madvise, 219, { T, L, MADV_MERGEABLE } },
	{ "madvise nohugepage", SYS_madvise, 219, { T, L, MADV_NOHUGEPAGE } },
	{ "madvise pageout", SYS_madvise, 219, { T, L, MADV_PAGEOUT } },
	{ "madvise hwpoison", SYS_madvise, 219, { T, L, 100 } },
	{ "madvise soft_offline", SYS_madvise, 219, { T, L, 101 } },
	{ "madvise guard_install", SYS_madvise, 219, { T, L, 102 } },
	{ "mlock", SYS_mlock, 150, { T, L } },
	{ "mlock2", SYS_mlock2, 376, { T, L, MLOCK_ONFAULT } },
	{ "munlock", SYS_munlock, 151, { T, L } },
	{ "mbind", SYS_mbind, 274, { T, L, MPOL_DEFAULT, 0, 0 } },
	{ "set_mempolicy_home_node", 450, 450, { T, L, 0, 0 } },
	{ "mseal", 462, 462, { T, L, 0 } },
	{ "mremap shrink", SYS_mremap, 163, { T, L, PAGE, 0 } },
	{ "mremap grow", SYS_mremap, 163, { T, PAGE, LEN, MREMAP_MAYMOVE } },
	{ "mremap from", SYS_mremap, 163, { T, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, O } },
	{ "mremap double", SYS_mremap, 163, { T, 0, PAGE, MREMAP_MAYMOVE } },
	{ "mremap to", SYS_mremap, 163, { O, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, T } },
	{ "mremap to, dontunmap", SYS_mremap, 163,
	  { O, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP, T } },
	{ "remap_file_pages", SYS_remap_file_pages, 257, { T, PAGE, 0, 0, 0 } },
	{ "shmdt", SYS_shmdt, 398, { T } },
	{ "mmap fixed", SYS_mmap, 0, { T, L, RW, ANON | MAP_FIXED, -1 } },
};

static long argument(long what, uintptr_t at, size_t len)
{
	return what == T ? (long)at : what == L ? (long)len : what == O ? (long)own : what;
}

static long by_number(const struct call *c, unsigned long bits, uintptr_t at, size_t len)
{
	long a[5];
	int i;

	for (i = 0; i < 5; i++)
		a[i] = argument(c->args[i], at, len);
	return raw(c->nr | bits, a[0], a[1], a[2], a[3], a[4], 0);
}

static long by_ia32(const struct call *c, uintptr_t at, size_t len)
{
	long a[5];
	int i;

	for (i = 0; i < 5; i++)
		a[i] = argument(c->args[i], at, len);
	/* The kernel has the lower halves only. */
	if (!c->nr32 || at >> 32 || len >> 32)
		return -EPERM;
	return pt_ia32(c->nr32, a[0], a[1], a[2], a[3], a[4], 0);
}

/* ---- other ways ---- */

static long at_fixed_shm(uintptr_t at, size_t len)
{
	(void)len;
	return shmat(shm, (void *)at, SHM_REMAP) == (void *)-1 ? -errno : 0;
}

static long ipc_shmdt(uintptr_t at, size_t len)
{
	(void)len;
	return at >> 32 ? -EPERM : pt_ia32(117, 22, 0, 0, 0, at, 0);
}

static long advise_by(int pidfd, uintptr_t at, size_t len)
{
	static const int advice[] = { MADV_COLD, MADV_PAGEOUT, MADV_WILLNEED };
	struct iovec there = { (void *)at, len };
	long ret = -EPERM;
	size_t i;

	for (i = 0; ret < 0 && i < PT_ARRAY_SIZE(advice); i++)
		ret = syscall(SYS_process_madvise, pidfd, &there, 1, advice[i], 0);
	return ret < 0 ? -errno : ret;
}

static long advise_self(uintptr_t at, size_t len)
{
	int fd = syscall(SYS_pidfd_open, getpid(), 0);
	long ret = advise_by(fd, at, len);

	close(fd);
	return ret;
}

static long advise_peer(uintptr_t at, size_t len)
{
	int fd = syscall(SYS_pidfd_open, others_pid(), 0);
	long ret = advise_by(fd, at, len);

	close(fd);
	return ret;
}

static long advise_ring(uintptr_t at, size_t len)
{
	struct io_uring_sqe sqe = {
		.opcode = IORING_OP_MADVISE, .addr = at, .len = len,
		.fadvise_advice = MADV_DONTNEED,
	};

	return uring < 0 ? -EPERM : ring_do(uring, &sqe);
}

static long proc_mem(uintptr_t at, size_t len)
{
	int fd = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
	ssize_t ret = pwrite(fd, own, len < PAGE ? len : PAGE, at);
	int err = errno;

	close(fd);
	return ret < 0 ? -err : ret;
}

static long vma_name(uintptr_t at, size_t len)
{
	return prctl(PR_SET_VMA, PR_SET_VMA_ANON_NAME, at, len, "mine") ? -errno : 0;
}

static long move_to_node(uintptr_t at, size_t len)
{
	void *pages[1] = { (void *)at };
	int node = 0, status = -1;

	(void)len;
	return syscall(SYS_move_pages, 0, 1, pages, &node, &status, 0) ? -errno : 0;
}

/* A connected socket takes what is in its queue to where the address says. */
static long tcp_receive(uintptr_t at, size_t len)
{
	struct { uint64_t address, length, rest[5]; } zc = { at, (uint32_t)len, {} };
	socklen_t size = sizeof(zc);

	return getsockopt(tcp, IPPROTO_TCP, TCP_ZEROCOPY_RECEIVE, &zc, &size) ? -errno : 0;
}

static long uffd_register(uintptr_t at, size_t len)
{
	struct uffdio_register reg = { { at, len }, UFFDIO_REGISTER_MODE_MISSING, 0 };

	return ioctl(uffd, UFFDIO_REGISTER, &reg) ? -errno : 0;
}

static long uffd_unregister(uintptr_t at, size_t len)
{
	struct uffdio_range range = { at, len };

	return ioctl(uffd, UFFDIO_UNREGISTER, &range) ? -errno : 0;
}

static long uffd_copy(uintptr_t at, size_t len)
{
	struct uffdio_copy copy = { .dst = at, .src = (uintptr_t)own, .len = len };

	return ioctl(uffd, UFFDIO_COPY, &copy) ? -errno : 0;
}

static long uffd_zero(uintptr_t at, size_t len)
{
	struct uffdio_zeropage zero = { .range = { at, len } };

	return ioctl(uffd, UFFDIO_ZEROPAGE, &zero) ? -errno : 0;
}

static long uffd_protect(uintptr_t at, size_t len)
{
	struct uffdio_writeprotect wp = { { at, len }, UFFDIO_WRITEPROTECT_MODE_WP };

	return ioctl(uffd, UFFDIO_WRITEPROTECT, &wp) ? -errno : 0;
}

/* From 6.6 and 6.8: CONTINUE and POISON have the same argument. */
static long uffd_range_and_mode(unsigned long nr, uintptr_t at, size_t len)
{
	struct uffdio_continue arg = { .range = { at, len } };
	unsigned long cmd = _IOC(_IOC_READ | _IOC_WRITE, UFFDIO, nr, sizeof(arg));

	return ioctl(uffd, cmd, &arg) ? -errno : 0;
}

static long uffd_continue(uintptr_t at, size_t len)
{
	return uffd_range_and_mode(7, at, len);
}

static long uffd_poison(uintptr_t at, size_t len)
{
	return uffd_range_and_mode(8, at, len);
}

static long uffd_move(uint64_t dst, uint64_t src, size_t len)
{
	struct { uint64_t dst, src, len, mode; int64_t move; } arg = { dst, src, len, 0, 0 };

	return ioctl(uffd, _IOC(_IOC_READ | _IOC_WRITE, UFFDIO, 5, sizeof(arg)), &arg) ? -errno : 0;
}

static long uffd_move_to(uintptr_t at, size_t len)
{
	return uffd_move(at, (uintptr_t)own, len);
}

static long uffd_move_from(uintptr_t at, size_t len)
{
	return uffd_move((uintptr_t)own + 4 * PAGE, at, len);
}

static const struct way {
	const char *name;
	long (*go)(uintptr_t at, size_t len);
} ways[] = {
	{ "shmat", at_fixed_shm }, { "ia32 ipc", ipc_shmdt },
	{ "process_madvise, self", advise_self }, { "process_madvise, peer", advise_peer },
	{ "io_uring", advise_ring }, { "/proc/self/mem", proc_mem }, { "PR_SET_VMA", vma_name },
	{ "move_pages", move_to_node }, { "TCP receive", tcp_receive }, { "UFFDIO_REGISTER", uffd_register },
	{ "UFFDIO_UNREGISTER", uffd_unregister }, { "UFFDIO_COPY", uffd_copy },
	{ "UFFDIO_ZEROPAGE", uffd_zero }, { "UFFDIO_WRITEPROTECT", uffd_protect },
	{ "UFFDIO_CONTINUE", uffd_continue }, { "UFFDIO_POISON", uffd_poison },
	{ "UFFDIO_MOVE to", uffd_move_to }, { "UFFDIO_MOVE from", uffd_move_from },
};

/* ---- targets ---- */

static void verdict(const char *name, const char *form, uintptr_t at, size_t len, long ret)
{
	bool changed = others_bytes_changed();

	if (ret < 0 && !changed)
		return;
	fprintf(stderr, "# %s%s at %#lx, %#lx bytes: returns %ld%s\n", name, form, at, len, ret,
		changed ? ", and the peer's memory is another" : "");
	pt_failed++;
}

static void try_all(uintptr_t at, size_t len)
{
	static const struct { const char *name; unsigned long bits; } forms[] = {
		{ "", 0 }, { ", high bits", HIGH }, { ", more of them", ~0UL << 32 },
		{ ", x32", X32 }, { ", x32 and high bits", X32 | HIGH },
	};
	size_t i, f;

	for (i = 0; i < PT_ARRAY_SIZE(calls); i++) {
		for (f = 0; f < PT_ARRAY_SIZE(forms); f++)
			verdict(calls[i].name, forms[f].name, at, len,
				by_number(&calls[i], forms[f].bits, at, len));
		verdict(calls[i].name, ", ia32", at, len, by_ia32(&calls[i], at, len));
	}
	for (i = 0; i < PT_ARRAY_SIZE(ways); i++)
		verdict(ways[i].name, "", at, len, ways[i].go(at, len));
	if (others_maps_changed())
		fprintf(stderr, "# mappings of others changed: %#lx, %#lx bytes\n", at, len);
	CHECK(!others_maps_changed());
}

static int connected(void)
{
	struct sockaddr_in addr = { AF_INET, 0, { htonl(INADDR_LOOPBACK) }, {} };
	int server = socket(AF_INET, SOCK_STREAM, 0), client = socket(AF_INET, SOCK_STREAM, 0);
	socklen_t len = sizeof(addr);

	bind(server, (struct sockaddr *)&addr, len);
	if (listen(server, 1) || getsockname(server, (struct sockaddr *)&addr, &len) ||
	    connect(client, (struct sockaddr *)&addr, len))
		return -1;
	return accept(server, NULL, NULL);
}

/* After a failure: is there none here, or none for us? */
static bool no_ring(void)
{
	return errno == ENOSYS || errno == EPERM;
}

/* Does the kernel have these calls, and did it boot with them? */
static bool x32_is_on(void)
{
	char text[8];

	return !pt_read_file("/sys/module/syscall/parameters/x32", text, sizeof(text)) &&
	       text[0] == 'Y';
}

static void prepare(void)
{
	if (x32_is_on())
		CHECK_EQ(getpid(), raw(SYS_getpid | X32, 0, 0, 0, 0, 0, 0));
	own = anon(16 * PAGE);
	memset(own, 3, 2 * PAGE);
	shm = shmget(IPC_PRIVATE, LEN, IPC_CREAT | 0600);
	shmctl(shm, IPC_RMID, NULL);
	uffd = others_uffd();
	uring = ring_open();
	CHECK(uring >= 0 || no_ring());
	tcp = connected();
	CHECK(shm >= 0 && uffd >= 0 && tcp >= 0);
	others_remember();
}

TASK(on_the_peer)
{
	prepare();
	try_all(others_peer(), LEN);
}

TASK(on_the_header)
{
	prepare();
	try_all(256UL << 20, PAGE);
}

TASK(on_the_edges)
{
	uintptr_t at[] = {
		pt_base() - PAGE, pt_base() + pt_size(), TASK_MAX - PAGE, TASK_MAX,
		1UL << 56, -PAGE,
	};
	size_t i;

	prepare();
	for (i = 0; i < PT_ARRAY_SIZE(at); i++)
		try_all(at[i], LEN);
}

/* lengths that wrap around, and addresses inside a page, which some calls round */
TASK(on_what_wraps)
{
	size_t len[] = { -1, -PAGE, -LEN, 1UL << 47, 1UL << 63 };
	size_t i;

	prepare();
	for (i = 0; i < PT_ARRAY_SIZE(len); i++) {
		try_all(others_peer(), len[i]);
		try_all(others_peer() + 2, len[i]);
	}
	try_all(pt_base() - PAGE, 2 * pt_size());
}

static void all_refused(struct __test_metadata *_metadata, const char *name)
{
	struct pvas_space *space = PT_SPACE();
	struct others_job job;

	ASSERT_EQ(0, others_start(&job, space));
	EXPECT_EQ(0, others_attack(&job, name));
	EXPECT_EQ(0, others_end(&job));
	pvas_space_destroy(space);
}

MODULE_TEST(peer, "calls are not bounded")
{
	all_refused(_metadata, "on_the_peer");
}

MODULE_TEST(header, "calls are not bounded")
{
	all_refused(_metadata, "on_the_header");
}

MODULE_TEST(edges, "calls are not bounded")
{
	all_refused(_metadata, "on_the_edges");
}

MODULE_TEST(wrapping, "calls are not bounded")
{
	all_refused(_metadata, "on_what_wraps");
}

TASK(move_pages_of_a_child)
{
	void *pages[1] = { anon(PAGE) };
	pid_t pid = fork();
	int node = 0, status;

	if (!pid)
		for (;;)
			pause();
	CHECK_ERR(EPERM, syscall(SYS_move_pages, pid, 1, pages, &node, &status, 0));
	CHECK_EQ(0, syscall(SYS_move_pages, pid, 1, pages, NULL, &status, 0));
	pt_kill(pid);
}

/* The tests above go on without these two, which not all machines have. */
MODULE_TEST(with_io_uring, "calls are not bounded")
{
	struct io_uring_params p = { 0 };
	int fd = syscall(SYS_io_uring_setup, 2, &p);

	if (fd < 0 && no_ring())
		SKIP(return, "no io_uring: %s", strerror(errno));
	EXPECT_LE(0, fd);
	close(fd);
}

MODULE_TEST(with_x32, "calls are not bounded")
{
	if (access("/sys/module/syscall/parameters/x32", F_OK))
		SKIP(return, "no x32 calls in this kernel");
	/* The tests' own machine boots with them. */
	if (!x32_is_on() && !getenv("PVAS_VM"))
		SKIP(return, "no x32 calls without syscall.x32=y");
	EXPECT_EQ(getpid(), raw(SYS_getpid | X32, 0, 0, 0, 0, 0, 0));
}

/* It could have entered the space by the time its memory is looked for. */
MODULE_TEST(pages_of_a_child, "a child can't enter")
{
	EXPECT_EQ(0, pt_run_task("move_pages_of_a_child"));
}

PT_MAIN()
