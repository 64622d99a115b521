// SPDX-License-Identifier: GPL-2.0-only
/*
 * Pseudo-terminals for the tasks' standard output.
 *
 * libc buffers output to a pipe or a file, and a program that ends by abort() or a
 * signal loses up to some kilobytes of it; on a terminal it is buffered by line.
 */
#include "pty.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "elf_needed.h"

/* mpirun uses one for each rank, so users of MPI programs expect it. */
bool pty_wanted(const struct options *opt)
{
	unsigned int i;

	if (opt->pty != PTY_AUTO)
		return opt->pty == PTY_ALWAYS;
	if (opt->mpi == MPI_NONE || isatty(STDOUT_FILENO))
		return false;
	for (i = 0; i < opt->nr_apps; i++)
		if (elf_needed(opt->apps[i].path) & ELF_NEEDS_MPI)
			return true;
	return false;
}

/* Bytes unchanged: no conversion of "\n" to "\r\n", no echo */
static int set_raw(int fd)
{
	struct termios terminal;

	if (tcgetattr(fd, &terminal) < 0)
		return -errno;
	cfmakeraw(&terminal);
	return tcsetattr(fd, TCSANOW, &terminal) < 0 ? -errno : 0;
}

int pty_open(int ends[static 2])
{
	int err;

	ends[1] = -1;
	ends[0] = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (ends[0] < 0)
		return -errno;
	/* not by name: in a container /dev/pts may be another instance */
	if (!unlockpt(ends[0]))
		ends[1] = ioctl(ends[0], TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
	err = ends[1] < 0 ? -errno : set_raw(ends[1]);
	if (!err)
		return 0;
	close(ends[0]);
	if (ends[1] >= 0)
		close(ends[1]);
	return err;
}
