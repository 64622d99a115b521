// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The user backend: a task attaches the segments that the kernel would let it, not those
 * that it would let the launcher. See segment_task.c. Needs root, to have more rights.
 */
#include <stdio.h>
#include <sys/shm.h>
#include <unistd.h>

#include "helpers.h"
#include "pvas.h"
#include "kselftest_harness.h"

#define SEGMENTS	4
#define NOBODY		65534

static const struct pvas_create_attr user = {
	.size = sizeof(user), .backend = PVAS_BACKEND_USER,
};

FIXTURE(segment)
{
	struct pvas_space *s;
	int ids[SEGMENTS];
	char text[SEGMENTS][12];
};

FIXTURE_VARIANT(segment)
{
	const char *rights;
};

FIXTURE_VARIANT_ADD(segment, none) { .rights = "none" };
FIXTURE_VARIANT_ADD(segment, group) { .rights = "group" };
FIXTURE_VARIANT_ADD(segment, all) { .rights = "all" };

/* Another user's */
static int make(unsigned int mode)
{
	struct shmid_ds ds;
	int id = shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0600);

	if (id < 0 || shmctl(id, IPC_STAT, &ds))
		return -1;
	ds.shm_perm.uid = ds.shm_perm.gid = NOBODY;
	ds.shm_perm.mode = (unsigned short)mode;
	return shmctl(id, IPC_SET, &ds) ? -1 : id;
}

/* Its creator stays root: so nobody creates them. */
static int make_all(int *ids)
{
	static const unsigned int modes[SEGMENTS] = { 0600, 0644, 0660, 0666 };
	int p[2], i;
	pid_t pid;

	if (pipe(p))
		return -1;
	pid = fork();
	if (!pid) {
		if (setgid(NOBODY) || setuid(NOBODY))
			_exit(1);
		for (i = 0; i < SEGMENTS; i++)
			ids[i] = make(modes[i]);
		_exit(write(p[1], ids, SEGMENTS * sizeof(*ids)) < 0);
	}
	i = end_of(pid) || read(p[0], ids, SEGMENTS * sizeof(*ids)) <= 0;
	close(p[0]);
	close(p[1]);
	return i;
}

FIXTURE_SETUP(segment)
{
	int i;

	if (getuid())
		SKIP(return, "needs root");
	ASSERT_EQ(make_all(self->ids), 0);
	for (i = 0; i < SEGMENTS; i++) {
		ASSERT_GE(self->ids[i], 0);
		snprintf(self->text[i], sizeof(self->text[i]), "%d", self->ids[i]);
	}
	ASSERT_EQ(pvas_space_create(&self->s, &user), 0) TH_LOG("%s", pvas_error_get());
}

FIXTURE_TEARDOWN(segment)
{
	for (int i = 0; i < SEGMENTS && !getuid(); i++)
		shmctl(self->ids[i], IPC_RMID, NULL);
	if (self->s)
		pvas_space_destroy(self->s);
}

TEST_F(segment, as_the_kernel)
{
	char *argv[] = {
		(char *)ours("segment_task"), (char *)variant->rights, self->text[0],
		self->text[1], self->text[2], self->text[3], NULL,
	};
	pid_t pid = fork();

	if (!pid) {
		execv(argv[0], argv);
		_exit(1);
	}
	EXPECT_EQ(end_of(pid), 0);
	ASSERT_GT(pvas_task_spawn(self->s, PVAS_ANY, argv[0], argv, environ, NULL, &pid), 0);
	EXPECT_EQ(end_of(pid), 0);
}

TEST_HARNESS_MAIN
