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
#include <stdbool.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <termios.h>
#include <unistd.h>

#include "reopen.h"

/* A file or pipe, which libc would write in blocks */
static bool is_kept(int fd)
{
	const dev_t null = makedev(1, 3);
	const mode_t type = descriptor_type(fd);
	struct stat st;

	if (!S_ISCHR(type))
		return type;
	return !fstat(fd, &st) && st.st_rdev != null && !isatty(fd);
}

/* As mpirun does; but tasks write to pvasrun's own terminal themselves. */
bool pty_wanted(const struct options *opt)
{
	return opt->pty == PTY_AUTO ? is_kept(STDOUT_FILENO) : opt->pty == PTY_ALWAYS;
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
	const int packets = 1;
	int err;

	ends[1] = -1;
	ends[0] = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (ends[0] < 0)
		return -errno;
	/* not by name: in a container /dev/pts may be another instance */
	if (!unlockpt(ends[0]))
		ends[1] = ioctl(ends[0], TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
	err = ends[1] < 0 ? -errno : set_raw(ends[1]);
	if (!err && ioctl(ends[0], TIOCPKT, &packets) < 0)
		err = -errno;
	if (!err)
		return 0;
	close(ends[0]);
	if (ends[1] >= 0)
		close(ends[1]);
	return err;
}

/*
 * A program that a task has started, as another user, too, can stop the output of all who have
 * this terminal (tcflow(3)), which it could not to a pipe. So it goes on at once. A descriptor
 * that is opened now would not do: the terminal can be in exclusive use (TIOCEXCL).
 */
static void keep_flowing(int status, int other_end)
{
	if (!(status & TIOCPKT_STOP) || other_end < 0)
		return;
	/* A stop by a key (IXON, TIOCSTI) goes on only if it has become one of tcflow(). */
	tcflow(other_end, TCOOFF);
	tcflow(other_end, TCOON);
}

/* Asked by this end: at the other one, who holds the line discipline holds up the answer, too. */
bool pty_refuses(int end)
{
	struct termios terminal;

	return !tcgetattr(end, &terminal) && terminal.c_line != N_TTY;
}

ssize_t pty_read(int end, int other_end, char *bytes, size_t len)
{
	unsigned char status = 0;
	struct iovec parts[2] = { { &status, 1 }, { bytes, len } };
	ssize_t n;

	n = readv(end, parts, 2);
	if (n != 1)
		return n > 1 ? n - 1 : n;
	keep_flowing(status, other_end);
	errno = (status & TIOCPKT_FLUSHWRITE) ? ENODATA : EAGAIN;
	return -1;
}
