/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A backend is a way to make a space and to put a process into it. The public
 * functions check their arguments, and leave the rest to its operations.
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
 * @priv:	the backend's own
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
 * struct pvas_spawn_call - one pvas_task_spawn() on its way
 * @space:	where to
 * @index:	the index asked for, or PVAS_ANY; the one got
 * @path:	the program
 * @argv:	its arguments
 * @envp:	its environment
 * @attr:	complete, never NULL
 * @pid:	out: the child
 * @err:	shared with the vfork child: what failed there, -errno
 * @stage:	how far the child came
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
 * struct pvas_backend_ops - what a backend does
 * @name:	for messages
 * @create:	make the space: fills id, shift, first, last and its own members
 *		of a handle that is zero but for @flags and @shift (wanted)
 * @destroy:	end it, and free what @create took, but not the handle
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

/* A handle of no space yet, as @a wants it. */
void pvas_space_init(struct pvas_space *s, const struct pvas_create_attr *a, int backend);

/* ---- attr.c ---- */

/* Copy the caller's @from, which may be NULL, and check it: 0 or -errno with the reason set. */
int pvas_get_create_attr(struct pvas_create_attr *to, const struct pvas_create_attr *from);

/* ---- vfork.c ---- */

/*
 * Start a child that does all pvas_spawn_attr asks for, then calls @enter (0 or
 * -errno; raw system calls only), then execve(). Returns 0 and @call->pid when the
 * program runs, or the error, with the child reaped.
 */
int pvas_vfork_exec(struct pvas_spawn_call *call, int (*enter)(struct pvas_spawn_call *call));

/* Its parts, for a backend that has no execve() to call. In the child, raw calls only: */
int pvas_child_prepare(struct pvas_spawn_call *call);

/* Set the text for an error of the child's; returns @err. */
int pvas_spawn_explain(const struct pvas_spawn_call *call, int err);

/* The stack that new processes of this handle run on: 0 or -ENOMEM; its top; its end. */
int pvas_get_stack(struct pvas_space *space);
void *pvas_stack_top(const struct pvas_space *space);
void pvas_free_stack(struct pvas_space *space);

/* ---- kernel.c ---- */

struct pvas_create;

/*
 * Open /dev/pvas, above 2 and close-on-exec, and check that the module has our ABI
 * and partitions of 1 << @shift bytes. A descriptor, or -errno with the reason set.
 */
int pvas_open_device(unsigned int shift);

/* Make a space as described in @create, and note in @s which it is. */
int pvas_kernel_create(struct pvas_space *s, struct pvas_create *create);

/* The caller's next execve() enters @space at @index, or where there is room: PVAS_ANY. */
int pvas_kernel_arm(const struct pvas_space *space, unsigned int *index);

/* Not any more. */
void pvas_kernel_disarm(const struct pvas_space *space);

/* ---- create_mm.c: the process whose mm becomes a space (kernel backend) ---- */

/* Run PVAS_IOC_CREATE on @device as described in @create, which is completed. */
int pvas_create_mm(int device, struct pvas_create *create);

#endif /* PVAS_BACKEND_H */
