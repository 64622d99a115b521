// SPDX-License-Identifier: LGPL-2.1-or-later
/* A task whose memory takes long to unmap, or that wants to have such memory: see linger.c. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "task_check.h"

#define LENGTH		65536
#define LINGER_S	10000

/* Older headers lack it. */
#ifndef USERFAULTFD_IOC_NEW
#define USERFAULTFD_IOC_NEW	_IO(0xAA, 0x00)
#endif

/* As for TCP_ZEROCOPY_RECEIVE: a socket whose peer does not read, and has more to read. */
static int map_socket(int port)
{
	const struct sockaddr_in to = {
		.sin_family = AF_INET, .sin_port = htons((uint16_t)port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	const struct linger linger = { 1, LINGER_S };
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	static char data[LENGTH];

	CHECK(!connect(fd, (const struct sockaddr *)&to, sizeof(to)));
	CHECK(!setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)));
	CHECK(!fcntl(fd, F_SETFL, O_NONBLOCK));
	while (write(fd, data, sizeof(data)) > 0)
		;
	CHECK(mmap(NULL, LENGTH, PROT_READ, MAP_SHARED, fd, 0) != MAP_FAILED);
	return failures != 0;
}

/* Of a fork child it is its own memory. */
static int userfault(int device)
{
	struct uffdio_api api = { .api = UFFD_API };
	int status = -1;
	pid_t pid;

	CHECK(FAILS(ioctl(device, USERFAULTFD_IOC_NEW, O_CLOEXEC), ENOSYS));
	CHECK(FAILS(ioctl(device, UFFDIO_API, &api), ENOSYS));
	CHECK(FAILS(syscall(SYS_userfaultfd, O_CLOEXEC), ENOSYS));
	pid = fork();
	if (!pid)
		_exit(ioctl(device, USERFAULTFD_IOC_NEW, O_CLOEXEC) < 0);
	CHECK(waitpid(pid, &status, 0) == pid && !status);
	return failures != 0;
}

int main(int argc, char **argv)
{
	int device;

	if (argc > 2 && !strcmp(argv[1], "socket"))
		return map_socket(atoi(argv[2]));
	device = open("/dev/userfaultfd", O_RDWR | O_CLOEXEC);
	return device < 0 ? 77 : userfault(device);
}
