/* SPDX-License-Identifier: GPL-2.0-only */
/* Linux 6.1 and later, for compat.h: the same as in 5.10.h, where the module has both. */
#ifndef PVAS_COMPAT_6_1_H
#define PVAS_COMPAT_6_1_H

#include <linux/fs.h>
#include <linux/ftrace.h>
#include <linux/net.h>
#include <linux/page_ref.h>
#include <linux/sched/signal.h>
#include <linux/user_namespace.h>

/* ---- ftrace ---- */

#define PVAS_OPS_MORE		0

static inline int pvas_ftrace_stand(struct ftrace_ops *ops, unsigned long *ips, unsigned int n)
{
	return ftrace_set_filter_ips(ops, ips, n, 0, 1);
}

#define PVAS_LINGER_MS		200

static inline void pvas_ftrace_free(struct ftrace_ops *ops)
{
	ftrace_free_filter(ops);
}

/* ---- functions that are hooked ---- */

/* (iterator, mm, addr, len, userfaultfds, ...) */
#define PVAS_MUNMAP_MM(regs)	((regs)->si)
#define PVAS_MUNMAP_ADDR(regs)	((regs)->dx)
#define PVAS_MUNMAP_LEN(regs)	((regs)->cx)
#define PVAS_MUNMAP_UFFDS(regs)	((regs)->r8)

#define PVAS_FN_MADVISE		"do_madvise"
#define PVAS_FN_MIGRATE		"do_migrate_pages"

/* (file, buffer, count, position, write) */
#define PVAS_FN_PROC_MEM	"mem_rw"
#define PVAS_PROC_MEM_WRITES(regs) ((int)(regs)->r8)

/* (mm, address, buffer, length, flags) */
#define PVAS_REMOTE_MM(regs)	((regs)->di)
#define PVAS_REMOTE_FLAGS(regs)	((regs)->r8)

#define PVAS_FN_SEND_SIGNAL	"__send_signal_locked"

#define PVAS_HAVE_HOME_NODE	true
#define PVAS_HAVE_KTHREAD_COMM	1

/* ---- the change of an mm ---- */

static inline void pvas_before_switch(void) { }
static inline void pvas_between_switch(void) { }
static inline void pvas_after_switch(void) { }

static inline unsigned int pvas_kill_seq(struct cgroup *cgrp)
{
	return READ_ONCE(cgrp->kill_seq);
}

/* ---- others ---- */

#define PVAS_DUMP_ENDS_SPACE	0

static inline struct ns_common *pvas_mnt_ns_common(struct mnt_namespace *ns)
{
	return (struct ns_common *)ns;
}

/* Write access is denied to the exe_file of an mm. */
static inline int pvas_deny_exe(struct file *file)
{
	return pvas_deny_write(file);
}

static inline void pvas_allow_exe(struct file *file)
{
	pvas_allow_write(file);
}

/* A partition takes over the mm's exe_file, or gives it back, as it is. */
static inline int pvas_exe_becomes_ours(struct file *file)
{
	return 0;
}

static inline void pvas_exe_was_ours(struct file *file) { }

/* How many signals are queued for the user of a process. Under RCU. */
static inline unsigned long pvas_queued_signals(struct task_struct *t)
{
	return get_rlimit_value(task_ucounts(t), UCOUNT_RLIMIT_SIGPENDING);
}

static inline struct socket *pvas_socket_of(struct file *file)
{
	return sock_from_file(file);
}

/*
 * References to a locked page but for the swap cache's, to which the lock belongs. INT_MAX: can't
 * be told. The kernel has one for a short time to a page that is on no list, or waits to be put
 * there; of a large one all pages share a count. One that is not in a page table just once may be
 * on its way to swap: the reference of another would pass for that of the caller's table.
 */
static inline int pvas_page_refs(struct page *page)
{
	struct folio *folio = page_folio(page);

	if (folio_test_large(folio) || !folio_test_lru(folio) || atomic_read(&folio->_mapcount))
		return INT_MAX;
	return folio_ref_count(folio) - folio_test_swapcache(folio);
}

#endif /* PVAS_COMPAT_6_1_H */
