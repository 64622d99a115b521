// SPDX-License-Identifier: GPL-2.0-only
/*
 * A key is the job's name, the node's, and a secret: whoever of this user knows a
 * space's key can make it before the job does, or enter it. Open MPI's mpirun gives
 * its ranks 128 random bits; for others, whose variables can all be guessed, the
 * first rank of a node writes some to a file that the others read.
 */
#include "jobkey.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#define SECRET_LEN 32	/* as text */
#define NAME_LEN 80	/* of the job and the node, in a key and in a file's name */

/* ---- the name ---- */

/* A node of the job: nodes that share a machine (tests do) get spaces of their own. */
static const char *node_name(void)
{
	static struct utsname name;
	const char *node = getenv("SLURMD_NODENAME");

	if (node)
		return node;
	return uname(&name) ? "" : name.nodename;
}

/* It may be as long as its launcher likes: what is too much becomes a hash (FNV-1a). */
static void fit_name(char to[static NAME_LEN + 1], const char *name)
{
	uint64_t hash = 0xcbf29ce484222325;
	const char *p;

	for (p = name; *p; p++)
		hash = (hash ^ (unsigned char)*p) * 0x100000001b3;
	if (p - name <= NAME_LEN)
		strcpy(to, name);
	else
		sprintf(to, "%.*s~%016jx", NAME_LEN - 17, name, (uintmax_t)hash);
}

/* No other job of this user's has it at the same time. */
static const char *find_name(char name[static NAME_LEN + 1])
{
	static const char *const names[][2] = {
		{ "PMIX_NAMESPACE", NULL },
		{ "OMPI_MCA_ess_base_jobid", NULL },
		{ "SLURM_JOB_ID", "SLURM_STEP_ID" },
		{ "PMI_JOBID", NULL },
	};
	const char *job, *step;
	unsigned int i;
	char *whole;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		job = getenv(names[i][0]);
		step = names[i][1] ? getenv(names[i][1]) : "";
		if (!job || !*job || !step)
			continue;
		if (asprintf(&whole, "%s.%s@%s", job, step, node_name()) < 0)
			return NULL;
		fit_name(name, whole);
		free(whole);
		return names[i][0];
	}
	return NULL;
}

/* ---- a secret in a file ---- */

/* This user's, and closed to all others? */
static bool is_private(const struct stat *st)
{
	return st->st_uid == geteuid() && !(st->st_mode & 077);
}

/* One that may be made is; one that is another's is not taken. */
static int open_directory(const char *path, bool make)
{
	struct stat st;
	int fd, err;

	if (make && mkdir(path, 0700) < 0 && errno != EEXIST)
		return -errno;
	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	err = fstat(fd, &st) ? -errno : is_private(&st) ? 0 : -EACCES;
	if (!err)
		return fd;
	close(fd);
	return err;
}

/* The user's own, the PMIx server's for this job, or one in /tmp. */
static int find_directory(struct jobkey *found)
{
	static const char *const names[] = { "XDG_RUNTIME_DIR", "PMIX_SERVER_TMPDIR" };
	const char *path;
	unsigned int i;
	int fd;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		path = getenv(names[i]);
		fd = path ? open_directory(path, false) : -ENOENT;
		if (fd < 0)
			continue;
		snprintf(found->dir, sizeof(found->dir), "%s", path);
		return fd;
	}
	/* There without the variable, too, after su(1) or in a job of cron's. */
	snprintf(found->dir, sizeof(found->dir), "/run/user/%u", geteuid());
	fd = open_directory(found->dir, false);
	if (fd >= 0)
		return fd;
	snprintf(found->dir, sizeof(found->dir), "/tmp/pvasexec-%u", geteuid());
	return open_directory(found->dir, true);
}

static int read_secret(int dir, const char *file, char secret[static SECRET_LEN + 1])
{
	int fd = openat(dir, file, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat st;
	int err = 0, i;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || !is_private(&st))
		err = -EACCES;
	else if (read(fd, secret, SECRET_LEN) != SECRET_LEN)
		err = -EBADMSG;
	close(fd);
	secret[SECRET_LEN] = '\0';
	for (i = 0; !err && i < SECRET_LEN; i++)
		if (!isxdigit((unsigned char)secret[i]))
			err = -EBADMSG;
	return err;
}

/* Whole before it has its name, which only one process can give it. */
static int write_secret(int dir, const char *file)
{
	uint64_t random[3];
	char own[64], text[SECRET_LEN + 1];
	int fd, err = 0;

	if (getrandom(random, sizeof(random), 0) != sizeof(random))
		return -EIO;
	snprintf(text, sizeof(text), "%016jx%016jx", (uintmax_t)random[0], (uintmax_t)random[1]);
	snprintf(own, sizeof(own), "pvasexec.%d.%016jx", getpid(), (uintmax_t)random[2]);
	fd = openat(dir, own, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	if (write(fd, text, SECRET_LEN) != SECRET_LEN)
		err = -EIO;
	close(fd);
	if (!err && linkat(dir, own, dir, file, 0) < 0 && errno != EEXIST)
		err = -errno;
	unlinkat(dir, own, 0);
	return err;
}

static int agree_in(int dir, const char *name, char secret[static SECRET_LEN + 1])
{
	char file[NAME_LEN + 16], *p;
	int err;

	snprintf(file, sizeof(file), "pvasexec-%s", name);
	for (p = file; *p; p++)
		if (!isalnum((unsigned char)*p) && !strchr(".-@~", *p))
			*p = '_';
	err = read_secret(dir, file, secret);
	if (err != -ENOENT)
		return err;
	err = write_secret(dir, file);
	return err ? err : read_secret(dir, file, secret);
}

static int agree(struct jobkey *found, const char *name, char secret[static SECRET_LEN + 1])
{
	int dir = find_directory(found), err;

	if (dir < 0)
		return dir;
	found->secret_by = found->dir;
	err = agree_in(dir, name, secret);
	close(dir);
	return err;
}

/* ---- the key ---- */

/* 16 digits, a dash, 16 digits */
static bool launcher_secret(char secret[static SECRET_LEN + 1], const char *variable)
{
	const char *text = getenv(variable);
	unsigned int used = 0;

	for (; text && *text && used < SECRET_LEN; text++) {
		if (isxdigit((unsigned char)*text))
			secret[used++] = *text;
		else if (*text != '-')
			return false;
	}
	secret[used] = '\0';
	return used == SECRET_LEN;
}

int jobkey_find(struct jobkey *found, char *why, size_t len)
{
	static const char transports[] = "OMPI_MCA_orte_precondition_transports";
	char name[NAME_LEN + 1], secret[SECRET_LEN + 1];
	int err = 0;

	found->named_by = find_name(name);
	if (!found->named_by)
		return -ENOENT;
	found->secret_by = transports;
	if (!launcher_secret(secret, transports))
		err = agree(found, name, secret);
	if (err) {
		snprintf(why, len, "cannot agree on the job's secret in %s: %s (if it is another user's, root can remove it; or set XDG_RUNTIME_DIR, or PVAS_JOB_KEY to a secret)",
			 found->dir, strerror(-err));
		return err == -ENOENT ? -EACCES : err;
	}
	snprintf(found->key, sizeof(found->key), "%s#%s", name, secret);
	return 0;
}
