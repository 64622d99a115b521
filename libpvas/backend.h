/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A backend implements spaces: how they are created, and how processes enter them. The
 * public functions check their arguments and call its operations.
 */
#ifndef PVAS_BACKEND_H
#define PVAS_BACKEND_H

#include <sys/types.h>

#include "private.h"
#include "pvas.h"

struct pvas_backend_ops;

/**
 * struct pvas_space - a launcher's handle
 * @ops:	of the backend
 * @backend:	PVAS_BACKEND_KERNEL or _USER
 * @flags:	of struct pvas_create_attr
 * @id:		the space
 * @shift:	log2 of the partition size
 * @first:	lowest index a task can have
 * @last:	highest index a task can have
 * @device:	kernel backend: the file the space is bound to, else -1
 * @stack:	for the processes that pvas_task_spawn() starts; see vfork.c
 * @priv:	private to the backend
 */
struct pvas_space {
	const struct pvas_backend_ops *ops;
	int backend;
	unsigned int flags;
	uint32_t id;
	unsigned int shift;
	uint32_t first;
	uint32_t last;
	int device;
	void *stack;
	void *priv;
};

/**
 * struct pvas_spawn_call - a pvas_task_spawn() in progress
 * @space:	the space to start it in
 * @index:	the requested index, or PVAS_ANY; then the actual one
 * @path:	the program
 * @argv:	its arguments
 * @envp:	its environment
 * @attr:	complete, never NULL
 * @pid:	out: the child
 * @err:	written by the vfork child: its error, -errno
 * @stage:	written by the vfork child: its last step
 */
struct pvas_spawn_call {
	struct pvas_space *space;
	unsigned int index;
	const char *path;
	char *const *argv;
	char *const *envp;
	struct pvas_spawn_attr attr;
	pid_t pid;
	volatile int err;
	volatile int stage;
};

/**
 * struct pvas_backend_ops - operations of a backend
 * @name:	for messages
 * @create:	create the space: sets id, shift, first, last and its own members of
 *		a new handle, whose @flags and @shift are the wanted ones
 * @destroy:	end it, and free what @create allocated, but not the handle
 * @spawn:	start a process and make it a task; sets pid and index
 * @tasks:	as pvas_task_list()
 */
struct pvas_backend_ops {
	const char *name;
	int (*create)(struct pvas_space *space);
	void (*destroy)(struct pvas_space *space);
	int (*spawn)(struct pvas_spawn_call *call);
	int (*tasks)(const struct pvas_space *space, struct pvas_task_info *tasks, size_t room);
};

extern const struct pvas_backend_ops pvas_kernel_ops;
extern const struct pvas_backend_ops pvas_user_ops;

/* ---- space.c ---- */

/* Initialise a handle for a space with the attributes @a, which does not exist yet. */
void pvas_space_init(struct pvas_space *s, const struct pvas_create_attr *a, int backend);

/* ---- attr.c ---- */

/* Copy the caller's @from, which may be NULL, and check it: 0 or -errno with the text set. */
int pvas_get_create_attr(struct pvas_create_attr *to, const struct pvas_create_attr *from);

/* ---- vfork.c ---- */

/*
 * Start a child that applies the attributes, then calls @enter (0 or -errno; raw
 * system calls only), then execve(). Returns 0 and sets @call->pid when the program
 * runs; on an error the child has been reaped.
 */
int pvas_vfork_exec(struct pvas_spawn_call *call, int (*enter)(struct pvas_spawn_call *call));

/* The part that applies the attributes, in the child: for a backend without an execve(). */
int pvas_child_prepare(struct pvas_spawn_call *call);

/* Wait for a child that has failed. */
void pvas_reap(pid_t pid);

/* Set the text for an error in the child; returns @err. */
int pvas_spawn_explain(const struct pvas_spawn_call *call, int err);

/* The stack on which new processes start: allocate it (0 or -ENOMEM), get its top, free it. */
int pvas_get_stack(struct pvas_space *space);
void *pvas_stack_top(const struct pvas_space *space);
void pvas_free_stack(struct pvas_space *space);

/* ---- kernel.c ---- */

struct pvas_create;

/*
 * Open /dev/pvas as a close-on-exec descriptor above 2, and check that the module has
 * the same ABI and supports partitions of 1 << @shift bytes. -errno: the text is set.
 */
int pvas_open_device(unsigned int shift);

/* Create a space as described in @create, and store its id and bounds in @s. */
int pvas_kernel_create(struct pvas_space *s, struct pvas_create *create);

/* Let the caller's next execve() enter @space at @index; PVAS_ANY is replaced by a free one. */
int pvas_kernel_arm(const struct pvas_space *space, unsigned int *index);

/* Undo this. */
void pvas_kernel_disarm(const struct pvas_space *space);

/* ---- create_mm.c: the process whose mm becomes a space (kernel backend) ---- */

/* Run PVAS_IOC_CREATE with @create on @device, in a new mm; sets the "out" members. */
int pvas_create_mm(int device, struct pvas_create *create);

#endif /* PVAS_BACKEND_H */
