/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The user backend: from the filter's request to its answer. */
#ifndef PVAS_USER_WORKER_H
#define PVAS_USER_WORKER_H

#include <sys/stat.h>

#include "user.h"

/* ---- filter.c ---- */

/* x32's system calls have x86-64's numbers with a bit. */
#define X32_BIT		0x40000000U

/*
 * Put the calling thread, and all processes it will create, under the filter.
 * Returns the listener, or -errno with an explanation in @why.
 */
int user_filter_install(const struct user_space *u, const char **why);

/*
 * In the supervisor, when user_space.stop is set: make the call by which the filter reaches a
 * worker, to end it. Returns when that has happened, or when a sandbox has refused the call.
 */
long user_filter_call_worker(const struct user_space *u);

/* ---- request.c ---- */

/**
 * struct user_request - a system call to be answered
 * @u:		the space
 * @part:	the caller's partition, NULL if its code is in none
 * @id:		the kernel's number of the request
 * @changes:	user_space.changes before the request was received
 * @tid:	the caller
 * @inside:	the caller shares our mm: a task, or a thread or vfork child of one
 * @arch:	whose system call table (AUDIT_ARCH_): tasks have the 64-bit one only
 * @nr:		system call number
 * @ip:		of the instruction after it
 * @args:	its arguments
 * @continued:	answer: the kernel shall perform the call
 * @forks:	the call is a fork: when it is answered, user_fork_answered()
 * @stranger:	at its turn: it can hang, and is of another user or namespace, or installs a filter
 * @owner:	the user of such a one, see user_caller_is_own()
 * @turn:	number of requests that were deferred before
 * @meter:	of a helper that handles it, if the caller is outside
 * @next:	in a queue for helpers
 */
struct user_request {
	struct user_space *u;
	struct user_part *part;
	uint64_t id;
	unsigned int changes;
	pid_t tid;
	int inside;
	uint32_t arch;
	int nr;
	uint64_t ip;
	uint64_t args[6];
	int continued;
	int forks;
	int stranger;
	int64_t owner;
	unsigned int turn;
	struct user_meter *meter;
	struct user_request *next;
};

/* Wait for a request. 0 or -errno: -EAGAIN if there was none. */
int user_request_receive(struct user_space *u, struct user_request *r);

/* Return @value from the call, or have the kernel perform it. */
void user_request_reply(const struct user_request *r, int64_t value);

/* The space of the request that this worker handles */
struct user_space *user_request_space(void);

/* This worker handles @r from now on: for user_request_valid(). */
void user_request_begin(const struct user_request *r);

/* Of the caller's partition, is it a thread of the task? Only a hint: a pid can be reused. */
int user_request_of_task(const struct user_request *r);

/* Is this a thread of that process? Yes as well where a sandbox forbids to ask. */
int user_is_thread_of(pid_t process, pid_t tid);

/* In a worker: is the caller of the current request still waiting? */
int user_request_valid(void);

/* Whose is it? A number for each stranger's user, -1 for all others. */
int64_t user_request_owner(void);

/* Has the caller of this one been killed? */
int user_request_is_dead(const struct user_request *r);

/* The same, or does the space end? Then nobody needs what is done for it. */
int user_request_given_up(const struct user_request *r);

/* Has no task ended since the request was made? Then its partition is still the caller's. */
int user_request_current(const struct user_request *r);

/* ---- caller.c ---- */

/*
 * The calling thread, as a name for our memory and address space: getpid() is the first
 * thread, and that has neither once it has ended by pthread_exit().
 */
pid_t user_caller_self(void);

/*
 * Copy from or to a caller's memory. Returns the number of bytes copied, -EPERM if this
 * process has no right to read that, or why it can't now.
 */
ssize_t user_caller_read(pid_t tid, uint64_t from, void *to, size_t len);
ssize_t user_caller_write(pid_t tid, uint64_t to, const void *from, size_t len);

/* The ids and the user namespace of the creator, which all tasks have. */
void user_caller_know_own(struct user_space *u);

/*
 * Has it the tasks' user ids and user namespace? 0: no, so it is none of them; -ESRCH: that is not
 * known. @owner: its user, with a bit more in another namespace, or one that isn't known.
 */
int user_caller_is_own(const struct user_space *u, pid_t tid, int64_t *owner);
#define OWNER_SANDBOX	(1LL << 32)

/* RLIMIT_DATA of a process */
uint64_t user_caller_data_limit(pid_t pid);

/* The process of a thread. 0: gone. */
pid_t user_caller_process(pid_t tid);

/**
 * struct user_look - a file of a caller's, as far as it shows without asking a server
 * @st:		all 0 if not permitted
 * @kind:	of its mount
 */
struct user_look {
	struct statx st;
	enum user_mount_kind kind;
};

/* Look at the thread's @fd; or, with @tid 0, at a descriptor of this thread's. 0 or -EBADF */
int user_caller_look(struct user_space *u, pid_t tid, int fd, struct user_look *look);

/* Can a server hold up who closes it? */
int user_caller_can_hang(const struct user_look *look);

/* Is a copy of another mount's file than what was looked at, or can't that be told? */
int user_caller_differs(int fd, const struct user_look *look);

/*
 * Close a copy of what was looked at; but not, and then -EBUSY, if it is another file by now which
 * can hang.
 */
int user_caller_close(struct user_space *u, int fd, const struct user_look *look);

/* Open the thread's @fd in the caller's descriptor table. Returns it, or -errno. */
int user_caller_file(pid_t tid, int fd, int prot, int flags);

/* How it has to be opened again for that: with the first flags, or the second if they aren't 0 */
int user_caller_reopens(pid_t tid, int fd, int prot, int flags, int how[2]);

/* The same open file, or -errno: -EPERM, -ENOSYS or -EINVAL where that is not possible. */
int user_caller_descriptor(pid_t tid, int fd);

/* ---- inside.c ---- */

/* Is /proc that of our pid namespace? 0 or -errno, with the text set */
int user_caller_check_proc(void);

/* Before the others: create the pages for user_caller_inside(), once in a process. */
int user_caller_begin(void);

/*
 * Can user_caller_inside() wait for ever, and is @tid probably outside? Then this has to be
 * found out without having others wait. This doesn't block.
 */
int user_caller_doubtful(pid_t tid);

/*
 * Does @tid share our address space? 1 or 0; -errno if that can't be found out now, for
 * which descriptors or rights may be missing: then it must not be treated as either. This
 * reads no memory that could be made to wait.
 */
int user_caller_inside(pid_t tid);

/*
 * The same of a task's thread that has not called execve(): only a number that is another
 * process' by now is to be found out. Quicker where kcmp() is forbidden.
 */
int user_caller_still_inside(pid_t tid);

/* ---- sizes.c ---- */

/*
 * The size in pages of the address space of thread @tid of process @pid. 0: it has none, as a
 * first thread that has ended before the others; or is no thread of that process any more.
 */
unsigned long user_caller_pages(pid_t pid, pid_t tid);

/*
 * Has that thread another address space than ours for certain, since an execve()? This doesn't
 * block. 0 also if it has none, or one that can't be told from ours: a program may imitate it.
 */
int user_caller_left(pid_t pid, pid_t tid);

/* ---- ask.c ---- */

/*
 * As user_proc_read(), of thread @tid that runs code of @p's, where a file of its process waits for
 * an execve(). -ETIME: it is in one, so the thread is in no other call; -EAGAIN: not known.
 */
ssize_t user_ask(const struct user_space *u, const struct user_part *p, pid_t tid,
		 const char *name, char *text, size_t size);

/* ---- exe.c ---- */

/*
 * readlink() and readlinkat() of a task or fork child. The result if the path is the exe link of
 * a task; else the kernel performs the call.
 */
int64_t user_on_readlink(struct user_request *r);
int64_t user_on_readlinkat(struct user_request *r);

/* The partition of the task that this process or thread belongs to, or NULL. */
struct user_part *user_part_of_process(struct user_space *u, pid_t tid);

/* ---- sigaction.c ---- */

/* rt_sigaction() of a task or fork child */
int64_t user_on_sigaction(struct user_request *r);

/* sigaltstack() of a task */
int64_t user_on_sigaltstack(struct user_request *r);

/* ---- rights.c ---- */

/* Calls of a task that would perhaps not leave it its rights; the latter return the old id. */
int64_t user_on_rights(struct user_request *r);
int64_t user_on_setfsid(struct user_request *r);

/* Would a clone that shares the mm leave them? */
int user_rights_kept_by_clone(uint64_t flags);

/* Has this prctl() a value that the kernel refuses? */
int user_rights_invalid(int option, uint64_t value);

/* ---- segment.c ---- */

/* May thread @tid attach the segment with these flags of shmat()? 0 or -errno. */
int user_segment_check(pid_t tid, int id, int flags);

/* ---- unfit.c ---- */

/* From now on the execs of the task that makes this call leave the space. */
void user_unfit(const struct user_request *r);

int64_t user_on_fork(struct user_request *r);
int64_t user_on_vfork(struct user_request *r);
int64_t user_on_clone(struct user_request *r);
int64_t user_on_clone3(struct user_request *r);
int64_t user_on_perf_event_open(struct user_request *r);

/* ---- fork.c ---- */

/*
 * The caller is about to fork, and @waits for its child: waits until it may. -ESRCH: it is dead, or
 * the space ends.
 */
int user_fork_prepare(const struct user_request *r, int waits);

/* That request has been answered: the thread goes on. */
void user_fork_answered(const struct user_request *r);

/* Under fork_lock: forgets those of @p that are complete. Returns how many are left. */
unsigned int user_fork_count(struct user_space *u, struct user_part *p);

/* The launcher is about to fork, and has. */
void user_fork_of_launcher(struct user_space *u);
void user_fork_of_launcher_made(struct user_space *u);

/* Mark all tasks, without a turn: the reader drops what it gets all the same. */
void user_fork_mark_all(struct user_space *u);

/* In the child: it has nothing of the tasks. */
void user_fork_child_of_launcher(const struct user_space *u);

/* @tid has made another call since. */
void user_fork_returned(struct user_space *u, struct user_part *p, pid_t tid);

/* The task's memory must not be marked. */
void user_fork_exempt(struct user_space *u, struct user_part *p);

/* The task is going to map this file or segment: exempt it if that can't be unmarked. */
void user_fork_check_file(struct user_space *u, struct user_part *p, const struct user_look *look);
int user_fork_check_segment(struct user_space *u, struct user_part *p, int id, uint64_t at);

/* For a partition that has just been reserved, without user_space.lock: this can take long. */
void user_fork_begin(struct user_space *u, struct user_part *p);

/* The task has ended. */
void user_fork_forget(struct user_space *u, struct user_part *p);

/* ---- heap.c: under user_part.lock, and for tasks only, but for the last ---- */

int64_t user_brk(struct user_part *p, uint64_t brk);

/*
 * The task maps to an address that it names: unmap spare memory of the heap that is in the way.
 * The mapping has to follow under the same lock, or the heap may come in its way again.
 */
void user_make_room(struct user_part *p, uint64_t addr, uint64_t len);

/* As user_brk(), for a fork child with a copy of the partition. */
int64_t user_child_brk(struct user_part *p, pid_t child, uint64_t brk);

/* ---- place.c: all under user_part.lock, and for tasks only ---- */

/* @tid: 0, or @fd is of this thread's, and a process apart maps it for @u, from @server */
struct user_mmap {
	uint64_t addr, len;
	int prot, flags, fd;
	uint64_t off;
	pid_t tid;
	uint64_t server;
	struct user_space *u;
};

/* They return an address or value, or -errno, as the system calls do. */
int64_t user_mmap(struct user_part *p, const struct user_mmap *m);
int64_t user_mmap_fixed(struct user_part *p, const struct user_mmap *m);
int64_t user_mremap(struct user_part *p, uint64_t old, uint64_t old_len, uint64_t new_len,
		    int flags);
int64_t user_mremap_fixed(struct user_part *p, const uint64_t args[5]);
int64_t user_shmat(struct user_part *p, int id, uint64_t addr, int flags, uint64_t align);

/* Choose all addresses, as the module's pvas_mm_layout(). 0 or -errno. Raw system calls only. */
int user_layout(struct user_part *p, const struct pvas_elf_image *image, uint64_t stack_limit,
		int randomize);

/* Choose a place for the interpreter, too, below which mappings come. 0: the loader has to. */
uint64_t user_place_interp(struct user_part *p, const struct pvas_elf_image *interp);

/* ---- fill.c ---- */

/* Besides MADV_POPULATE_* */
#define USER_FILL_NOT		(-1)
#define USER_FILL_LOCKED	(-2)

/* How that mapping has to be filled. Takes the flags out: the kernel would do it under a lock. */
int user_fill_how(struct user_mmap *m);

/* Under user_part.lock: lock it, without pages. @at; or -errno, and it is unmapped. */
int64_t user_fill_reserve(const struct user_mmap *m, int64_t at);

/*
 * Until the caller is dead. Can wait for a file server: without a lock. @slow: of a file that has
 * one; not if many workers are at such already.
 */
void user_fill(const struct user_request *r, uint64_t at, uint64_t len, int how, int slow);

/* ---- mmap.c ---- */

/* The answer: the kernel shall perform the call. Returns 0. */
int64_t user_call_continue(struct user_request *r);

/* The lock of the caller's partition. -ESRCH: the task is gone, and it is not taken. */
int user_call_lock(struct user_request *r);
void user_call_unlock(struct user_request *r);

/* The same, to map memory: not in the middle of a peer's fork */
int user_call_lock_to_map(struct user_request *r);
void user_call_unlock_mapped(struct user_request *r);

int64_t user_on_mmap(struct user_request *r);

/* ---- calls.c ---- */

/* Handle a call of a task, or of a fork child of one. Returns the call's result. */
int64_t user_call_of_task(struct user_request *r);
int64_t user_call_of_child(struct user_request *r);

/* Is it a call that user_call_of_task() does more with than to let the kernel perform it? */
int user_call_known(int nr);

/* Does the second read the caller's memory, and can so hang? */
int user_call_reads_child(const struct user_request *r);

/* ---- sandbox.c ---- */

/* Does the caller install a seccomp filter? */
int user_sandbox_call(const struct user_request *r);

/*
 * May it install this one, which is in @memory? 0 or -errno: -EINVAL for a program that can
 * return SECCOMP_RET_TRACE.
 */
int64_t user_sandbox_check(const struct user_request *r, pid_t memory);

/* ---- files.c ---- */

/* In the pool's thread: give it a descriptor table of its own, a copy. */
void user_files_unshare(const struct user_space *u, struct user_files *f);

/* Which of the copies do workers not need? 0 or -errno */
int user_files_list(const struct user_space *u, struct user_files *f);

/* Close the copies that workers don't need: first those of which none can hang, then the others. */
void user_files_close_first(const struct user_space *u, struct user_files *f);
void user_files_close(const struct user_files *f);
void user_files_free(struct user_files *f);

/* In a copy of the launcher, with numbers below @end: close those that can't hang, but @keep */
void user_files_close_others(unsigned int end, int keep);

/* ---- queue.c: requests that helpers handle; under user_space.pool_lock unless noted ---- */

/* Append a copy of a request that was received. Takes the lock. 0 or -errno. */
int user_queue_add(struct user_space *u, const struct user_request *r);

/* The caller is probably not a task: its turn comes when there is time for such callers. */
void user_queue_defer(struct user_space *u, struct user_request *r);

/* Wait for the next request. NULL: the space is ending. */
struct user_request *user_queue_next(struct user_space *u);

/*
 * At its turn it turned out to be a stranger's that can hang. Returns 0 if too many of these are
 * being handled: it waits for another turn.
 */
int user_queue_admit(struct user_space *u, struct user_request *r);

/* This helper has handled a deferred request, or its caller had not @waited for that. */
void user_queue_done(struct user_space *u, struct user_request *r, int waited);

/* Is there a request for which no helper will come by itself, unless one that is busy does? */
int user_queue_stuck(const struct user_space *u);

/* Have an idle helper look for requests. Returns 0 if none is idle. */
int user_queue_wake(struct user_space *u);

void user_queue_free(struct user_space *u);

/* ---- pool.c ---- */

/* Of a space: its waits end at a time of the monotonic clock. */
void user_init_condition(pthread_cond_t *cond);

/*
 * When the supervisor starts, and when it has installed the filter: 0 or -errno. @worker and
 * @helper are the functions of the threads.
 */
int user_workers_begin(struct user_space *u, void *(*worker)(void *), void *(*helper)(void *));
int user_workers_wait(struct user_space *u);

/* When the first workers exist: 0; or -errno, and there are none. */
int user_workers_ready(struct user_space *u);

/* If the supervisor has failed to start: there are no workers. */
void user_workers_cancel(struct user_space *u);

/*
 * Wake the supervisor, from any thread of the launcher. The pool's thread does it, because it
 * has the descriptor even if the caller has others, or has closed it.
 */
void user_workers_wake(struct user_space *u);

/* In the supervisor: end all workers but those that are in slow calls. */
void user_workers_stop(struct user_space *u);

/* Returns how many have not come back: then the space must not be freed. */
int user_workers_join(struct user_space *u);

/* In a worker: it handles a request, which can take long. -EINTR if the space is ending. */
int user_worker_busy(struct user_space *u);

/* The request is handled. */
void user_worker_idle(struct user_space *u);

/* It was handled after the space was abandoned: this worker has to end. */
int user_worker_retired(void);

/* This worker ends. */
void user_worker_ends(struct user_space *u);

/* This helper ends. */
void user_helper_ends(struct user_space *u);

/* ---- worker.c ---- */

void *user_worker_main(void *arg);
void *user_helper_main(void *arg);

#endif /* PVAS_USER_WORKER_H */
