/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the files of the module share. One subject a file:
 *
 *  pvas_core.c   /dev/pvas, its ioctls, module init and exit
 *  pvas_space.c  spaces: making, finding, ending
 *  pvas_creator.c what the mm that becomes a space may hold
 *  pvas_admit.c  who may enter a space
 *  pvas_share.c  each user's share of the spaces
 *  pvas_task.c   membership: which process lives in which partition
 *  pvas_exec.c   the binfmt handler: exec into the shared mm
 *  pvas_mm.c     placement, bounds, the per-task brk, reclaim
 *  pvas_hook.c   ftrace hooks and tracepoint probes: on with the first space,
 *		  off with the last
 *  pvas_bounds.c which of mm/'s functions are hooked: placement, stacks, fork
 *  pvas_calls.c  the table of what a task's calls may do to the mm
 *  pvas_uffd.c   userfaultfds of a space
 *  pvas_guard.c  a task's ids and namespaces: which functions are hooked to keep them
 *  pvas_proc.c   /proc/pvas
 *  pvas_dump.c   what a task's core file holds
 *
 * Lifetimes. A space is held by a reference from each open file bound to it,
 * each partition in use and each walker; it pins its mm (mm_users) while it
 * can still be entered, and keeps the struct itself (mm_count) to its end. A
 * partition is held by each of its members and by the reclaim work. A member
 * stands for one process (signal_struct), which it holds by a thread of it, and
 * goes when the last thread has let go of the mm, or with an exec. The creator is a
 * member too, of an empty partition that stands in no table.
 *
 * Locks, outermost first: space->lock (spinning; partition table, states,
 * counters), pvas_members_lock (spinning; both hashes). Neither is held over
 * anything that sleeps. Both are taken from tracepoint probes, which run
 * with preemption off in process context, never from interrupts.
 */
#ifndef PVAS_KMOD_H
#define PVAS_KMOD_H

#include <linux/binfmts.h>
#include <linux/capability.h>
#include <linux/completion.h>
#include <linux/kref.h>
#include <linux/mm_types.h>
#include <linux/mutex.h>
#include <linux/sched.h>
#include <linux/semaphore.h>
#include <linux/spinlock.h>
#include <linux/task_work.h>
#include <linux/workqueue.h>

#include "../include/uapi/linux/pvas.h"
#include "compat.h"

struct cred;
struct file;
struct pvas_elf_image;
struct ns_common;
struct vm_unmapped_area_info;
struct pid;
struct pid_namespace;

/**
 * struct pvas_origin - what the creator was, and those who enter must be
 * @mnt_ns:	its namespaces, held
 * @ipc_ns:
 * @cgroup_ns:
 * @no_new_privs: see prctl(2)
 * @seccomp_mode: 0, or its @filter is compared too
 * @filter:	the seccomp filter; can't be held
 * @witness:	its parent, held, if that had the filter; or NULL
 *
 * Ids, capabilities, labels and the user namespace: pvas_space.cred.
 */
struct pvas_origin {
	struct ns_common *mnt_ns;
	struct ns_common *ipc_ns;
	struct ns_common *cgroup_ns;
	bool no_new_privs;
	int seccomp_mode;
	const void *filter;
	struct task_struct *witness;
};

/**
 * struct pvas_space - one shared mm and its partitions
 *
 * Immutable once made: @id, @shift, @first, @last, @flags, @mm, @cred,
 * @pid_ns, @origin, @loader, @table, @table_entries, @key, @key_len, @wq. The rest: under @lock.
 *
 * @pinned:	we hold mm_users of @mm
 * @files:	open files bound to it
 * @dead:	an OOM kill struck it, or it is over: never to be entered again
 * @oom:		an OOM kill struck it
 * @oom_looked:	the jiffy in which all members were last looked through for one
 * @killed:	@dead, and all its members got SIGKILL; what is forked later gets it too
 * @in_use:	partitions that are not free
 * @occupied:	those of them that a process has entered, and the creator's
 * @caps:	permitted capabilities of its tasks, from the first one (@caps_set) on
 * @has_creator: the creator is a member still, or a guest of its
 * @exe_set:	@mm's exe_file is that of a task (and not the creator's)
 * @gen:	source of pvas_part.gen
 * @parts:	by index, NULL if free or reserved
 * @reserved:	partitions that are never a task's; one joins them if it can't be unmapped
 * @members:	all tasks and guests, those that are armed, and the creator
 * @wq:		where its partitions are reclaimed
 * @reclaim:	whose turn it is to unmap; not under @lock
 * @uffd_lock:	one task registers areas with a userfaultfd at a time
 * @slices:	how many were unmapped, by whoever has the turn
 */
struct pvas_space {
	struct kref ref;
	u32 id;
	u32 shift;
	u32 first;
	u32 last;
	u32 flags;
	u32 table_entries;
	unsigned long loader;
	unsigned long table;
	struct mm_struct *mm;
	const struct cred *cred;
	struct pid_namespace *pid_ns;
	struct pvas_origin origin;
	u32 key_len;
	char key[PVAS_KEY_MAX];

	spinlock_t lock;
	bool pinned;
	bool dead;
	bool oom;
	unsigned long oom_looked;
	bool killed;
	bool exe_set;
	bool caps_set;
	bool has_creator;
	kernel_cap_t caps;
	u32 files;
	u32 in_use;
	u32 occupied;
	u32 gen;
	unsigned long *reserved;
	struct pvas_partition **parts;
	struct list_head members;
	struct semaphore reclaim;
	unsigned int slices;
	struct mutex uffd_lock;
	struct workqueue_struct *wq;
	struct work_struct free_work;
};

/**
 * struct pvas_partition - a partition in use
 *
 * @state:	PVAS_PART_*, under space->lock
 * @members:	processes that live in it or are armed for it, under space->lock
 * @brk_lock:	serializes brk calls of the task's threads
 * @brk:	written under @brk_lock, read without
 * @mmap_top:	mmaps end here; see pvas_layout.h
 * @skew:	so far below @stack its contents end
 * @exe:	the program, write access denied; set at exec, cleared at reclaim,
 *		under pvas_members_lock
 * @pid:	of the process that owns it
 */
struct pvas_partition {
	struct kref ref;
	struct pvas_space *space;
	u32 index;
	u32 gen;
	u32 state;
	u32 members;
	unsigned long base;
	unsigned long end;
	unsigned long load;
	unsigned long heap;
	unsigned long mmap_top;
	struct mutex brk_lock;
	unsigned long brk;
	unsigned long arg_start, arg_end, env_start, env_end;
	unsigned long stack;
	unsigned long skew;
	struct file *exe;
	struct pid *pid;
	struct work_struct reclaim;
	struct completion reclaimed;
	struct rcu_head rcu;
};

/**
 * struct pvas_member - a process in a partition, or armed to be
 * @node:	in the hash of members
 * @armed_node:	in the hash of the armed
 * @list:	in space->members
 * @signal:	the key. It survives exec and the change of the group leader
 * @tsk:	a thread of the process, perhaps gone: held, it holds @signal, whose
 *		memory would else be another process's one day
 * @threads:	threads of the process that have the mm, under pvas_members_lock;
 *		without those that the kernel made for itself
 * @entering:	exec is still building the task: hooks look away
 * @work:	runs when the process has left
 */
struct pvas_member {
	struct hlist_node node;
	struct hlist_node armed_node;
	struct list_head list;
	struct signal_struct *signal;
	struct task_struct *tsk;
	struct pvas_partition *part;
	struct pid *pid;
	int threads;
	bool entering;
	struct callback_head work;
	struct rcu_head rcu;
};

/* pvas_space.c */
int pvas_space_create(struct pvas_space **out, struct pvas_create *arg, const char *key);
struct pvas_space *pvas_space_attach(const char *key, u32 len);
bool pvas_space_is_open(const struct pvas_space *space);
struct pvas_space *pvas_space_find(u32 id);
struct pvas_space *pvas_space_next(u32 *id);
struct pvas_space *pvas_space_get(struct pvas_space *space);
void pvas_mmput(struct mm_struct *mm);
void pvas_space_put(struct pvas_space *space);
bool pvas_space_has_mm(const struct mm_struct *mm);
void pvas_space_unbind(struct pvas_space *space);
bool pvas_space_is_over(struct pvas_space *space);
void pvas_space_oom(struct pvas_space *space);
u32 pvas_space_shift_of(const struct mm_struct *mm);
bool pvas_space_is_vacant(struct mm_struct *mm);
unsigned int pvas_space_count(struct user_namespace *ns);
int pvas_space_init(void);
void pvas_space_exit(void);
static inline unsigned int pvas_index_of(const struct pvas_space *space, unsigned long addr)
{
	return addr >> space->shift;
}

/* pvas_creator.c */
int pvas_creator_check(void);
int pvas_creator_check_areas(struct mm_struct *mm, unsigned int shift);
bool pvas_creator_left_too_much(struct mm_struct *mm);

/* pvas_admit.c */
bool pvas_in_initial_time_ns(void);
bool pvas_ids_are_plain(const struct cred *cred);
void pvas_origin_take(struct pvas_space *space);
void pvas_origin_put(struct pvas_space *space);
bool pvas_space_may_enter(struct pvas_space *space, const struct cred *cred);
bool pvas_space_admit(struct pvas_space *space);
bool pvas_space_is_dumpable(const struct pvas_space *space);
bool pvas_space_may_look(const struct pvas_space *space, const struct file *file);

/* pvas_share.c */
int pvas_share_take(const struct cred *cred);
void pvas_share_give_back(const struct cred *cred);

/* pvas_task.c */
struct pvas_member *pvas_task_creator_alloc(struct pvas_space *space);
void pvas_task_creator_drop(struct pvas_member *m);
void pvas_task_creator_add(struct pvas_member *m, struct file *exe);
int pvas_task_arm(struct pvas_space *space, u32 *index, bool any);
int pvas_task_disarm(void);
struct pvas_partition *pvas_task_armed(void);
void pvas_task_leave_for_exec(void);
bool pvas_task_enter(struct pvas_partition *part, struct file *exe);
void pvas_task_entered(void);
struct file *pvas_partition_exe(struct pvas_partition *part);
struct file *pvas_task_take_exe(struct pvas_partition *part);
struct pvas_partition *pvas_task_partition(void);
struct pvas_partition *pvas_task_partition_entered(void);
struct file *pvas_task_exe_get(struct task_struct *tsk);
bool pvas_task_has_exe(struct task_struct *tsk);
void pvas_task_on_fork(struct task_struct *parent, struct task_struct *child);
void pvas_task_on_exec(struct task_struct *tsk);
void pvas_task_on_exit(struct task_struct *tsk);
bool pvas_task_struck_by_oom(struct pvas_space *space);
void pvas_task_kill_all(struct pvas_space *space);
void pvas_partition_put(struct pvas_partition *part);
void pvas_partition_free(struct pvas_partition *part, bool reuse);

/* pvas_exec.c */
int pvas_exec_init(void);
void pvas_exec_exit(void);

/* pvas_mm.c */
struct file *pvas_mm_take_exe(struct mm_struct *mm);
void pvas_mm_give_back_exe(struct mm_struct *mm, struct file *exe);
void pvas_mm_drop_exe(struct pvas_partition *part);
int pvas_mm_layout(struct pvas_partition *part, const struct pvas_elf_image *image,
		   unsigned long stack_limit, bool randomize);
void pvas_mm_publish(struct pvas_partition *part, u32 state);
void pvas_mm_find_owner(struct pvas_space *space);
bool pvas_mm_own(struct pvas_space *space, struct task_struct *tsk);
void pvas_mm_reclaim(struct pvas_partition *part);
void pvas_mm_show_program(struct pvas_partition *part, struct file *file);
void pvas_mm_clamp(const struct pvas_partition *part, struct vm_unmapped_area_info *info);
long pvas_mm_brk(struct pvas_partition *part, unsigned long brk);
bool pvas_mm_foreign(const struct pvas_partition *part, unsigned long addr, unsigned long len);
void pvas_mm_fix_fork_child(struct pvas_partition *part, struct task_struct *child);

/* pvas_hook.c */
int pvas_hook_init(void);
void pvas_hook_exit(void);
int pvas_hook_get(void);
void pvas_hook_put(void);

/* pvas_proc.c */
int pvas_proc_init(void);
void pvas_proc_exit(void);

/* pvas_dump.c */
void pvas_dump_adopt(void);

/* module parameters, pvas_core.c */
extern unsigned int pvas_max_spaces;
extern unsigned int pvas_max_spaces_per_user;
extern unsigned int pvas_reclaim_wait_ms;

#endif /* PVAS_KMOD_H */
