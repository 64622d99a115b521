// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * User backend: a task has the rights of the thread that created the space.
 *
 * The supervisor clones the tasks and no execve() follows, so they keep what it has; and
 * all of them can do anything to the launcher and to each other. So, as the module does:
 *
 * - The creator must have rights that execve() would leave as they are.
 * - The caller of pvas_task_spawn() must have the creator's rights. They are per thread:
 *   one that has given some up must not regain them by starting a task, and tasks with
 *   fewer rights must not come into a space with more.
 * - The new process must have them after the caller's setup function, before it loads
 *   the program.
 */
#include <errno.h>
#include <linux/capability.h>
#include <linux/keyctl.h>
#include <linux/securebits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "rawsys.h"
#include "thread.h"
#include "user.h"

#define STATUS_LEN	(1UL << 20)	/* there can be 65536 groups */
#define LABEL_LEN	4096
#define NS_LEN		48
#define KEEP_CAPS	((long)SECBIT_KEEP_CAPS)	/* execve clears it */

static const char *const namespaces[] = {
	"user", "mnt", "pid", "pid_for_children", "net", "ipc", "uts", "cgroup", "time",
	"time_for_children",
};

#define NR_NS	(sizeof(namespaces) / sizeof(namespaces[0]))
#define USER_NS	1	/* the first alone */

/**
 * struct user_rights - of a thread or process
 * @status:	its /proc/PID/status
 * @ns:		its namespaces, by their links in /proc; "" if this kernel lacks it, or if they
 *		were not told
 * @nr_ns:	how many of @ns were read
 * @label:	of a security module; "" if there is none
 * @lock:	of the space's, which are filled later: a fork child's own space has its own
 */
struct user_rights {
	pthread_mutex_t lock;
	char status[STATUS_LEN];
	char ns[NR_NS][NS_LEN];
	unsigned int nr_ns;
	char label[LABEL_LEN];
};

_Static_assert(sizeof(struct user_rights) <= USER_SCRATCH, "they are read into it");

/* user_space.creation of the last space that this thread created; ids of threads are reused. */
static __thread uint64_t creator_of;

/* ---- read ---- */

/* A whole file of a process or thread in /proc, as a string. 0 or -errno. */
static int read_whole(pid_t tid, const char *name, char *text, size_t room)
{
	ssize_t len = user_proc_read(tid, name, text, room);

	if (len < 0)
		return (int)len;
	return (size_t)len == room - 1 ? -EOVERFLOW : 0;
}

static const char *line_of(const struct user_rights *r, const char *name)
{
	const char *line = strstr(r->status, name);

	return line ? line + strlen(name) : "";
}

static uint64_t caps_of(const struct user_rights *r, const char *name)
{
	return strtoull(line_of(r, name), NULL, 16);
}

static int number_of(const struct user_rights *r, const char *name)
{
	return atoi(line_of(r, name));
}

/*
 * A process that lacks this capability has to change its user namespace before any other. The
 * files of a new process take long to read.
 */
static unsigned int namespaces_to_read(const struct user_rights *before)
{
	return before && !(caps_of(before, "\nCapPrm:") >> CAP_SYS_ADMIN & 1) ? USER_NS : NR_NS;
}

static void read_namespaces(pid_t tid, struct user_rights *r, unsigned int n)
{
	char name[32];
	unsigned int i;

	for (i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "ns/%s", namespaces[i]);
		user_proc_link(tid, name, r->ns[i], NS_LEN);
	}
	r->nr_ns = n;
}

static void read_label(pid_t tid, struct user_rights *r)
{
	if (read_whole(tid, "attr/current", r->label, sizeof(r->label)))
		r->label[0] = 0;
}

static int read_status(pid_t tid, struct user_rights *r)
{
	return read_whole(tid, "status", r->status, sizeof(r->status));
}

/*
 * Of a process or thread: 0 or -errno. @before: the rights that it once had; NULL: not known.
 * Security modules, which give the labels, come with the kernel and not later.
 */
static int read_rights(pid_t tid, struct user_rights *r, const struct user_rights *before)
{
	int err = read_status(tid, r);

	if (err)
		return err;
	read_namespaces(tid, r, namespaces_to_read(before));
	r->label[0] = 0;
	if (!before || before->label[0])
		read_label(tid, r);
	return 0;
}

/*
 * The space's, which the supervisor has, and nothing can change there: they are needed when others
 * are compared for the first time. Not kept if this thread is not told.
 */
static const struct user_rights *rights_of(const struct user_space *u)
{
	struct user_rights *r = u->rights;

	pthread_mutex_lock(&r->lock);
	if (!r->nr_ns || !r->ns[0][0]) {
		read_label(u->supervisor_tid, r);
		read_namespaces(u->supervisor_tid, r, NR_NS);
	}
	pthread_mutex_unlock(&r->lock);
	return r;
}

/* 0 or @err, with the text set */
static int explain(int err)
{
	if (!err)
		return 0;
	return pvas_fail(err, "user backend: can't read this thread's status in /proc: %s",
			 strerror(-err));
}

/* ---- compare ---- */

static int same_line(const struct user_rights *a, const struct user_rights *b, const char *name)
{
	const char *x = line_of(a, name), *y = line_of(b, name);
	size_t len = strcspn(x, "\n");

	return strcspn(y, "\n") == len && !memcmp(x, y, len);
}

/* Returns the name of what differs, or NULL. @b has @more seccomp filters than @a. */
static const char *find_difference(const struct user_rights *a, const struct user_rights *b,
				   int more)
{
	static const char *const lines[][2] = {
		{ "\nUid:", "user ids" }, { "\nGid:", "group ids" }, { "\nGroups:", "groups" },
		{ "\nCapInh:", "inheritable capabilities" },
		{ "\nCapPrm:", "permitted capabilities" },
		{ "\nCapEff:", "effective capabilities" },
		{ "\nCapBnd:", "bounding capabilities" },
		{ "\nCapAmb:", "ambient capabilities" },
	};
	unsigned int i;

	for (i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		if (!same_line(a, b, lines[i][0]))
			return lines[i][1];
	if (number_of(a, "\nSeccomp_filters:") + more != number_of(b, "\nSeccomp_filters:"))
		return "seccomp filters";
	/* The kernel doesn't tell those of a process in another Landlock domain. */
	for (i = 0; i < a->nr_ns && i < b->nr_ns; i++)
		if (strcmp(a->ns[i], b->ns[i]))
			return a->ns[0][0] && b->ns[0][0] ? "namespaces"
							  : "namespaces or Landlock domain";
	return strcmp(a->label, b->label) ? "security label" : NULL;
}

/* ---- what execve() would do ---- */

/* Are the real, effective, saved and file system ids the same? */
static int is_plain(const struct user_rights *r, const char *name)
{
	unsigned int id[4] = { 0 };

	return sscanf(line_of(r, name), "%u %u %u %u", &id[0], &id[1], &id[2], &id[3]) == 4 &&
	       id[0] == id[1] && id[0] == id[2] && id[0] == id[3];
}

/* The permitted capabilities after execve() of a file without any; see capabilities(7). */
static uint64_t caps_after_exec(const struct user_rights *r, long securebits)
{
	uint64_t root = 0;

	if (!number_of(r, "\nUid:") && !(securebits & SECBIT_NOROOT))
		root = caps_of(r, "\nCapInh:") | caps_of(r, "\nCapBnd:");
	if (number_of(r, "\nNoNewPrivs:"))
		root &= caps_of(r, "\nCapPrm:");
	return root | caps_of(r, "\nCapAmb:");
}

/* Returns the name of what execve() would change, or NULL. */
static const char *changed_by_exec(const struct user_rights *r, long securebits)
{
	uint64_t after = caps_after_exec(r, securebits);

	if (!is_plain(r, "\nUid:"))
		return "user ids";
	if (!is_plain(r, "\nGid:"))
		return "group ids";
	if (caps_of(r, "\nCapPrm:") != after)
		return "permitted capabilities";
	return caps_of(r, "\nCapEff:") != after ? "effective capabilities" : NULL;
}

/* A sandbox that forbids to ask is taken to have set none. */
static long securebits_or_none(long bits)
{
	return bits < 0 ? 0 : bits;
}

static long securebits(void)
{
	return securebits_or_none(pvas_raw1(__NR_prctl, PR_GET_SECUREBITS)) & ~KEEP_CAPS;
}

/* ---- keys ---- */

static long keyring(long id)
{
	return pvas_raw3(__NR_keyctl, KEYCTL_GET_KEYRING_ID, id, 0);
}

/* After the end of a session its keyring can't be used any more, which is no difference. */
static int has_session_keys(const struct user_space *u)
{
	long mine = keyring(KEY_SPEC_SESSION_KEYRING);

	if (mine == u->session_keyring)
		return 1;
	return mine < 0 && u->session_keyring > 0 && mine == keyring(u->session_keyring);
}

/* ---- dumpable ---- */

static int may_ptrace_all(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct caps[2] = { 0 };

	pvas_raw2(__NR_capget, &head, caps);
	return caps[0].effective >> CAP_SYS_PTRACE & 1;
}

/* Mapping a task's file needs its descriptor, which needs the right to trace the task. */
static int check_dumpable(int err)
{
	if (pvas_raw1(__NR_prctl, PR_GET_DUMPABLE) == 1 || may_ptrace_all())
		return 0;
	return pvas_fail(err,
			 "user backend: this process is not dumpable, so its tasks' files can't be mapped (it has changed its user, or set PR_SET_DUMPABLE)");
}

/* ---- the creator ---- */

static int begin(struct user_space *u)
{
	static uint64_t count;
	const char *what;
	int err;

	err = explain(read_status((pid_t)pvas_raw0(__NR_gettid), u->rights));
	if (err)
		return err;
	u->descriptors = (unsigned int)number_of(u->rights, "\nFDSize:");
	u->securebits = securebits();
	u->session_keyring = keyring(KEY_SPEC_SESSION_KEYRING);
	what = changed_by_exec(u->rights, u->securebits);
	if (what)
		return pvas_fail(-EPERM,
				 "user backend: execve() would change this thread's %s, but a task keeps them",
				 what);
	u->one_filter = !number_of(u->rights, "\nSeccomp_filters:") ||
			number_of(u->rights, "\nThreads:") == 1;
	u->creation = __atomic_add_fetch(&count, 1, __ATOMIC_RELAXED);
	creator_of = u->creation;
	return check_dumpable(-EACCES);
}

int user_credentials_begin(struct user_space *u)
{
	u->rights = calloc(1, sizeof(*u->rights));
	u->scratch = malloc(USER_SCRATCH);
	if (!u->rights || !u->scratch)
		return -ENOMEM;
	pthread_mutex_init(&u->rights->lock, NULL);
	return begin(u);
}

void user_credentials_end(struct user_space *u)
{
	free(u->rights);
	free(u->scratch);
	u->rights = NULL;
	u->scratch = NULL;
}

/* ---- the caller of pvas_task_spawn() ---- */

/*
 * Filters are only ever added. So threads with as many filters have the same ones if they
 * descend from the creator: all those of a process that had one thread at that time.
 */
static int has_creators_filters(const struct user_space *u)
{
	return u->one_filter || creator_of == u->creation;
}

/* 0, or -errno with the text set; what differs in @what, or NULL */
static int compare_rights(const struct user_space *u, const char **what)
{
	const struct user_rights *its = rights_of(u);
	struct user_rights *mine = u->scratch;
	int err;

	err = explain(read_rights((pid_t)pvas_raw0(__NR_gettid), mine,
				  creator_of == u->creation ? its : NULL));
	if (err)
		return err;
	*what = find_difference(its, mine, 0);
	if (!*what && securebits() != u->securebits)
		*what = "securebits";
	if (!*what && !has_session_keys(u))
		*what = "session's keys";
	if (!*what && !has_creators_filters(u))
		*what = "seccomp filters may";
	return 0;
}

int user_credentials_check(const struct user_space *u, int promised)
{
	const char *what;
	int err = 0;

	/* First, because under another root there may be no /proc. */
	what = user_thread_differs(u, promised, &err);
	if (err)
		return pvas_fail(err, "user backend: can't compare this thread: %s",
				 strerror(-err));
	if (!what && !promised) {
		err = compare_rights(u, &what);
		if (err)
			return err;
	}
	if (what)
		return pvas_fail(-EPERM,
				 "user backend: this thread's %s differ from those of the space's tasks",
				 what);
	return check_dumpable(-EPERM);
}

/* ---- the new process ---- */

/* Returns the name of what differs, or NULL. */
static const char *difference_of_child(const struct user_space *u, const struct user_rights *r)
{
	const char *what = find_difference(rights_of(u), r, 1);

	if (!what && securebits_or_none(u->clone_request.securebits) != u->securebits)
		what = "securebits";
	return !what && u->clone_request.shut_out ? "Landlock domain" : what;
}

int user_credentials_check_child(struct user_space *u, pid_t pid)
{
	struct user_rights *r = u->scratch;
	const char *what = NULL;
	int err;

	err = read_rights(pid, r, rights_of(u));
	if (!err)
		what = difference_of_child(u, r);
	/* Of a process that has been killed less is left in /proc. */
	if ((err || what) && user_child_dead(pid))
		return -ECHILD;
	if (err)
		return pvas_fail(err, "user backend: can't read the new process' status in /proc: %s",
				 strerror(-err));
	if (what)
		return pvas_fail(-EPERM,
				 "user backend: the new process' %s differ from those of the space's tasks",
				 what);
	return 0;
}

/* ---- a task that execs ---- */

int user_credentials_hold(const struct user_space *u, pid_t tid)
{
	struct user_rights *r = malloc(sizeof(*r));
	int hold = r && !read_rights(tid, r, NULL) && !find_difference(rights_of(u), r, 1);

	free(r);
	return hold;
}

static int alike(pid_t a, pid_t b, struct user_rights *x, struct user_rights *y)
{
	static const char *const lines[] = {
		"\nNoNewPrivs:", "\nSpeculation_Store_Bypass:", "\nSpeculationIndirectBranch:",
	};
	unsigned int i;

	if (read_rights(a, x, NULL) || read_rights(b, y, NULL) || find_difference(x, y, 0))
		return 0;
	for (i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		if (!same_line(x, y, lines[i]))
			return 0;
	user_proc_read(a, "cgroup", x->status, sizeof(x->status));
	user_proc_read(b, "cgroup", y->status, sizeof(y->status));
	return !strcmp(x->status, y->status);
}

int user_credentials_alike(pid_t a, pid_t b)
{
	struct user_rights *r = malloc(2 * sizeof(*r));
	int same = r && alike(a, b, r, r + 1);

	free(r);
	return same;
}
