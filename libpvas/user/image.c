// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * User backend: the loader in each partition, and the instructions behind it.
 *
 * They are the same for all, so each partition maps one file. Nobody can change it, not even a
 * process that was forked while it was made, and may be another user's by now: it is sealed,
 * which fails if anybody could write to it by a mapping, and compared after that. Where that is
 * not possible, as in a sandbox, each partition has a copy.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "rawsys.h"
#include "stay.h"

#define SEALS		(F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)

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
	char *image = u->scratch, *again = image + USER_IMAGE_LEN;
	struct rlimit limit;

	fill(image, u);
	return !getrlimit(RLIMIT_FSIZE, &limit) && limit.rlim_cur >= USER_IMAGE_LEN &&
	       pwrite(fd, image, USER_IMAGE_LEN, 0) == (ssize_t)USER_IMAGE_LEN &&
	       !fcntl(fd, F_ADD_SEALS, SEALS) &&
	       pread(fd, again, USER_IMAGE_LEN, 0) == (ssize_t)USER_IMAGE_LEN &&
	       !memcmp(image, again, USER_IMAGE_LEN);
}

void user_image_make(struct user_space *u)
{
	int fd = pvas_fd_above_standard(open_file());

	if (fd >= 0 && !fill_file(fd, u)) {
		close(fd);
		fd = -1;
	}
	/* Another file with its number would be the code of tasks. */
	if (fd >= 0 && !user_file_mark(fd)) {
		close(fd);
		fd = -1;
	}
	u->image = fd;
}

static int copy_to(const struct user_space *u, uint64_t at)
{
	long is = pvas_raw6(__NR_mmap, at, USER_IMAGE_LEN, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	if (is != (long)at)
		return -ENOMEM;
	fill((char *)at, u);
	return (int)pvas_raw3(__NR_mprotect, at, USER_IMAGE_LEN, PROT_READ | PROT_EXEC);
}

/* The launcher's threads may have mapped something there meanwhile. */
int user_image_map(const struct user_space *u, uint64_t at, int starts)
{
	int fd = starts ? u->image : -1;

	if (user_file_is_of(fd, u->owner) &&
	    pvas_raw6(__NR_mmap, at, USER_IMAGE_LEN, PROT_READ | PROT_EXEC,
		      MAP_PRIVATE | MAP_FIXED_NOREPLACE, fd, 0) == (long)at)
		return 0;
	return copy_to(u, at);
}
