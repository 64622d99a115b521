// SPDX-License-Identifier: GPL-2.0-only
/*
 * The key of a job's space: name of the job, name of the node, and a secret, since any
 * process of this user that knows the key can create the space first, or enter it. Open
 * MPI's mpirun passes 128 random bits to its ranks. Other launchers do not, and their
 * variables can be guessed: then the first rank of a node creates a secret.
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
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "job_secret.h"
#include "open_here.h"

#define TMP "/tmp/"
#define NAME_LEN 80	/* of job and node, in a key and in the name of a file */

/* ---- the name ---- */

/* Nodes of a job that share a machine, as in tests, get different spaces. */
static const char *node_name(void)
{
	static struct utsname name;
	const char *node = getenv("SLURMD_NODENAME");

	if (node)
		return node;
	return uname(&name) ? "" : name.nodename;
}

/* Launchers may choose long names: cut them, and append a hash (FNV-1a). */
static void shorten_name(char to[static NAME_LEN + 1], const char *name)
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

/* It is unique among the user's jobs that run at the same time. */
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
		shorten_name(name, whole);
		free(whole);
		return names[i][0];
	}
	return NULL;
}

/* ---- the secret ---- */

/* @fd, or -errno, if it is a directory of this user that is closed to all others. */
static int check_private(int fd)
{
	struct stat st;
	int err;

	if (fd < 0)
		return -errno;
	err = fstat(fd, &st) ? -errno : st.st_uid != geteuid() || st.st_mode & 077 ? -EACCES : 0;
	if (!err)
		return fd;
	close(fd);
	return err;
}

static int open_private(const char *path)
{
	return check_private(open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

/* @name in @at, a public directory */
static int open_public(int at, const char *name)
{
	int path_fd, fd;

	if (mkdirat(at, name, 0700) < 0 && errno != EEXIST)
		return -errno;
	path_fd = open_here(at, name);
	if (path_fd < 0)	/* on another file system: surely not this user's */
		return path_fd == -EXDEV ? -EACCES : path_fd;
	fd = check_private(openat(path_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	close(path_fd);
	return fd;
}

static int open_in_tmp(struct jobkey *found)
{
	int at = open(TMP, O_PATH | O_DIRECTORY | O_CLOEXEC), fd;

	snprintf(found->dir, sizeof(found->dir), TMP "pvasexec-%u", geteuid());
	if (at < 0)
		return -errno;
	fd = open_public(at, found->dir + strlen(TMP));
	close(at);
	return fd;
}

/*
 * The PMIx server's for this job, which it removes at the end; or the user's own, which
 * exists without the variable, too, after su(1) or in a job of cron. -ENOENT: none
 */
static int open_directory(struct jobkey *found)
{
	static const char *const names[] = { "PMIX_SERVER_TMPDIR", "XDG_RUNTIME_DIR" };
	const char *path;
	unsigned int i;
	int fd;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		path = getenv(names[i]);
		fd = path ? open_private(path) : -ENOENT;
		if (fd < 0)
			continue;
		snprintf(found->dir, sizeof(found->dir), "%s", path);
		return fd;
	}
	snprintf(found->dir, sizeof(found->dir), "/run/user/%u", geteuid());
	fd = open_private(found->dir);
	return fd >= 0 ? fd : -ENOENT;
}

static int agree_in(int dir, struct jobkey *found, const char *name, struct job_secret *secret)
{
	int err;

	found->secret_by = found->dir;
	err = job_secret_in_directory(dir, name, secret);
	close(dir);
	return err;
}

/*
 * In a directory first, for a process in a sandbox may have no access to files, but to
 * keys. A container may have no keyring: then only a directory in /tmp is left, which
 * another user may have created.
 */
static int agree(struct jobkey *found, const char *name, struct job_secret *secret)
{
	int dir = open_directory(found);

	if (dir >= 0)
		return agree_in(dir, found, name, secret);
	found->secret_by = "the user's keyring";
	if (!job_secret_in_keyring(name, secret))
		return 0;
	dir = open_in_tmp(found);
	return dir < 0 ? dir : agree_in(dir, found, name, secret);
}

/* ---- the key ---- */

/* 16 digits, a dash, 16 digits */
static bool launcher_secret(struct job_secret *secret, const char *variable)
{
	const char *text = getenv(variable);
	unsigned int used = 0;

	for (; text && *text && used < JOB_SECRET_LEN; text++) {
		if (isxdigit((unsigned char)*text))
			secret->digits[used++] = *text;
		else if (*text != '-')
			return false;
	}
	secret->digits[used] = '\0';
	return used == JOB_SECRET_LEN;
}

int jobkey_find(struct jobkey *found, char *why, size_t len)
{
	static const char transports[] = "OMPI_MCA_orte_precondition_transports";
	char name[NAME_LEN + 1];
	struct job_secret secret;
	int err = 0;

	found->named_by = find_name(name);
	if (!found->named_by)
		return -ENOENT;
	found->secret_by = transports;
	if (!launcher_secret(&secret, transports))
		err = agree(found, name, &secret);
	if (err) {
		snprintf(why, len, "cannot agree on the job's secret in %s: %s (if it is another user's, root can remove it; or set XDG_RUNTIME_DIR, or PVAS_JOB_KEY to a secret)",
			 found->dir, strerror(-err));
		return err == -ENOENT ? -EACCES : err;
	}
	snprintf(found->key, sizeof(found->key), "%s#%s", name, secret.digits);
	return 0;
}
