// SPDX-License-Identifier: GPL-2.0-only
/*
 * The first and the last page of a partition: nothing can be mapped there, by any way that
 * places or extends a mapping, since the kernel would make one area of what two neighbours
 * have there. See bounds-brk.c for the heap, bounds-shared.c for the stack, and
 * bounds-place.c for huge pages.
 */
#define _GNU_SOURCE
#include <sys/mman.h>
#include <sys/shm.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "pvas_test.h"
#include "maps.h"

#define BYTE	42

/* In a task, of a memfd or none (-1): a range that has one of its outermost pages */
static void refuses(uintptr_t at, size_t len, int fd)
{
	const int how = fd < 0 ? ANON : MAP_SHARED;
	char *own = mmap(NULL, len, RW, how | MAP_NORESERVE, fd, 0), *p;

	CHECK_ERR(ENOMEM, mmap((void *)at, len, RW, how | MAP_FIXED, fd, 0));
	CHECK_ERR(ENOMEM, mmap((void *)at, len, RW, how | MAP_FIXED_NOREPLACE, fd, 0));
	p = mmap((void *)at, len, RW, how | MAP_NORESERVE, fd, 0);
	CHECK(p != (char *)at && (p == MAP_FAILED || !munmap(p, len)));
	if (own == MAP_FAILED)
		return;
	own[0] = BYTE;
	CHECK_ERR(EPERM, mremap(own, len, len, MREMAP_MAYMOVE | MREMAP_FIXED, at));
	CHECK_ERR(EPERM, mremap(own, PAGE, len, MREMAP_MAYMOVE | MREMAP_FIXED, at));
	if (fd < 0)
		CHECK_ERR(EPERM, mremap(own, len, len,
					MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP, at));
	CHECK_EQ(BYTE, own[0]);
	CHECK_EQ(0, munmap(own, len));
}

/* An area that ends where nothing more may be mapped does not grow there, but moves away. */
static void grows_no_further(int fd)
{
	const int how = fd < 0 ? ANON : MAP_SHARED;
	char *at = (char *)last_end() - PAGE, *p;

	CHECK(mmap(at, PAGE, RW, how | MAP_FIXED_NOREPLACE, fd, 0) == at);
	at[0] = BYTE;
	CHECK_ERR(ENOMEM, mremap(at, PAGE, 2 * PAGE, 0));
	p = mremap(at, PAGE, 2 * PAGE, MREMAP_MAYMOVE);
	CHECK(p != MAP_FAILED && pt_inside(p, 3 * PAGE));
	CHECK_EQ(BYTE, p[0]);
	CHECK_EQ(0, munmap(p, 2 * PAGE));
}

static void refuses_segment(uintptr_t at)
{
	int id = shmget(IPC_PRIVATE, PAGE, IPC_CREAT | 0600);

	CHECK_ERR(ENOMEM, (long)shmat(id, (void *)at, 0));
	CHECK_ERR(ENOMEM, (long)shmat(id, (void *)at, SHM_REMAP));
	CHECK_ERR(ENOMEM, (long)shmat(id, (void *)(at + 1), SHM_RND));
	CHECK_EQ(0, shmctl(id, IPC_RMID, NULL));
}

TASK(stays_off_the_border)
{
	const uintptr_t base = pt_base(), last = last_end();
	int fd = memfd_create("border", MFD_CLOEXEC), files[] = { -1, fd };
	unsigned int i;

	CHECK_EQ(0, ftruncate(fd, pt_size()));
	for (i = 0; i < PT_ARRAY_SIZE(files); i++) {
		refuses(base, PAGE, files[i]);
		refuses(base, 4 * PAGE, files[i]);
		refuses(last, PAGE, files[i]);
		refuses(last - 3 * PAGE, 4 * PAGE, files[i]);
		refuses(base, pt_size(), files[i]);
		grows_no_further(files[i]);
	}
	refuses_segment(base);
	refuses_segment(last);
	close(fd);
}

/* ENOMEM, or EPERM of mremap(), which changes nothing then */
PVAS_TEST(refused)
{
	EXPECT_EQ(0, pt_run_task("stays_off_the_border"));
}

PT_MAIN()
