/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * libpvas - processes of one job in one partitioned address space.
 *
 * A *space* is one address space cut into equal *partitions*; a *task* is a
 * process that runs in one, alone in its partition. A pointer made by one
 * task is valid in every other, so passing data is a load, a store or one
 * memcpy(). See pvas(7) for the model and its limits.
 *
 * The model follows A. Shimada, A. Hori, Y. Ishikawa, "Eliminating Costs for
 * Crossing Process Boundary from MPI Intra-node Communication" (EuroMPI/ASIA
 * 2014) and their "A new task model for many-core" (MES '13).
 *
 * Conventions, for every function here:
 *  - a function that returns int returns 0 or a positive result on success and
 *    a negative errno value (-EINVAL, ...) on failure; errno is not touched;
 *  - sizes are in bytes, times in milliseconds;
 *  - an *index* names a partition; 0 is reserved and never a task's;
 *  - functions of a launcher take a handle, which only one thread may use at a time;
 *    functions of a task need no handle and may be called from any thread at any
 *    time, and, except pvas_name_export() and pvas_name_unexport(), from a signal
 *    handler too;
 *  - in a struct that begins with @size, set it to sizeof the struct, or to 0 for
 *    the size first published. A later, larger struct is accepted if its
 *    members that this library does not know are zero (-E2BIG if not).
 */
#ifndef PVAS_H
#define PVAS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PVAS_VERSION_MAJOR 1
#define PVAS_VERSION_MINOR 0

/* As an index, "any": pvas_task_spawn() chooses one, pvas_name_import() looks at all. */
#define PVAS_ANY ((unsigned int)-1)

/* The longest name pvas_name_export() takes, without the terminating NUL. */
#define PVAS_NAME_MAX 63

/* How many names one task can export at a time. */
#define PVAS_EXPORT_MAX 255

/* ------------------------------------------------------------------ */
/* For launchers: create a space, start tasks in it                    */
/* ------------------------------------------------------------------ */

/** struct pvas_space - a launcher's handle of a space */
struct pvas_space;

/** enum pvas_backend - how a space is implemented */
enum pvas_backend {
	PVAS_BACKEND_AUTO,	/* kernel if /dev/pvas can be opened, else user */
	PVAS_BACKEND_KERNEL,	/* the module pvas.ko */
	PVAS_BACKEND_USER,	/* seccomp user notification: no module, no root */
};

/**
 * struct pvas_create_attr - attributes of a space; all zero is the default
 * @size:	sizeof(struct pvas_create_attr)
 * @backend:	enum pvas_backend
 * @partition_size: bytes in a partition, a power of two from 4 GiB to 8 TiB;
 *		0: 64 GiB
 * @flags:	PVAS_KEEP_ON_CLOSE or 0
 */
struct pvas_create_attr {
	size_t size;
	int backend;
	unsigned int flags;
	uint64_t partition_size;
};

/* The tasks outlive the launcher. By default they are killed when its handle
 * is destroyed or the launcher dies, so that a killed job leaks nothing. */
#define PVAS_KEEP_ON_CLOSE (1U << 0)

/**
 * pvas_space_create - create a space
 * @space:	receives the handle
 * @attr:	its attributes; NULL for the default
 *
 * The caller does not enter the space: it remains an ordinary process.
 *
 * Return: 0, or
 *  -ENODEV	PVAS_BACKEND_KERNEL and there is no /dev/pvas (is the module loaded?)
 *  -EACCES	this user may not open /dev/pvas, or (user backend) may not
 *		install a seccomp filter
 *  -EPROTO	the module has another ABI version (see pvas_error_get())
 *  -EINVAL	a bad attribute; -E2BIG: an unknown one
 *  -EBUSY	user backend: the caller has a space of it already
 *  -ENOSYS	user backend: not available here (see pvas_error_get()), or
 *		PVAS_KEEP_ON_CLOSE
 *  -ENOSPC	the module's limit of spaces is reached, for all or for this user
 *  -EPERM	the caller has mixed ids; kernel backend: or is not dumpable, or not in
 *		the initial time namespace; user backend: or execve() would change its
 *		capabilities
 *  -EOPNOTSUPP	the kernel refused a hook of the module (see the kernel log)
 *  -EAGAIN	too many processes, or the one that creates the space was killed
 *  -ENOMEM	no memory, or no free addresses for the header or the partitions
 *  -EMFILE, -ENFILE: too many open files
 */
int pvas_space_create(struct pvas_space **space, const struct pvas_create_attr *attr);

/**
 * pvas_space_destroy - end a space and free its handle
 * @space:	the handle; NULL is allowed and does nothing
 *
 * Tasks that still run are killed (SIGKILL), unless the space was created with
 * PVAS_KEEP_ON_CLOSE. They remain children of the caller, which should wait for them.
 * Programs that have left the space by execve() live on.
 *
 * Return: 0.
 */
int pvas_space_destroy(struct pvas_space *space);

/**
 * struct pvas_spawn_attr - how to start a task; all zero is the default
 * @size:	sizeof(struct pvas_spawn_attr)
 * @flags:	PVAS_SPAWN_NO_ASLR, PVAS_SPAWN_SAME_RIGHTS, PVAS_SPAWN_KEEP
 * @fds:	the task's standard input, output and error: descriptors of the
 *		caller, used if @set_fds is not 0; -1 leaves the caller's own
 * @set_fds:	whether @fds is used
 * @cwd:	its working directory; NULL: the caller's
 * @setup:	called in the new process just before execve(), with the
 *		caller's memory (as after vfork): may call only
 *		async-signal-safe functions; for setpgid, affinity, rlimits. It may not
 *		change ids, capabilities, namespaces or filters (-EPERM). If it returns
 *		a negative errno, the spawn fails with that error
 * @setup_arg:	its argument
 * @keep:	used with PVAS_SPAWN_KEEP: descriptors above 2, ascending
 * @nr_keep:	how many
 */
struct pvas_spawn_attr {
	size_t size;
	unsigned int flags;
	int set_fds;
	int fds[3];
	const char *cwd;
	int (*setup)(void *arg);
	void *setup_arg;
	const int *keep;
	size_t nr_keep;
};

/* At fixed places in the partition: the task's personality(2) gets ADDR_NO_RANDOMIZE. */
#define PVAS_SPAWN_NO_ASLR (1U << 0)

/*
 * The caller promises that this thread has the rights with which the space was made, and that
 * @setup changes none: the user backend then doesn't compare them in /proc, which takes a good
 * part of the time of a start. With the kernel backend it has no effect.
 */
#define PVAS_SPAWN_SAME_RIGHTS (1U << 1)

/*
 * The caller promises that, when @setup has returned, no descriptor above 2 but those of @keep is
 * without FD_CLOEXEC: the user backend then closes all others, without looking at each. With the
 * kernel backend it has no effect.
 */
#define PVAS_SPAWN_KEEP (1U << 2)

/**
 * pvas_task_spawn - start a program as a task
 * @space:	the space
 * @index:	the partition it gets, or PVAS_ANY
 * @path:	the program (no search in PATH: see pvas_program_find())
 * @argv:	its arguments, argv[0] included
 * @envp:	its environment
 * @attr:	how; NULL for the default
 * @pid:	receives the id of the new process, a child of the caller, which
 *		should wait for it
 *
 * In the task all signals are unblocked and have their default action, as after
 * posix_spawn() with both sets full.
 *
 * It returns when the start can no longer fail: for a moment the new task may
 * still be PVAS_TASK_STARTING.
 *
 * Return: the index the task got, or
 *  -EINVAL	bad index or attribute, or (user backend) another process created
 *		the space; -E2BIG: an unknown attribute, or too many arguments
 *  -EBUSY	the partition is taken
 *  -ENOSPC	PVAS_ANY and none is free
 *  -ENOENT, -EACCES, -ENOTDIR, -ELOOP, -ENAMETOOLONG, ... from execve(2)
 *  -ENOEXEC	not a position-independent executable for this machine;
 *		pvas_program_check() says more
 *  -ELIBBAD	its ELF interpreter is malformed
 *  -EPERM	set-uid, set-gid, carries capabilities or may not be read; or
 *		the caller, or the new process after @attr's setup, does not have
 *		the rights of the space's tasks
 *  -ESRCH	the space has ended
 *  -EAGAIN	too many processes, or threads (user backend)
 *  -ECHILD	the new process was killed before it got that far
 *  -ENOMEM	it does not fit into the partition, or no memory
 *  -EMFILE	user backend: too many open files
 *  or what @attr's setup or chdir(2) to its cwd returned
 */
int pvas_task_spawn(struct pvas_space *space, unsigned int index, const char *path,
		    char *const argv[], char *const envp[],
		    const struct pvas_spawn_attr *attr, pid_t *pid);

/**
 * pvas_program_find - find a program as execvp(3) does
 * @name:	a path, or a name to be looked up in @path_env
 * @path_env:	a PATH value; NULL: getenv("PATH")
 * @buf:	receives the path
 * @len:	its size in bytes
 *
 * Return: 0, -ENOENT (not found), -EACCES (found, but not executable),
 * -ENAMETOOLONG.
 */
int pvas_program_find(const char *name, const char *path_env, char *buf, size_t len);

/**
 * pvas_program_check - check whether a program can be a task
 * @path:	the program; for a #! script, its interpreter is checked
 * @why:	receives one line with the reason if it can't; may be NULL
 * @len:	size of @why in bytes
 *
 * Return: 0, or the error pvas_task_spawn() would give: -ENOENT, -ENOTDIR, -EACCES,
 * -ENOEXEC, -ELIBBAD, -EPERM, -ELOOP (scripts that interpret scripts, or links),
 * -ENAMETOOLONG, -ENOMEM.
 */
int pvas_program_check(const char *path, char *why, size_t len);

/**
 * pvas_error_get - text that explains the last failure in this thread
 *
 * Return: one line of text without a newline, "" if there is nothing to add
 * to the errno value. Valid until the thread's next call into libpvas.
 */
const char *pvas_error_get(void);

/** pvas_space_get_backend - the backend of a space: PVAS_BACKEND_KERNEL or _USER */
int pvas_space_get_backend(const struct pvas_space *space);

/**
 * pvas_space_get_id - the id of a space, as in PVAS_SPACE and /proc/pvas
 * @space:	a launcher's handle; NULL: the space the caller is a task of
 *
 * Return: the id, or 0: @space is NULL and the caller is not a task.
 */
uint32_t pvas_space_get_id(const struct pvas_space *space);

/**
 * pvas_space_get_bounds - the geometry of a space
 * @space:	a launcher's handle; NULL: the space the caller is a task of
 * @first:	receives the lowest index a task can have; may be NULL
 * @last:	receives the highest; may be NULL
 * @partition_size: receives the bytes in a partition; may be NULL
 *
 * Return: 0, or -ESRCH (@space is NULL and the caller is not a task).
 */
int pvas_space_get_bounds(const struct pvas_space *space, unsigned int *first,
			  unsigned int *last, uint64_t *partition_size);

/* ------------------------------------------------------------------ */
/* For processes that another launcher starts (srun, mpirun)           */
/* ------------------------------------------------------------------ */

/* The longest key of pvas_space_join(), in bytes. */
#define PVAS_JOIN_KEY_MAX 128

/**
 * pvas_space_join - find the space with this key, or create it
 * @space:	receives the handle
 * @key:	1 to PVAS_JOIN_KEY_MAX bytes that name the job
 * @attr:	its attributes if it is created; NULL for the default
 *
 * For processes without a common parent that could create the space: the first
 * creates it, the others find it. Only the user's own spaces are found. The space
 * exists until all its handles are destroyed and all its tasks have ended:
 * destroying a handle does not end the tasks. Needs the kernel backend.
 *
 * Return: 0, or an error as from pvas_space_create(), or
 *  -ENOSYS	@attr asks for the user backend, or the module does not support keys
 *  -EAGAIN	several times the space ended after it was found
 *  -EINVAL	a key too short or too long
 */
int pvas_space_join(struct pvas_space **space, const char *key,
		    const struct pvas_create_attr *attr);

/**
 * pvas_task_exec - become a task: execve(2) into a space
 * @space:	from pvas_space_join() or pvas_space_create() with the kernel backend
 * @index:	the partition to take, or PVAS_ANY
 * @path:	the program
 * @argv:	its arguments
 * @envp:	its environment
 *
 * Does not return on success. If it fails, the caller is unchanged.
 *
 * Return: an error as from pvas_task_spawn(), -ENOSYS (not the kernel backend), or
 * -EALREADY (the caller is already set to enter a space).
 */
int pvas_task_exec(struct pvas_space *space, unsigned int index, const char *path,
		   char *const argv[], char *const envp[]);

/* ------------------------------------------------------------------ */
/* Queries                                                             */
/* ------------------------------------------------------------------ */

/** enum pvas_task_state - state of a partition */
enum pvas_task_state {
	PVAS_TASK_FREE,		/* no task has it */
	PVAS_TASK_STARTING,	/* taken, its program is not running yet */
	PVAS_TASK_RUNNING,
	PVAS_TASK_ENDING,	/* its task is gone, its memory being freed */
	PVAS_TASK_RESERVED,	/* can't be a task's */
};

/**
 * struct pvas_task_info - one task
 * @index:	its partition
 * @pid:	its process id
 * @state:	enum pvas_task_state
 * @gen:	changes each time the partition is taken: distinguishes a task from
 *		its successor in the same partition
 * @base:	where the partition begins
 * @length:	bytes in it
 */
struct pvas_task_info {
	unsigned int index;
	pid_t pid;
	int state;
	unsigned int gen;
	void *base;
	size_t length;
};

/**
 * pvas_task_list - list the tasks of a space in the order of their indices
 * @space:	a launcher's handle; NULL: the space the caller is a task of
 * @tasks:	receives up to @room entries; may be NULL if @room is 0
 * @room:	entries @tasks has room for
 *
 * Return: the number of tasks (may exceed @room), -ENOMEM, or -ESRCH
 * (@space is NULL and the caller is not a task).
 */
int pvas_task_list(const struct pvas_space *space, struct pvas_task_info *tasks, size_t room);

/**
 * pvas_task_get_index - the caller's index
 *
 * Return: the index, or -ESRCH: not a task. A fork child of a task is an
 * ordinary process and not a task; a vfork child counts as its parent.
 */
int pvas_task_get_index(void);

/**
 * pvas_partition_get - where a partition lies
 * @index:	the partition
 * @base:	receives its first address; may be NULL
 * @length:	receives its length in bytes; may be NULL
 *
 * Return: 0, -ESRCH (not a task), -EINVAL (no such index).
 */
int pvas_partition_get(unsigned int index, void **base, size_t *length);

/**
 * pvas_task_find - find the task that owns an address
 * @addr:	any address
 *
 * Return: the index of the task in whose partition @addr lies, -ENOENT if there is
 * none, -ESRCH if the caller is not a task.
 */
int pvas_task_find(const void *addr);

/**
 * pvas_task_get - describe one task, with plain loads and no system call
 * @index:	its partition
 * @info:	receives the description
 *
 * Cheap enough for a wait loop that has to detect the end of a peer.
 *
 * Return: 0, -ESRCH (not a task), -EINVAL (no such index).
 */
int pvas_task_get(unsigned int index, struct pvas_task_info *info);

/**
 * pvas_exec_leave - have the programs that the caller runs leave the space
 * @leave:	1: a program that this task runs by execve(2) runs outside the space, as an
 *		ordinary process; 0: it stays a task, if it can be one, as by default
 *
 * This sets PVAS_EXEC in the environment to leave or stay, and is as safe in threads as
 * setenv(3). If the program gets another environment, put PVAS_EXEC there.
 *
 * Return: 0, -EINVAL (@leave is neither 0 nor 1), -ENOMEM.
 */
int pvas_exec_leave(int leave);

/* ------------------------------------------------------------------ */
/* Export and import: find each other's data by name                    */
/* ------------------------------------------------------------------ */

/**
 * pvas_name_export - publish a pointer under a name
 * @name:	1 to PVAS_NAME_MAX bytes
 * @ptr:	any value, NULL included
 *
 * A task that imports the name sees the caller's earlier stores. Names are per
 * task: two tasks can export the same name. It is removed when the task ends.
 *
 * Return: 0, -EEXIST (the caller already exports it), -EINVAL (name too long
 * or empty), -ENOSPC (it exports PVAS_EXPORT_MAX names), -ESRCH (not a task).
 */
int pvas_name_export(const char *name, const void *ptr);

/**
 * pvas_name_unexport - withdraw a name that the caller exports
 *
 * Return: 0, -ENOENT, -EINVAL, -ESRCH.
 */
int pvas_name_unexport(const char *name);

/**
 * pvas_name_import - look up a name that a task exports
 * @index:	the task; PVAS_ANY: the lowest index that exports the name
 * @name:	the name
 * @ptr:	receives the pointer
 *
 * Return: the index of the exporting task, -ENOENT (not exported now),
 * -EINVAL, -ESRCH (not a task).
 */
int pvas_name_import(unsigned int index, const char *name, void **ptr);

/**
 * pvas_name_import_wait - wait until a name is exported, then look it up
 * @index:	the task, or PVAS_ANY
 * @name:	the name
 * @timeout_ms:	how long to wait; negative: no limit
 * @ptr:	receives the pointer
 *
 * It also waits for a task in a partition that has had none yet.
 *
 * Return: as pvas_name_import(), or -ETIMEDOUT, or -EOWNERDEAD: the task at @index
 * has ended without exporting the name.
 */
int pvas_name_import_wait(unsigned int index, const char *name, int timeout_ms, void **ptr);

/** pvas_version_get - the library's version at run time, major << 16 | minor */
unsigned int pvas_version_get(void);

#ifdef __cplusplus
}
#endif
#endif /* PVAS_H */
