/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Common to all files of the module. One subject a file; each calls only those below it:
 *
 *  pvas_core.c	    /dev/pvas, its ioctls, module init and exit
 *  pvas_proc.c	    /proc/pvas
 *  pvas_exec.c	    the binfmt handler: exec into the shared mm; its parts:
 *  pvas_program.c  is the program fit to be a task?
 *  pvas_join.c	    the change to the mm of the space
 *  pvas_stack.c    the new stack
 *  pvas_signal.c   signals that are sent during that change
 *  pvas_stay.c	    the exec of a task, which stays in its partition
 *  pvas_create.c   CREATE and ATTACH
 *  pvas_creator.c  the permitted contents of an mm that becomes a space
 *  pvas_hook.c	    ftrace hooks: on with the first space, off after the last
 *  pvas_event.c    fork, exec and exit of processes
 *  pvas_bounds.c   the hooks in mm/: placement, stacks, fork
 *  pvas_calls.c    the table of limits on a task's calls that change the mm
 *  pvas_fill.c	    the same for memory that userfaultfds fill
 *  pvas_uffd.c	    userfaultfds of a space
 *  pvas_refs.c	    references to a task's pages
 *  pvas_guard.c    the hooks that protect a task's ids and namespaces
 *  pvas_fork.c	    children: guests, and processes with a copy of the mm
 *  pvas_leave.c    leaving a space, by exit or exec
 *  pvas_reclaim.c  unmapping and freeing a partition
 *  pvas_vacate.c   freeing all memory of a space at once
 *  pvas_lock.c	    mmap_lock for the workers, which must not keep the OOM reaper from it
 *  pvas_task.c	    entering a space: SPAWN, and the creator
 *  pvas_dump.c	    the contents of a task's core file
 *  pvas_brk.c	    the brk of each task
 *  pvas_exe.c	    the program and command line that /proc shows
 *  pvas_mm.c	    layout and bounds of a partition
 *  pvas_table.c    the table of partitions in the space header
 *  pvas_admit.c    permission to enter a space
 *  pvas_member.c   members and partitions, and the lookup of a process
 *  pvas_oom.c	    the end of a space whose task the OOM killer has chosen
 *  pvas_owner.c    the owner of the mm, whose memory cgroup is charged
 *  pvas_space.c    the table of spaces, and their end
 *  pvas_share.c    each user's share of the spaces
 *  pvas_free.c	    the work queues on which mm and spaces are freed
 *  pvas_files.c    the release of mapped files, and of those of a server that may not answer
 *
 * Lifetimes. A space is held by a reference from each open file bound to it, each partition in
 * use and each iterator; it pins its mm (mm_users) as long as it can be entered, after an OOM
 * kill until all have left, and holds the struct (mm_count) to its end. A partition is held by
 * each of its members and by the reclaim work. A member stands for one process (signal_struct),
 * which it holds by a thread of it, and ends when the last thread has let go of the mm, or with
 * an exec. The creator is a member, too, of an empty partition that is in no table.
 *
 * Locks, outermost first: space->lock (spinning; partition table, states, counters),
 * pvas_members_lock (spinning; both hashes), space->label_lock. None is held over anything that
 * sleeps. The first two are taken from tracepoint probes and, where spinlocks don't sleep, a hook
 * in exit: in process context, where nothing may sleep; never from interrupts.
 *
 * With PREEMPT_RT, where spinlocks sleep unless they are raw: ftrace callbacks, which run with
 * preemption off if another tracer has the function too, take no lock but space->label_lock.
 * pvas_members_lock is raw for pvas_exit(): a stub can run without a reference to the module, as
 * that for get_task_exe_file(), and synchronize_rcu_tasks() does not wait for one that sleeps.
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
#include "pvas_layout.h"

struct cred;
struct file;
struct ns_common;
struct vm_unmapped_area_info;
struct pid;
struct pid_namespace;
struct pvas_member;

/**
 * struct pvas_origin - attributes of the creator that a process must have to enter
 * @mnt_ns:	the number of its mount namespace, see pvas_mnt_ns_number()
 * @ipc_ns:	its other namespaces, held
 * @cgroup_ns:
 * @no_new_privs: see prctl(2)
 * @seccomp_mode: 0, or its @filter is compared too
 * @filter:	the seccomp filter; there is no reference to take
 * @witness:	its parent, held, if that had the filter; or NULL
 * @relabelled: credentials with the newest version of its label, if the security policy has
 *		been reloaded, held; or NULL. Under pvas_space.label_lock
 *
 * Ids, capabilities, labels and the user namespace: pvas_space.cred.
 */
struct pvas_origin {
	u64 mnt_ns;
	struct ns_common *ipc_ns;
	struct ns_common *cgroup_ns;
	bool no_new_privs;
	int seccomp_mode;
	const void *filter;
	struct task_struct *witness;
	const struct cred *relabelled;
};

/**
 * struct pvas_files - files held while memory is unmapped, each once
 */
struct pvas_files {
	unsigned int n, room;
	struct file **file;
};

struct pvas_range {
	unsigned long start, end;
};

/* Protection keys that an mm can have, whether it has them or not */
#define PVAS_KEYS	16

/**
 * struct pvas_space - one shared mm and its partitions
 *
 * Immutable once made: @id, @shift, @first, @last, @flags, @mm, @cred,
 * @pid_ns, @origin, @loader, @table, @table_entries, @n_table_pages, @key, @key_len, @wq,
 * @late_wq, @slow_wq. The rest: under @lock.
 *
 * @paid:	for whom it counts, see pvas_share.c
 * @pinned:	the space holds mm_users of @mm
 * @files:	open files bound to it
 * @dead:	after an OOM kill, or at its end: no process may enter any more
 * @oom:		the OOM killer has chosen one of its tasks
 * @vacated:	all that is in the mm has been, or is being, freed
 * @oom_scanned: the jiffy of the last search for such a task
 * @killed:	@dead, and all members got SIGKILL; so do children forked later
 * @in_use:	partitions that are not free
 * @occupied:	processes that have the mm, and partitions that are to be unmapped
 * @coming:	processes in an exec that is about to get the mm
 * @caps:	permitted capabilities of its tasks, from the first one (@caps_set) on
 * @has_creator: the creator, or a guest of its, is still a member
 * @exe_set:	@mm's exe_file is that of a task (and not the creator's)
 * @gen:	source of pvas_part.gen
 * @table_pages: those of @table that an entry was written to, pinned; or NULL
 * @parts:	by index, NULL if free or reserved
 * @reserved:	partitions that no task gets: in use at CREATE, or they could not be unmapped
 * @members:	all tasks and guests, those that are armed, and the creator
 * @wq:		the work queue that reclaims its partitions
 * @late_wq:	the one for what can take for ever, because the user decides when it ends
 * @slow_wq:	the one for what is known to wait for a server or a monitor, so that those
 *		that do not answer keep @late_wq from nobody else
 * @early:	partitions that @wq is not done with, which @slow_wq waits for by @quiet
 * @reclaim:	held by the work item that unmaps a partition; not under @lock
 * @uffd_lock:	serializes registering areas with a userfaultfd
 * @key_owner:	of each protection key: pvas_partition.gen of its last owner, or 0; by mmap_lock
 * @uffd_moved: where registered areas were moved to during such a call, under mmap_lock
 * @slices:	unmapped so far, written by the holder of @reclaim
 * @left:	files that were mapped when the last process left, see pvas_unmap_space()
 * @vacate:	frees all memory; then @vacate_late does what can take for ever
 * @patience:	ends the wait for those that are @coming
 * @by_mm:	in the table by @mm
 * @rcu:	for pvas_space_shift_of() and the like, which take no reference
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
	raw_spinlock_t label_lock;
	struct list_head paid;
	u32 key_len;
	char key[PVAS_KEY_MAX];

	spinlock_t lock;
	bool pinned;
	bool dead;
	bool oom;
	bool vacated;
	unsigned long oom_scanned;
	bool killed;
	bool exe_set;
	bool caps_set;
	bool has_creator;
	kernel_cap_t caps;
	u32 files;
	u32 in_use;
	u32 occupied;
	u32 coming;
	u32 gen;
	u32 n_table_pages;
	struct page **table_pages;
	unsigned long *reserved;
	struct pvas_partition **parts;
	struct list_head members;
	struct semaphore reclaim;
	unsigned int slices;
	struct mutex uffd_lock;
	struct pvas_range uffd_moved;
	u32 key_owner[PVAS_KEYS];
	struct workqueue_struct *wq;
	struct workqueue_struct *late_wq;
	struct workqueue_struct *slow_wq;
	atomic_t early;
	wait_queue_head_t quiet;
	struct work_struct mmput_work;
	struct pvas_files left;
	struct work_struct vacate;
	struct work_struct vacate_late;
	struct delayed_work patience;
	struct work_struct free_work;
	struct hlist_node by_mm;
	struct rcu_head rcu;
};

/**
 * struct pvas_partition - a partition in use
 *
 * @state:	PVAS_PART_*, under space->lock
 * @members:	processes that live in it or are armed for it, under space->lock
 * @layout:	constant while it has a task
 * @brk_lock:	serializes brk calls of the task's threads
 * @brk:	written under @brk_lock, read without
 * @exe:	the program, write access denied, from exec to reclaim; under pvas_members_lock
 * @pid:	of the process that owns it
 * @reclaim:	gives back its memory; then @finish does what can take for ever
 * @files:	that were mapped in it, and are not released yet
 * @unfinished:	areas are left for @finish to unmap
 * @unclean:	areas are left as long as the mm lives
 * @ended:	for the task's next program, before @finish: it has its index no more, only @files
 *		are left. Set before @reclaimed is
 * @vacates:	with it, all memory of the space was freed
 * @successor:	its task is in an exec that stays, by which it becomes this member: nobody may
 *		begin to share its memory
 * @settle:	runs when its task first returns to user space, see pvas_settle()
 * @next:	of the same task's next program, which gets the index; under space->lock
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
	struct pvas_layout layout;
	struct mutex brk_lock;
	unsigned long brk;
	unsigned long arg_start, arg_end, env_start, env_end;
	struct file *exe;
	struct pid *pid;
	struct work_struct reclaim;
	struct work_struct finish;
	struct pvas_files files;
	bool unfinished;
	bool unclean;
	bool vacates;
	bool ended;
	struct pvas_member *successor;
	struct callback_head settle;
	struct pvas_partition *next;
	struct completion reclaimed;
	struct rcu_head rcu;
};

/* pvas_present.c */
unsigned long pvas_present_end(struct mm_struct *mm, unsigned long from, unsigned long end,
			       unsigned int *room);

/* pvas_free.c */
int pvas_free_init(void);
void pvas_free_exit(void);
void pvas_free_queue(struct work_struct *work);
void pvas_free_call(void (*fn)(struct pvas_space *space), struct pvas_space *space);
void pvas_mmput(struct pvas_space *space);

/* pvas_files.c */
void pvas_files_hold(struct pvas_files *files, struct mm_struct *mm, unsigned long from,
		     unsigned long end);
bool pvas_file_is_memory(const struct file *file);
bool pvas_file_is_local(const struct file *file);
bool pvas_files_are_local(const struct pvas_files *files);
bool pvas_files_have_changes(const struct pvas_files *files);
void pvas_files_put_memory(struct pvas_files *files);
void pvas_files_put(struct pvas_files *files);
void pvas_unmap_remote(struct pvas_space *space, struct mm_struct *mm, unsigned long from,
		       unsigned long end, bool armed);
void pvas_silence_copy(struct vm_area_struct *copy);

/* pvas_lock.c */
void pvas_lock_read(struct pvas_space *space);
void pvas_lock_write(struct pvas_space *space);
int pvas_munmap(struct pvas_space *space, unsigned long from, unsigned long len);
bool pvas_area_is_slow(const struct vm_area_struct *vma);

/* pvas_space.c */
int pvas_space_reserve_id(struct pvas_space *space);
void pvas_space_release_id(struct pvas_space *space);
void pvas_space_publish(struct pvas_space *space);
struct pvas_space *pvas_space_find(u32 id);
struct pvas_space *pvas_space_next(u32 *id);
struct pvas_space *pvas_space_get(struct pvas_space *space);
void pvas_space_put(struct pvas_space *space);
bool pvas_space_is_open(const struct pvas_space *space);
bool pvas_space_is_over(struct pvas_space *space);
bool pvas_space_vacates(struct pvas_space *space, bool patient);
bool pvas_space_leave(struct pvas_space *space);
void pvas_space_kill(struct pvas_space *space);
void pvas_space_unbind(struct pvas_space *space);
bool pvas_space_has_mm(const struct mm_struct *mm);
u32 pvas_space_shift_of(const struct mm_struct *mm);
bool pvas_space_refuses(struct mm_struct *mm, bool write);
bool pvas_space_is_large(struct mm_struct *mm);
unsigned int pvas_space_count(struct user_namespace *ns);
static inline unsigned int pvas_index_of(const struct pvas_space *space, unsigned long addr)
{
	return addr >> space->shift;
}

/* pvas_create.c */
int pvas_space_create(struct pvas_space **out, struct pvas_create *arg, const char *key);
struct pvas_space *pvas_space_attach(const char *key, u32 len);

/* pvas_creator.c */
int pvas_creator_check(void);
int pvas_creator_check_areas(struct mm_struct *mm, unsigned int shift);
void pvas_creator_settle(struct mm_struct *mm);

/* pvas_admit.c */
bool pvas_in_initial_time_ns(void);
bool pvas_ids_are_plain(const struct cred *cred);
void pvas_origin_take(struct pvas_space *space);
void pvas_origin_put(struct pvas_space *space);
struct ns_common *pvas_mnt_ns_get(void);
void pvas_ns_put(struct ns_common *ns);
bool pvas_space_may_enter(struct pvas_space *space, const struct cred *cred);
bool pvas_space_admit(struct pvas_space *space);
bool pvas_caps_last(void);
bool pvas_space_is_dumpable(struct pvas_space *space);
bool pvas_space_may_look(const struct pvas_space *space, const struct file *file);
bool pvas_space_may_see_tasks(struct pvas_space *space, const struct file *file);
bool pvas_space_may_kill(struct pvas_space *space);
bool pvas_labels_equal(const struct cred *a, const struct cred *b);
bool pvas_is_relabelled(struct pvas_space *space, const struct cred *cred);
void pvas_origin_relabel(struct pvas_space *space, const struct cred *cred);

/* pvas_share.c */
int pvas_share_take(struct pvas_space *space);
void pvas_share_give_back(struct pvas_space *space);

/* pvas_member.c; more in pvas_member.h */
struct pvas_partition *pvas_find_partition(void);
struct pvas_partition *pvas_task_partition_entered(void);
struct file *pvas_task_exe_get(struct task_struct *tsk);
bool pvas_task_has_exe(struct task_struct *tsk);
struct file *pvas_partition_exe(struct pvas_partition *part);
struct file *pvas_partition_take_exe(struct pvas_partition *part);
struct pvas_partition *pvas_partition_get_of(const struct signal_struct *sig);
void pvas_partition_put(struct pvas_partition *part);

/* pvas_task.c */
struct pvas_member *pvas_task_creator_alloc(struct pvas_space *space);
void pvas_task_creator_add(struct pvas_member *m, struct file *exe);
struct file *pvas_task_creator_remove(struct pvas_member *m);
int pvas_task_arm(struct pvas_space *space, u32 *index, bool any);
struct pvas_partition *pvas_task_armed(void);
bool pvas_task_enter(struct pvas_partition *part, struct file *exe);
bool pvas_task_join(struct pvas_space *space);
void pvas_task_entered(void);

/* pvas_leave.c */
unsigned long pvas_reclaim_wait(void);
int pvas_task_disarm(void);
void pvas_member_wait_later(struct pvas_member *m, enum task_work_notify_mode notify);
void pvas_task_leave_if_out(void);
void pvas_task_on_new_mm(void);
void pvas_task_on_exec(struct task_struct *tsk);
void pvas_task_on_exit(struct task_struct *tsk);

/* pvas_fork.c */
void pvas_task_on_fork(struct task_struct *parent, struct task_struct *child);

/* pvas_oom.c */
bool pvas_oom_has_victim(struct pvas_space *space);
void pvas_oom_on_leave(const struct pvas_member *m);
void pvas_oom_on_exit(const struct task_struct *tsk, const struct pvas_partition *part);
void pvas_oom_wait(const struct pvas_space *space, unsigned long timeout);
bool pvas_oom_was_here(struct pvas_space *space);

/* pvas_exec.c */
int pvas_exec_init(void);
void pvas_exec_exit(void);

/* pvas_mm.c */
int pvas_mm_layout(struct pvas_partition *part, const struct pvas_elf_image *image,
		   unsigned long stack_limit, bool randomize);
bool pvas_mm_foreign(const struct pvas_partition *part, unsigned long addr, unsigned long len);
bool pvas_mm_may_map(const struct pvas_partition *part, unsigned long addr, unsigned long len);
void pvas_mm_clamp(const struct pvas_partition *part, struct vm_unmapped_area_info *info);

/* pvas_table.c */
int pvas_table_init(struct pvas_space *space);
void pvas_table_exit(struct pvas_space *space);
void pvas_table_publish(struct pvas_partition *part, u32 state);

/* pvas_uffd.c */
void pvas_uffd_on_move(struct pvas_space *space, const struct vm_area_struct *vma,
		       unsigned long start, unsigned long len);
bool pvas_uffd_waits(const struct vm_area_struct *vma);

/* pvas_keys.c */
void pvas_keys_free(struct pvas_partition *part);

/* pvas_brk.c */
long pvas_mm_brk(struct pvas_partition *part, unsigned long brk);

/* pvas_exe.c */
struct file *pvas_exe_take(struct mm_struct *mm);
void pvas_exe_give_back(struct mm_struct *mm, struct file *exe);
struct file *pvas_exe_take_last(struct pvas_space *space);
struct file *pvas_exe_release(struct pvas_partition *part);
void pvas_exe_swap(struct mm_struct *mm, struct file *file);
void pvas_exe_set_args(struct mm_struct *mm, const struct pvas_partition *part);
void pvas_exe_show(struct pvas_partition *part, struct file *file);
void pvas_exe_pass_on(struct pvas_partition *gone);

/* pvas_owner.c */
bool pvas_owner_take(struct pvas_space *space, struct task_struct *tsk);
int pvas_owner_join(struct pvas_space *space);
void pvas_owner_find(struct pvas_space *space);

/* pvas_reclaim.c */
void pvas_unmap_space(struct pvas_space *space, struct pvas_files *files);
void pvas_mmput_here(struct pvas_space *space);
void pvas_reclaim_start(struct pvas_partition *part);

/* pvas_vacate.c */
void pvas_vacate_init(struct pvas_space *space);
void pvas_vacate_late(struct pvas_space *space);
void pvas_vacate_start(struct pvas_space *space);

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

/* Can it be a space's? Asked before a search in tables that one user can fill for all. */
static inline bool pvas_mm_may_be_space(const struct mm_struct *mm)
{
	return mm && pvas_mm_has_flag(mm, MMF_MULTIPROCESS);
}

/* The partition of the caller. */
static __always_inline struct pvas_partition *pvas_task_partition(void)
{
	return pvas_mm_may_be_space(current->mm) ? pvas_find_partition() : NULL;
}

#endif /* PVAS_KMOD_H */
