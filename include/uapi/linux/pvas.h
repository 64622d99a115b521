/* SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note */
/*
 * PVAS: Partitioned Virtual Address Space - the ABI of /dev/pvas.
 *
 * A *space* is one address space (one mm) cut into equal power-of-two
 * *partitions*: partition i is [i << shift, (i + 1) << shift).  A *task* is a
 * process that runs in a space and owns exactly one partition.  Partition 0
 * holds the *space header* and the *loader*; partition 0 and every partition
 * that overlaps a mapping present at CREATE (the vdso lies in the topmost)
 * are reserved.
 *
 * The life of a space:
 *
 *	fd = open("/dev/pvas", O_RDWR | O_CLOEXEC);
 *	ioctl(fd, PVAS_IOC_INFO, &info);	check abi_major and features
 *	fork();
 *	  child: map header and loader into partition 0, unmap all else
 *		 but the vdso, ioctl(fd, PVAS_IOC_CREATE, &create), _exit(0)
 *	vfork();
 *	  child: ioctl(fd, PVAS_IOC_SPAWN, &spawn), execve(program)
 *	close(fd);
 *
 * The mm of the process that calls CREATE becomes the space; the space is
 * bound to the open file description.  SPAWN only *arms* the calling process:
 * its next successful execve() enters the space; a failed one leaves the caller
 * unchanged and still armed.  The space ends when its file description is closed or
 * DESTROYed (if others have ATTACHed to it: all of them) and its last task is gone.
 *
 * Rules for every struct below:
 *  - the first member is the size of the struct as the caller knows it.  A
 *    larger struct than the module knows is accepted if what the module does
 *    not know is zero (-E2BIG if not); a smaller one than the first published
 *    size is -EINVAL;
 *  - unknown flag bits and non-zero reserved members are -EINVAL;
 *  - members marked "out" are written on success only.
 *
 * Errors common to all commands: -EFAULT (bad pointer), -EINVAL (above),
 * -ENOTTY (unknown command).
 */
#ifndef _UAPI_LINUX_PVAS_H
#define _UAPI_LINUX_PVAS_H

#include <linux/ioctl.h>
#include <linux/types.h>

#define PVAS_ABI_MAJOR		1	/* if it differs, nothing can be assumed */
#define PVAS_ABI_MINOR		0	/* grows: commands or flags were added */

/* Partition sizes: 4 GiB to 8 TiB. The default is 64 GiB. */
#define PVAS_SHIFT_MIN		32
#define PVAS_SHIFT_MAX		43
#define PVAS_SHIFT_DEFAULT	36

#define PVAS_MAX_TASKS		4096	/* in one space */

/* The most that a creator may have mapped at CREATE, for header and loader: 256 MiB. */
#define PVAS_MAPPED_MAX	(256UL << 20)
/* The most memory of a space that has no task, page tables included: 8 MiB. */
#define PVAS_IDLE_MAX		(8UL << 20)

/**
 * struct pvas_info - the module's version and limits (PVAS_IOC_INFO)
 * @size:	sizeof(struct pvas_info)
 * @flags:	must be 0
 * @abi_major:	out: PVAS_ABI_MAJOR of the module
 * @abi_minor:	out: PVAS_ABI_MINOR of the module
 * @features:	out: PVAS_FEATURE_* bits
 * @shift_min:	out: smallest partition size, log2
 * @shift_max:	out: largest partition size, log2
 * @max_tasks:	out: tasks a space can hold
 * @spaces:	out: spaces that exist now in the caller's user namespace
 * @reserved:	must be 0
 */
struct pvas_info {
	__u32 size;
	__u32 flags;
	__u32 abi_major;
	__u32 abi_minor;
	__u64 features;
	__u32 shift_min;
	__u32 shift_max;
	__u32 max_tasks;
	__u32 spaces;
	__u64 reserved[3];
};

#define PVAS_FEATURE_TASK_EXE	(1ULL << 0)	/* /proc/PID/exe is each task's own */
#define PVAS_FEATURE_IA32	(1ULL << 1)	/* int 0x80 calls are bounded too */
#define PVAS_FEATURE_EXEC_STAYS	(1ULL << 2)	/* the exec of a task stays in its space */
#define PVAS_FEATURE_REFS	(1ULL << 3)	/* there is PVAS_IOC_REFS */

/**
 * struct pvas_create - make the caller's mm a space (PVAS_IOC_CREATE)
 * @size:	sizeof(struct pvas_create)
 * @flags:	PVAS_CREATE_* bits
 * @shift:	log2 of the partition size
 * @id:		out: the space's id, not zero, not reused soon
 * @loader:	address in partition 0 where each task starts (see pvas_start)
 * @table:	address in partition 0 of an array of struct pvas_part with one
 *		entry for each partition from 0 on, aligned to 64 bytes; the
 *		module keeps it up to date
 * @table_entries: entries in @table; an index beyond it can't be used
 * @first:	out: lowest index a task can have
 * @last:	out: highest index a task can have
 * @key:	address of a name for ATTACH, with PVAS_CREATE_KEY, else 0
 * @key_len:	its length in bytes, 1 to PVAS_KEY_MAX, else 0
 * @reserved:	must be 0
 *
 * Errors: -EEXIST the caller's user has a space with this key in this pid
 * namespace; -EBUSY the file already has a space, the caller has threads or
 * shares its mm, or is a task; or the mm has anything but private anonymous
 * memory in partition 0 (no file, no stack, nothing that is locked, sealed, of huge
 * pages or under userfaultfd) and the vdso, or an AIO context or the like; -E2BIG more
 * than PVAS_MAPPED_MAX is mapped, more than PVAS_IDLE_MAX in use, or more
 * than 64 areas; -EINVAL
 * @shift out of range, @loader or @table not mapped in partition 0, @key_len
 * out of range, caller is a 32-bit process; -ENOSPC too many spaces (parameter
 * max_spaces), or of this user (max_spaces_per_user, and a quarter of all); -ENOMEM;
 * -EINTR a signal came first; -EPERM the caller is not dumpable, has mixed ids, or
 * lives in a time namespace of its own, or a time or pid namespace is set for its
 * children; -EOPNOTSUPP the kernel refused a hook (see the kernel log).
 *
 * From then on the caller can't map anything, and the rules for tasks at SPAWN apply
 * to it.
 */
struct pvas_create {
	__u32 size;
	__u32 flags;
	__u32 shift;
	__u32 id;
	__u64 loader;
	__u64 table;
	__u32 table_entries;
	__u32 first;
	__u32 last;
	__u32 key_len;
	__u64 key;
	__u64 reserved[3];
};

#define PVAS_CREATE_KILL_ON_CLOSE (1U << 0)	/* closing the last file kills the tasks */
#define PVAS_CREATE_KEY		(1U << 1)	/* can be found by its key, see ATTACH */
#define PVAS_CREATE_F_ALL	(PVAS_CREATE_KILL_ON_CLOSE | PVAS_CREATE_KEY)

#define PVAS_KEY_MAX		128

/**
 * struct pvas_attach - bind this file to an existing space (PVAS_IOC_ATTACH)
 * @size:	sizeof(struct pvas_attach)
 * @flags:	must be 0
 * @key:	address of the key that the space was created with
 * @key_len:	its length in bytes
 * @id:		out: the space's id
 * @shift:	out: log2 of the partition size
 * @first:	out: lowest index a task can have
 * @last:	out: highest index a task can have
 * @reserved:	must be 0
 *
 * For processes without a common PVAS launcher (the ranks that srun or mpirun
 * starts): the first creates the space, the others find it by the job's key. Only
 * spaces that the caller may enter are found: see SPAWN. A space with a key stays
 * open to new tasks as long as a file is bound to it or a task lives in it.
 *
 * Errors: -ENOENT no such space; -EBUSY the file already has a space;
 * -EINVAL @key_len out of range; -EINTR a signal came first.
 */
struct pvas_attach {
	__u32 size;
	__u32 flags;
	__u64 key;
	__u32 key_len;
	__u32 id;
	__u32 shift;
	__u32 first;
	__u32 last;
	__u32 reserved0;
	__u64 reserved[2];
};

/**
 * struct pvas_spawn - arm the caller (PVAS_IOC_SPAWN)
 * @size:	sizeof(struct pvas_spawn)
 * @flags:	PVAS_SPAWN_* bits
 * @id:		the space to enter: the one bound to this file, or the one the
 *		caller is a task of; 0: the one bound to this file
 * @index:	the partition to take; with PVAS_SPAWN_ANY 0 on entry, and the
 *		index chosen on return
 * @reserved:	must be 0
 *
 * A process is armed until an execve() succeeds, it cancels, or it ends.
 *
 * Errors: -EALREADY the caller is armed; -ENOENT (CANCEL) it is not; -EINVAL
 * @index out of range or reserved, or a 32-bit caller; -EBUSY @index is taken;
 * -ENOSPC no index is free; -ENOENT no such space, or it is ending; -ENOMEM;
 * -EPERM the space is neither this file's nor the caller's own; or the caller is
 * not like the space's creator was, who had another user or group id, other
 * permitted capabilities (those of the tasks will do), another user, pid, mount, ipc
 * or cgroup namespace, another security label, Landlock domain, seccomp filter or
 * no_new_privs; or it has mixed ids, lives in a time namespace of its own, or a
 * time or pid namespace is set for its children; or a task has made the space not
 * dumpable. A seccomp filter counts as the creator's as long as a task or the
 * creator's parent has it. -EINTR a signal came while another thread was in execve().
 *
 * The execve() of a task stays in its partition, as a new program of the same task, if the
 * new program could be armed and run there: the rules above are asked again. Else the
 * program runs outside the space, as it does with PVAS_EXEC=leave in its environment, by a
 * 32-bit call, and as long as a vfork child uses the memory for more than a second.
 *
 * A task keeps the rights it was admitted with: calls that would change its ids,
 * permitted capabilities, or user, pid, mount, ipc, cgroup or time namespace fail
 * (see pvas(7)). Its fork children may change theirs.
 *
 * The execve() that follows fails with: -ENOEXEC not an ELF position
 * independent executable for this machine (ET_DYN), or a malformed one;
 * -ELIBBAD a malformed ELF interpreter; -ENOENT, -EACCES the interpreter;
 * -EPERM a set-uid, set-gid or capability-carrying program, one the caller may
 * not read, or one that gets another security label; -ENOMEM the program does
 * not fit in the partition; -ESRCH the space has ended.
 */
struct pvas_spawn {
	__u32 size;
	__u32 flags;
	__u32 id;
	__u32 index;
	__u64 reserved[4];
};

#define PVAS_SPAWN_ANY		(1U << 0)	/* the module chooses the index */
#define PVAS_SPAWN_CANCEL	(1U << 1)	/* disarm; id and index must be 0 */
#define PVAS_SPAWN_F_ALL	(PVAS_SPAWN_ANY | PVAS_SPAWN_CANCEL)

/**
 * struct pvas_destroy - end a space (PVAS_IOC_DESTROY)
 * @size:	sizeof(struct pvas_destroy)
 * @flags:	PVAS_DESTROY_* bits
 * @reserved:	must be 0
 *
 * Unbinds the space from this file, which can then create another. Errors:
 * -ENOENT the file has no space; -EBUSY tasks are in it or armed for it, and
 * PVAS_DESTROY_KILL is not given (with it, they get SIGKILL, nobody enters any
 * more, by other files neither, and the space ends when the last is gone);
 * -EPERM with PVAS_DESTROY_KILL: the caller may not send signals to the tasks,
 * see kill(2); -EINTR a signal came first.
 */
struct pvas_destroy {
	__u32 size;
	__u32 flags;
	__u64 reserved[2];
};

#define PVAS_DESTROY_KILL	(1U << 0)
#define PVAS_DESTROY_F_ALL	PVAS_DESTROY_KILL

/**
 * struct pvas_task - one task, as QUERY reports it
 * @index:	its partition
 * @state:	PVAS_PART_*
 * @pid:	process id in the caller's pid namespace, 0 if not visible there
 * @users:	threads and vfork children that live in the partition
 * @gen:	how often the partition was taken
 * @reserved0:	0
 * @load:	address its program was mapped at
 * @heap:	where its brk heap begins
 * @brk:	where its brk heap ends
 */
struct pvas_task {
	__u32 index;
	__u32 state;
	__s32 pid;
	__u32 users;
	__u32 gen;
	__u32 reserved0;
	__u64 load;
	__u64 heap;
	__u64 brk;
};

/**
 * struct pvas_query - a space and its tasks (PVAS_IOC_QUERY)
 * @size:	sizeof(struct pvas_query)
 * @flags:	must be 0
 * @id:		the space; 0: the one bound to this file or, if there is none,
 *		the one the caller is a task of. out: its id
 * @shift:	out: log2 of the partition size
 * @first:	out: lowest index a task can have
 * @last:	out: highest index a task can have
 * @self:	out: the caller's own index in this space, 0 if none
 * @count:	in: room in @tasks; out: number of tasks (may exceed the room)
 * @tasks:	array of struct pvas_task, filled in the order of the indices
 * @reserved:	must be 0
 *
 * Errors: -ENOENT no such space, -ESRCH @id is 0 and there is neither,
 * -EPERM the space is another user's, or the caller could not enter it, -ENOMEM.
 */
struct pvas_query {
	__u32 size;
	__u32 flags;
	__u32 id;
	__u32 shift;
	__u32 first;
	__u32 last;
	__u32 self;
	__u32 count;
	__u64 tasks;
	__u64 reserved[4];
};

/**
 * struct pvas_refs - are a task's own pages in use by others? (PVAS_IOC_REFS)
 * @size:	sizeof(struct pvas_refs)
 * @flags:	must be 0
 * @addr:	the beginning of a range in the caller's partition
 * @len:	its length; both are multiples of the page size
 * @clear:	out: bytes from @addr on up to the first page that is not in memory, or to
 *		which anything but the page table has a reference: a device, a pipe, another
 *		process's system call; @len if there is none
 * @reserved:	must be 0
 *
 * For a task that pages its own partition by userfaultfd. A page that it has write-protected, or
 * moved away, and that is clear then, nobody writes to any more. The kernel may have a
 * reference for a short time on its own account, so a page that is not clear may soon be: to
 * one that is new, until its processor has put it on a list, as an madvise(MADV_FREE) of any
 * memory makes it do.
 *
 * Errors: -EPERM the caller is no task, or the range is not in its partition; -EINVAL @len is
 * 0, or one of the two is no multiple; -EINTR a signal kills the caller.
 */
struct pvas_refs {
	__u32 size;
	__u32 flags;
	__u64 addr;
	__u64 len;
	__u64 clear;
	__u64 reserved[2];
};

/* States of a partition */
#define PVAS_PART_FREE		0	/* a task may take it */
#define PVAS_PART_ARMED		1	/* taken by a SPAWN, before its execve */
#define PVAS_PART_RUNNING	2	/* its task runs */
#define PVAS_PART_ENDING	3	/* its task is gone, its memory being freed */
#define PVAS_PART_RESERVED	4	/* never a task's */

/**
 * struct pvas_part - an entry of the partition table in the space header
 *
 * Written by the module (or, with the user backend, by the supervisor), read
 * by tasks with plain loads: @state is written last on entry and first on leaving,
 * so a task that sees RUNNING sees the other members too. It only informs tasks:
 * the module never reads it back.
 *
 * @state:	PVAS_PART_*
 * @gen:	changes each time the partition is taken
 * @pid:	the task's process id in the space's pid namespace
 */
struct pvas_part {
	__u32 state;
	__u32 gen;
	__s32 pid;
	__u32 reserved[13];
} __attribute__((aligned(64)));

/**
 * struct pvas_start - the loader's argument
 *
 * A task starts at pvas_create.loader with the System V process stack (argc
 * at %rsp) and %rdi pointing to this struct, which lies on that stack above
 * the strings and stays valid for the task's life. The auxiliary vector has
 * AT_PVAS (the address of this struct; getauxval() finds it), AT_PHDR, AT_PHENT,
 * AT_PHNUM and AT_ENTRY for the program at @load, and AT_BASE 0. The loader
 * maps the program at @load and its interpreter anywhere, sets AT_BASE,
 * closes @exec_fd and jumps.
 *
 * @size:	sizeof(struct pvas_start)
 * @flags:	0
 * @id:		the space
 * @index:	the partition
 * @shift:	log2 of the partition size
 * @exec_fd:	the program, open for reading
 * @table:	pvas_create.table
 * @load:	load bias: where the program's virtual address 0 goes
 * @heap:	where the brk heap begins; nothing of the program is above it
 * @gen:	pvas_part.gen of this task
 * @stack_lo:	start and
 * @stack_hi:	end of the stack's mapping, which the loader makes executable if
 *		PT_GNU_STACK asks for it; both 0: it is executable already if needed
 */
struct pvas_start {
	__u32 size;
	__u32 flags;
	__u32 id;
	__u32 index;
	__u32 shift;
	__s32 exec_fd;
	__u64 table;
	__u64 load;
	__u64 heap;
	__u32 gen;
	__u32 reserved0;
	__u64 stack_lo;
	__u64 stack_hi;
};

#define AT_PVAS			0x53415650	/* "PVAS" */

#define PVAS_IOC_MAGIC		0xB7
#define PVAS_IOC_INFO		_IOWR(PVAS_IOC_MAGIC, 0, struct pvas_info)
#define PVAS_IOC_CREATE		_IOWR(PVAS_IOC_MAGIC, 1, struct pvas_create)
#define PVAS_IOC_SPAWN		_IOWR(PVAS_IOC_MAGIC, 2, struct pvas_spawn)
#define PVAS_IOC_DESTROY	_IOWR(PVAS_IOC_MAGIC, 3, struct pvas_destroy)
#define PVAS_IOC_QUERY		_IOWR(PVAS_IOC_MAGIC, 4, struct pvas_query)
#define PVAS_IOC_ATTACH		_IOWR(PVAS_IOC_MAGIC, 5, struct pvas_attach)
#define PVAS_IOC_REFS		_IOWR(PVAS_IOC_MAGIC, 6, struct pvas_refs)

#endif /* _UAPI_LINUX_PVAS_H */
