// SPDX-License-Identifier: GPL-2.0-only
/*
 * A fake libpvas that starts plain processes, to test pvasrun without a space. It has
 * only the functions that pvasrun calls.
 *
 * FAKEPVAS_CREATE=errno makes pvas_space_create() fail, FAKEPVAS_SPAWN=errno@rank
 * one pvas_task_spawn(), FAKEPVAS_SLOW=ms delays each, FAKEPVAS_LAST is the highest
 * index at 64 GiB. With FAKEPVAS_LEFT all tasks have left the space when it is asked, and
 * who looks at a program from then on waits for ever, as for a hung file server.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../libpvas/far_ops.h"
#include "../../libpvas/pvas.h"

struct pvas_space {
	int backend;
	uint64_t partition_size;
};

static const char *last_error = "";
static int hangs;

static int from_env(const char *name, int otherwise)
{
	const char *value = getenv(name);

	return value ? atoi(value) : otherwise;
}

int pvas_space_create(struct pvas_space **space, const struct pvas_create_attr *attr)
{
	int err = from_env("FAKEPVAS_CREATE", 0);

	last_error = "";
	if (err) {
		*space = NULL;
		return -err;
	}
	*space = malloc(sizeof(**space));
	(*space)->backend = attr->backend ? attr->backend : PVAS_BACKEND_KERNEL;
	(*space)->partition_size = attr->partition_size ? attr->partition_size : 64ULL << 30;
	return 0;
}

/* Plain processes have no far memory. */
void libpvas_set_far(const struct pvas_far_config *config)
{
	(void)config;
}

void libpvas_far_publish(const struct pvas_space *space, const struct pvas_far_seen *seen)
{
	(void)space;
	(void)seen;
}

int pvas_space_destroy(struct pvas_space *space)
{
	free(space);
	return 0;
}

/* By a system call, for libc refuses its internal signals. */
static void reset_signals(void)
{
	static const unsigned long standard[4];	/* all zero: SIG_DFL */
	sigset_t none;
	int signo;

	for (signo = 1; signo < NSIG; signo++)
		syscall(SYS_rt_sigaction, signo, standard, NULL, 8);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

static int become_task(const char *path, char *const argv[], char *const envp[],
		       const struct pvas_spawn_attr *attr)
{
	int i, err;

	reset_signals();
	for (i = 0; attr->set_fds && i < 3; i++)
		if (attr->fds[i] >= 0 && dup2(attr->fds[i], i) < 0)
			return -errno;
	if (attr->cwd && chdir(attr->cwd) < 0)
		return -errno;
	err = attr->setup ? attr->setup(attr->setup_arg) : 0;
	if (err)
		return err;
	execve(path, argv, envp);
	return -errno;
}

static int injected(unsigned int index)
{
	const char *value = getenv("FAKEPVAS_SPAWN");
	int err;
	unsigned int rank;

	if (value && sscanf(value, "%d@%u", &err, &rank) == 2 && index == rank + 1)
		return -err;
	return 0;
}

int pvas_task_spawn(struct pvas_space *space, unsigned int index, const char *path,
		    char *const argv[], char *const envp[],
		    const struct pvas_spawn_attr *attr, pid_t *pid)
{
	int ends[2], err = injected(index);

	(void)space;
	last_error = "";
	usleep(1000 * from_env("FAKEPVAS_SLOW", 0));
	if (err)
		return err;
	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	*pid = fork();
	if (!*pid) {
		err = become_task(path, argv, envp, attr);
		if (write(ends[1], &err, sizeof(err)) < 0)
			_exit(126);
		_exit(127);
	}
	close(ends[1]);
	if (*pid < 0 || read(ends[0], &err, sizeof(err)) != sizeof(err))
		err = 0;
	close(ends[0]);
	if (err)
		waitpid(*pid, NULL, 0);
	return err ? err : *pid < 0 ? -EAGAIN : (int)index;
}

int pvas_program_find(const char *name, const char *path_env, char *buf, size_t len)
{
	char copy[4096], *dir, *rest = copy;
	struct stat st;

	if (strchr(name, '/')) {
		snprintf(buf, len, "%s", name);
		if (access(buf, X_OK) < 0 || stat(buf, &st) < 0)
			return -errno;
		return S_ISREG(st.st_mode) ? 0 : -EACCES;
	}
	snprintf(copy, sizeof(copy), "%s", path_env ? path_env : getenv("PATH"));
	while ((dir = strsep(&rest, ":"))) {
		snprintf(buf, len, "%s/%s", dir, name);
		if (!access(buf, X_OK))
			return 0;
	}
	return -ENOENT;
}

/* Only by the type in the ELF header */
int pvas_program_check(const char *path, char *why, size_t len)
{
	unsigned char head[18] = { 0 };
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	while (hangs)
		pause();
	if (fd < 0)
		return -errno;
	if (read(fd, head, sizeof(head)) < 0)
		head[0] = 0;
	close(fd);
	if (memcmp(head, "\177ELF", 4) || head[16] == 3)
		return 0;
	snprintf(why, len, "not a position-independent executable (compile it with -pie)");
	return -ENOEXEC;
}

const char *pvas_error_get(void)
{
	return last_error;
}

int pvas_space_get_backend(const struct pvas_space *space)
{
	return space->backend;
}

uint32_t pvas_space_get_id(const struct pvas_space *space)
{
	return space ? 77 : 0;
}

int pvas_space_get_bounds(const struct pvas_space *space, unsigned int *first,
			  unsigned int *last, uint64_t *partition_size)
{
	uint64_t scale = (64ULL << 30) / space->partition_size;

	*first = 1;
	*last = from_env("FAKEPVAS_LAST", 2046);
	*last = scale ? *last * scale : *last / (space->partition_size / (64ULL << 30));
	*partition_size = space->partition_size;
	return 0;
}

int pvas_task_list(const struct pvas_space *space, struct pvas_task_info *tasks, size_t room)
{
	(void)space;
	(void)tasks;
	(void)room;
	hangs = from_env("FAKEPVAS_LEFT", 0);
	return hangs ? 0 : -ENOSYS;
}

int pvas_task_get_index(void)
{
	return -ESRCH;
}

unsigned int pvas_version_get(void)
{
	return PVAS_VERSION_MAJOR << 16 | PVAS_VERSION_MINOR;
}
