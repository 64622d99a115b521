// SPDX-License-Identifier: GPL-2.0-only
/* /dev/pvas, and descriptors of it that go from hand to hand. */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/io_uring.h>
#include <linux/pvas.h>

#include "hostile.h"

static int dev_open(struct actor *a)
{
	long fd = raw6(SYS_openat, AT_FDCWD, (uintptr_t)"/dev/pvas", O_RDWR | O_CLOEXEC, 0, 0, 0);

	keep_fd(a, fd);
	return fd;
}

bool arm(struct actor *a, int fd, uint32_t id, int index)
{
	struct pvas_spawn spawn = {
		.size = sizeof(spawn), .id = id, .index = index < 0 ? 0 : index,
		.flags = index < 0 ? PVAS_SPAWN_ANY : 0,
	};

	return CALL(a, SYS_ioctl, fd, PVAS_IOC_SPAWN, &spawn) == 0;
}

static void op_attach(struct actor *a, int fd)
{
	struct pvas_attach attach = { .size = sizeof(attach), .key_len = 5 };
	char key[8] = "job-0";

	key[4] += pick(a, 4);
	attach.key = (uintptr_t)key;
	CALL(a, SYS_ioctl, fd, PVAS_IOC_ATTACH, &attach);
}

static void op_query(struct actor *a, int fd)
{
	struct pvas_query query = {
		.size = sizeof(query), .id = pick(a, 2) ? 0 : pick(a, 4000),
		.count = pick(a, 2) ? 16 : 0, .tasks = (uintptr_t)a->scratch,
	};

	CALL(a, SYS_ioctl, fd, PVAS_IOC_QUERY, &query);
}

static void op_destroy(struct actor *a, int fd)
{
	struct pvas_destroy destroy = { .size = sizeof(destroy), .flags = pick(a, 2) };

	CALL(a, SYS_ioctl, fd, PVAS_IOC_DESTROY, &destroy);
}

/*
 * The arguments of a random ioctl, among them where the kernel stores its answer: never a
 * peer's memory, or the header that all share.
 */
static uint64_t random_word(struct actor *a)
{
	static const uint64_t odd[] = {
		0, 1, PAGE, 0x7ffffffff000ULL, 0x800000000000ULL, 0xffff888000000000ULL, ~0ULL,
		~0ULL << 12,
	};

	if (!pick(a, 3))
		return odd[pick(a, ARRAY(odd))];
	return (uintptr_t)a->arena + pick(a, ARENA_PAGES * PAGE);
}

static void op_random_ioctl(struct actor *a, int fd)
{
	uint64_t *words = (uint64_t *)a->scratch;
	unsigned int i, nr = pick(a, 7);
	static const unsigned int sizes[] = { 64, 88, 48, 24, 88, 64, 64 };

	memset(words, 0, 256);
	*(uint32_t *)words = sizes[nr];
	for (i = pick(a, 4); i; i--)
		words[pick(a, 12)] = random_word(a);
	CALL(a, SYS_ioctl, fd, _IOC(3, PVAS_IOC_MAGIC, nr, sizes[nr]), words);
}

static void op_cancel(struct actor *a, int fd)
{
	struct pvas_spawn spawn = { .size = sizeof(spawn), .flags = PVAS_SPAWN_CANCEL };

	CALL(a, SYS_ioctl, fd, PVAS_IOC_SPAWN, &spawn);
}

/* In a child: a creator's program ends with CREATE. */
static void op_create(struct actor *a, int fd)
{
	char key[8] = "job-0";
	long pid;

	key[4] += pick(a, 4);
	pid = raw6(SYS_clone, SIGCHLD, 0, 0, 0, 0, 0);
	if (!pid) {
		raw_create(a, fd, pick(a, 3) ? NULL : key, NULL, pick(a, 6));
		raw6(SYS_exit_group, 0, 0, 0, 0, 0, 0);
	}
	if (pid > 0)
		a->child = pid;
}

static void *exec_in_thread(void *arg)
{
	(void)arg;
	usleep(1000);
	execl("/bin/true", "true", (char *)NULL);
	return NULL;
}

static void *stay(void *arg)
{
	(void)arg;
	pause();
	return NULL;
}

/* Armed, with or without threads of one kind or another, to an end of some kind. */
void arm_and_end(struct actor *a, int fd)
{
	pthread_t t;

	if (pick(a, 2))
		ring_make(a, IORING_SETUP_SQPOLL);
	if (pick(a, 3) == 0)
		pthread_create(&t, NULL, stay, NULL);
	if (!arm(a, fd, 0, -1))
		return;
	note(a, N_ARMED, 0);
	switch (pick(a, 8)) {
	case 0: execl("/bin/true", "true", (char *)NULL); break;
	case 1: execl("/nonexistent", "true", (char *)NULL); break;
	case 2: kill(getpid(), SIGKILL); break;
	case 3: pthread_create(&t, NULL, exec_in_thread, NULL); break;
	case 4: op_pvas(a); break;
	default: break;
	}
	note(a, N_EXIT, 1);
	/* The leader alone: what other threads there are go on until they are killed. */
	raw6(SYS_exit, 0, 0, 0, 0, 0, 0);
}

void op_pvas(struct actor *a)
{
	int fd = any_fd(a);

	if (fd < 0 || !pick(a, 6))
		fd = dev_open(a);
	switch (pick(a, 12)) {
	case 0 ... 2: arm(a, fd, 0, pick(a, 3) ? -1 : (int)pick(a, 20)); break;
	case 3: op_attach(a, fd); break;
	case 4: op_query(a, fd); break;
	case 5: op_destroy(a, fd); break;
	case 6 ... 7: op_random_ioctl(a, fd); break;
	case 8: op_cancel(a, fd); break;
	case 9: op_create(a, fd); break;
	case 10: keep_fd(a, raw6(SYS_dup, fd, 0, 0, 0, 0, 0)); break;
	default:
		if (a->depth && !a->raw)
			arm_and_end(a, fd);
	}
}

long pass_fd(int fd)
{
	union { struct cmsghdr head; char room[CMSG_SPACE(sizeof(int))]; } ctl = { 0 };
	char c = 'f';
	struct iovec iov = { &c, 1 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &ctl,
			      .msg_controllen = sizeof(ctl) };

	ctl.head.cmsg_level = SOL_SOCKET;
	ctl.head.cmsg_type = SCM_RIGHTS;
	ctl.head.cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(&ctl.head), &fd, sizeof(fd));
	return raw6(SYS_sendmsg, MAIL_FD, (uintptr_t)&msg, MSG_DONTWAIT, 0, 0, 0);
}

static void receive_fd(struct actor *a)
{
	union { struct cmsghdr head; char room[CMSG_SPACE(sizeof(int))]; } ctl = { 0 };
	char c;
	struct iovec iov = { &c, 1 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &ctl,
			      .msg_controllen = sizeof(ctl) };
	int fd;

	if (raw6(SYS_recvmsg, MAIL_FD + 1, (uintptr_t)&msg,
		 MSG_DONTWAIT | MSG_CMSG_CLOEXEC, 0, 0, 0) < 0 ||
	    ctl.head.cmsg_type != SCM_RIGHTS)
		return;
	memcpy(&fd, CMSG_DATA(&ctl.head), sizeof(fd));
	keep_fd(a, fd);
}

void say_ready(void)
{
	pass_fd(MAIL_FD + 1);
}

bool peer_ready(void)
{
	struct actor a = { .ring.fd = -1, .uffd = -1 };

	receive_fd(&a);
	if (a.n_fds)
		close(a.fds[0]);
	return a.n_fds;
}

/* An end of a socket in its own queue, too, as the kernel's collector of such has it. */
void op_pass(struct actor *a)
{
	note(a, N_PASS, 0);
	if (pick(a, 2))
		pass_fd(pick(a, 10) ? any_fd(a) : MAIL_FD);
	else
		receive_fd(a);
}
