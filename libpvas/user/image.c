// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * User backend: the loader in each partition, and the instructions behind it.
 *
 * They are the same for all, so each partition has a view of one file. It is shared, but
 * nobody can make a view writable, not even a fork child of a task, which may be another
 * user's by now: the file is sealed before it is mapped. Where that is not possible, as in a
 * sandbox, each partition has a copy.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "rawsys.h"
#include "stay.h"

#define SEALS		(F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE)

static void fill(char *to, const struct user_space *u)
{
	memcpy(to, pvas_blob, USER_LOADER_LEN);
	user_stay_make_thunk((unsigned char *)to + pvas_layout_up(USER_LOADER_LEN, 16), u);
	pvas_code_written(to, USER_IMAGE_LEN);
}

static int open_file(void)
{
	int fd = memfd_create("pvas-loader", MFD_CLOEXEC | MFD_ALLOW_SEALING | OPT_NOEXEC_SEAL);

	if (fd < 0 && errno == EINVAL)
		fd = memfd_create("pvas-loader", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	return fd;
}

/* A limit would raise SIGXFSZ. */
static int fill_file(int fd, const struct user_space *u)
{
	struct rlimit limit;
	char *p;

	if (getrlimit(RLIMIT_FSIZE, &limit) || limit.rlim_cur < USER_IMAGE_LEN ||
	    ftruncate(fd, USER_IMAGE_LEN))
		return 0;
	p = mmap(NULL, USER_IMAGE_LEN, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED)
		return 0;
	fill(p, u);
	munmap(p, USER_IMAGE_LEN);
	return !fcntl(fd, F_ADD_SEALS, SEALS);
}

void user_image_make(struct user_space *u)
{
	int fd = open_file();
	char *p = MAP_FAILED;

	if (fd >= 0 && fill_file(fd, u))
		p = mmap(NULL, USER_IMAGE_LEN, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 0);
	if (fd >= 0)
		close(fd);
	u->image = p == MAP_FAILED ? NULL : p;
}

void user_image_free(struct user_space *u)
{
	if (u->image)
		munmap(u->image, USER_IMAGE_LEN);
	u->image = NULL;
}

/* The launcher's threads may have mapped something there meanwhile. */
static int reserve(uint64_t at, int prot)
{
	return pvas_raw6(__NR_mmap, at, USER_IMAGE_LEN, prot,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) == (long)at ?
	       0 : -ENOMEM;
}

static int copy_to(const struct user_space *u, uint64_t at)
{
	int err = reserve(at, PROT_READ | PROT_WRITE);

	if (err)
		return err;
	fill((char *)at, u);
	return (int)pvas_raw3(__NR_mprotect, at, USER_IMAGE_LEN, PROT_READ | PROT_EXEC);
}

/* A length of 0 asks for a second view. */
int user_image_map(const struct user_space *u, uint64_t at)
{
	int err;

	if (!u->image)
		return copy_to(u, at);
	err = reserve(at, PROT_NONE);
	if (err)
		return err;
	if (pvas_raw6(__NR_mremap, (long)u->image, 0, USER_IMAGE_LEN,
		      MREMAP_MAYMOVE | MREMAP_FIXED, (long)at, 0) == (long)at)
		return 0;
	pvas_raw2(__NR_munmap, (long)at, USER_IMAGE_LEN);
	return copy_to(u, at);
}
