// SPDX-License-Identifier: GPL-2.0
/*
 * The execve() of an armed process: what is refused, with which error, and what
 * becomes of the partition; and what a program sees that gets in.
 */
#define _GNU_SOURCE
#include <elf.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/close_range.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "pvas_test.h"

extern char **environ;

static char path_buf[4096];

/* A path in the test's own directory. */
static const char *tmp(const char *name)
{
	snprintf(path_buf, sizeof(path_buf), "%s/%s", pt_tmpdir(), name);
	return path_buf;
}

/* A whole file; NULL if it can't be read. */
static char *slurp(const char *path, size_t *len)
{
	struct stat st;
	char *buf = NULL;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd >= 0 && !fstat(fd, &st) && (buf = malloc(st.st_size + 1)) &&
	    read(fd, buf, st.st_size) == st.st_size)
		*len = st.st_size;
	close(fd);
	return buf;
}

static const char *put_file(const char *name, const void *data, size_t len, mode_t mode)
{
	const char *path = tmp(name);
	int fd;

	unlink(path);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0700);
	if (fd < 0 || write(fd, data, len) != (ssize_t)len || fchmod(fd, mode))
		return NULL;
	close(fd);
	return path;
}

static const char *copy_file(const char *name, const char *from, mode_t mode)
{
	size_t len;
	char *data = slurp(from, &len);
	const char *path = data ? put_file(name, data, len, mode) : NULL;

	free(data);
	return path;
}

/* Beside this program. */
static const char *beside(const char *name)
{
	static char path[4096];

	snprintf(path, sizeof(path), "%.*s/%s", (int)(strrchr(pt_self(), '/') - pt_self()),
		 pt_self(), name);
	return path;
}

static struct pvas_space *new_space(struct __test_metadata *_metadata, uint64_t partition)
{
	struct pvas_create_attr attr = {
		.size = sizeof(attr), .backend = pt_backend(), .partition_size = partition,
	};
	struct pvas_space *space = NULL;

	ASSERT_EQ(0, pvas_create(&space, &attr)) TH_LOG("%s", pvas_last_error());
	return space;
}

struct exec_args {
	struct pvas_space *space;
	const char *path;
	const char *arg;
};

/* -errno of the exec, or what the program's wait status says: see pt_wait(). */
static int run_path(struct pvas_space *space, const char *path, const char *name)
{
	char *argv[] = { (char *)path, (char *)"--task", (char *)name, NULL };
	pid_t pid;
	int ret = pvas_spawn(space, PVAS_ANY, path, argv, environ, NULL, &pid);

	return ret < 0 ? ret : pt_wait(pid);
}

TASK(succeed)
{
	CHECK(pvas_self() >= 0);
}

TASK(exit_7)
{
	_exit(7);
}

/* this very program as a task */
PVAS_TEST(runs)
{
	struct pvas_space *space = new_space(_metadata, 0);

	EXPECT_EQ(0, run_path(space, pt_self(), "succeed"));
	EXPECT_EQ(7, run_path(space, pt_self(), "exit_7"));
	EXPECT_EQ(0, pvas_tasks(space, NULL, 0));
	pvas_destroy(space);
}

/* missing, not executable, a directory, through a file, a name too long */
PVAS_TEST(no_such_program)
{
	struct pvas_space *space = new_space(_metadata, 0);
	char longname[5000];

	memset(longname, 'x', sizeof(longname));
	longname[0] = '/';
	longname[sizeof(longname) - 1] = '\0';
	EXPECT_EQ(-ENOENT, run_path(space, "/nonexistent", NULL));
	EXPECT_EQ(-EACCES, run_path(space, "/tmp", NULL));
	EXPECT_EQ(-ENOTDIR, run_path(space, "/etc/passwd/x", NULL));
	EXPECT_EQ(-ENAMETOOLONG, run_path(space, longname, NULL));
	EXPECT_EQ(-EACCES, run_path(space, copy_file("noexec", pt_self(), 0600), NULL));
	EXPECT_EQ(0, pvas_tasks(space, NULL, 0));
	pvas_destroy(space);
}

/* ---- malformed programs ---- */

#define EHDR(member) offsetof(Elf64_Ehdr, member), sizeof(((Elf64_Ehdr *)0)->member)
#define PHDR(member) offsetof(Elf64_Phdr, member), sizeof(((Elf64_Phdr *)0)->member)

static const struct {
	const char *what;
	int type;	/* -1: the ELF header; else the first program header of this type */
	size_t off, len;
	uint64_t value;
} corruptions[] = {
	{ "magic", -1, 0, 1, 0x7e },
	{ "32 bits", -1, EI_CLASS, 1, ELFCLASS32 },
	{ "big endian", -1, EI_DATA, 1, ELFDATA2MSB },
	{ "ident version", -1, EI_VERSION, 1, 9 },
	{ "ET_EXEC", -1, EHDR(e_type), ET_EXEC },
	{ "ET_REL", -1, EHDR(e_type), ET_REL },
	{ "ET_CORE", -1, EHDR(e_type), ET_CORE },
	{ "aarch64", -1, EHDR(e_machine), EM_AARCH64 },
	{ "i386", -1, EHDR(e_machine), EM_386 },
	{ "no machine", -1, EHDR(e_machine), 0 },
	{ "version", -1, EHDR(e_version), 0 },
	{ "e_phentsize 0", -1, EHDR(e_phentsize), 0 },
	{ "e_phentsize 32", -1, EHDR(e_phentsize), 32 },
	{ "e_phentsize 57", -1, EHDR(e_phentsize), 57 },
	{ "e_phnum 0", -1, EHDR(e_phnum), 0 },
	{ "e_phnum 65535", -1, EHDR(e_phnum), 65535 },
	{ "e_phoff in the middle of things", -1, EHDR(e_phoff), 3 },
	{ "e_phoff beyond the end", -1, EHDR(e_phoff), 1ULL << 40 },
	{ "e_phoff negative", -1, EHDR(e_phoff), -8ULL },
	{ "e_phoff overflows", -1, EHDR(e_phoff), (1ULL << 63) - 8 },
	{ "e_entry outside", -1, EHDR(e_entry), 1ULL << 46 },
	{ "e_entry 0", -1, EHDR(e_entry), 0 },
	{ "load: filesz > memsz", PT_LOAD, PHDR(p_memsz), 1 },
	{ "load: memsz huge", PT_LOAD, PHDR(p_memsz), -1ULL },
	{ "load: vaddr + memsz overflows", PT_LOAD, PHDR(p_vaddr), -4096ULL },
	{ "load: vaddr kernel", PT_LOAD, PHDR(p_vaddr), 0xffffffff80000000ULL },
	{ "load: not the first", PT_LOAD, PHDR(p_vaddr), 1ULL << 30 },
	{ "load: offset off the page", PT_LOAD, PHDR(p_offset), 8 },
	{ "load: offset beyond the end", PT_LOAD, PHDR(p_offset), 1ULL << 40 },
	{ "load: offset negative", PT_LOAD, PHDR(p_offset), -4096ULL },
	{ "load: alignment 3", PT_LOAD, PHDR(p_align), 3 },
	{ "interp: empty", PT_INTERP, PHDR(p_filesz), 0 },
	{ "interp: one byte", PT_INTERP, PHDR(p_filesz), 1 },
	{ "interp: 5000 bytes", PT_INTERP, PHDR(p_filesz), 5000 },
	{ "interp: not terminated", PT_INTERP, PHDR(p_filesz), 10 },
	{ "interp: beyond the end", PT_INTERP, PHDR(p_offset), 1ULL << 40 },
	{ "interp: negative", PT_INTERP, PHDR(p_offset), -8ULL },
	{ "two interps", PT_GNU_STACK, PHDR(p_type), PT_INTERP },
};

static Elf64_Phdr *find_phdr(char *elf, uint32_t type)
{
	Elf64_Ehdr *e = (Elf64_Ehdr *)elf;
	Elf64_Phdr *p = (Elf64_Phdr *)(elf + e->e_phoff);
	unsigned int i;

	for (i = 0; i < e->e_phnum; i++)
		if (p[i].p_type == type)
			return &p[i];
	return NULL;
}

static int run_bytes(struct pvas_space *space, const char *elf, size_t len)
{
	return run_path(space, put_file("prog", elf, len, 0700), "succeed");
}

/* each header field spoilt in turn: ENOEXEC */
PVAS_TEST(corrupted_headers)
{
	struct pvas_space *space = new_space(_metadata, 0);
	size_t len, i;
	char *good = slurp(pt_self(), &len);
	char *bad = malloc(len);

	ASSERT_NE(NULL, good);
	ASSERT_EQ(0, run_bytes(space, good, len));
	for (i = 0; i < PT_ARRAY_SIZE(corruptions); i++) {
		char *at = bad;

		memcpy(bad, good, len);
		if (corruptions[i].type >= 0)
			at = (char *)find_phdr(bad, corruptions[i].type);
		ASSERT_NE(NULL, at);
		memcpy(at + corruptions[i].off, &corruptions[i].value, corruptions[i].len);
		EXPECT_EQ(-ENOEXEC, run_bytes(space, bad, len)) TH_LOG("%s", corruptions[i].what);
	}
	EXPECT_EQ(0, pvas_tasks(space, NULL, 0));
	EXPECT_EQ(0, run_bytes(space, good, len));
	pvas_destroy(space);
}

/* cut off anywhere before the end of what is to be loaded: ENOEXEC */
PVAS_TEST(truncated)
{
	struct pvas_space *space = new_space(_metadata, 0);
	size_t len, i;
	char *good = slurp(pt_self(), &len);
	size_t cuts[] = { 0, 1, 3, 4, 16, 63, 64, 65, 64 + 56 - 1, 64 + 56, 64 + 3 * 56, 800, 4096,
			  8192 };

	ASSERT_NE(NULL, good);
	for (i = 0; i < PT_ARRAY_SIZE(cuts); i++) {
		EXPECT_EQ(-ENOEXEC, run_bytes(space, good, cuts[i])) TH_LOG("%zu bytes", cuts[i]);
	}
	pvas_destroy(space);
}

/* bytes without any sense: ENOEXEC, and no other format runs them */
PVAS_TEST(not_elf)
{
	struct pvas_space *space = new_space(_metadata, 0);
	char junk[4096];
	size_t i;

	for (i = 0; i < sizeof(junk); i++)
		junk[i] = i * 7 + 1;
	EXPECT_EQ(-ENOEXEC, run_bytes(space, junk, sizeof(junk)));
	EXPECT_EQ(-ENOEXEC, run_bytes(space, "echo hello\n", 11));
	pvas_destroy(space);
}

struct armed {
	struct pt_raw *raw;
	const char *path;
};

/* What an armed process can still do when its exec has failed. */
static int exec_fails_then_cancel(void *arg)
{
	struct armed *a = arg;
	char *argv[] = { (char *)a->path, NULL };
	int err = pt_raw_arm(a->raw->fd, 0, 1, 0);

	if (err)
		return err;
	execv(a->path, argv);
	err = errno;
	return pt_raw_arm(a->raw->fd, 0, 0, PVAS_SPAWN_CANCEL) ? -EIO : -err;
}

/* a non-PIE program: ENOEXEC, not run outside of the space either; still armed */
MODULE_TEST(et_exec, "the ABI of /dev/pvas")
{
	struct pt_raw raw;
	struct armed a = { &raw, beside("nopie") };

	ASSERT_EQ(0, access(a.path, X_OK));
	ASSERT_EQ(0, pt_raw_make(&raw));
	EXPECT_EQ(-ENOEXEC, pt_in_child(exec_fails_then_cancel, &a));
	a.path = "/nonexistent";
	EXPECT_EQ(-ENOENT, pt_in_child(exec_fails_then_cancel, &a));
	EXPECT_EQ(0, pt_raw_count(raw.fd));
	pt_raw_close(&raw);
}

static int armed_only(void *arg)
{
	struct armed *a = arg;

	return pt_raw_arm(a->raw->fd, 0, 1, 0);
}

/* armed, then gone without exec: the index is free when wait() returns */
MODULE_TEST(armed_exit, "the ABI of /dev/pvas")
{
	struct pt_raw raw;
	struct armed a = { &raw, NULL };
	int i;

	ASSERT_EQ(0, pt_raw_make(&raw));
	for (i = 0; i < 50; i++) {
		ASSERT_EQ(0, pt_in_child(armed_only, &a)) TH_LOG("round %d", i);
		ASSERT_EQ(0, pt_raw_count(raw.fd)) TH_LOG("round %d", i);
	}
	pt_raw_close(&raw);
}

/* ---- interpreters ---- */

/* This program, with another interpreter. */
static const char *with_interp(const char *name, const char *interp)
{
	size_t len;
	char *elf = slurp(pt_self(), &len);
	Elf64_Phdr *p = find_phdr(elf, PT_INTERP);

	if (strlen(interp) >= p->p_filesz)
		return NULL;
	memset(elf + p->p_offset, 0, p->p_filesz);
	strcpy(elf + p->p_offset, interp);
	return put_file(name, elf, len, 0755);
}

/* missing: ENOENT; a directory, not executable: EACCES; malformed: ELIBBAD */
PVAS_TEST(interpreter)
{
	struct pvas_space *space = new_space(_metadata, 0);
	size_t len;
	char *ld = slurp("/lib64/ld-linux-x86-64.so.2", &len);
	char *prog = slurp(pt_self(), &len);
	char ip[64];

	ASSERT_NE(NULL, ld);
	EXPECT_EQ(-ENOENT, run_path(space, with_interp("p", "/none"), NULL));
	EXPECT_EQ(-EACCES, run_path(space, with_interp("p", "/tmp"), NULL));
	snprintf(ip, sizeof(ip), "%s/i", pt_tmpdir());

	ASSERT_NE(NULL, put_file("i", ld, 64, 0755));
	EXPECT_EQ(-ELIBBAD, run_path(space, with_interp("p", ip), NULL));
	ASSERT_NE(NULL, put_file("i", "", 0, 0755));
	EXPECT_EQ(-ELIBBAD, run_path(space, with_interp("p", ip), NULL));
	ASSERT_NE(NULL, put_file("i", "#!/bin/sh\n", 10, 0755));
	EXPECT_EQ(-ELIBBAD, run_path(space, with_interp("p", ip), NULL));
	ASSERT_NE(NULL, put_file("i", ld, 64, 0644));
	EXPECT_EQ(-EACCES, run_path(space, with_interp("p", ip), NULL));
	/* An interpreter that has one itself. */
	ASSERT_NE(NULL, put_file("i", prog, len, 0755));
	EXPECT_EQ(-ELIBBAD, run_path(space, with_interp("p", ip), NULL));
	((Elf64_Ehdr *)ld)->e_machine = EM_AARCH64;
	ASSERT_NE(NULL, put_file("i", ld, 4096, 0755));
	EXPECT_EQ(-ELIBBAD, run_path(space, with_interp("p", ip), NULL));
	EXPECT_EQ(0, pvas_tasks(space, NULL, 0));

	/* And a good one at another place. */
	ASSERT_NE(NULL, copy_file("i", "/lib64/ld-linux-x86-64.so.2", 0755));
	EXPECT_EQ(0, run_path(space, with_interp("p", ip), "succeed"));
	pvas_destroy(space);
}

/* ---- rights ---- */

static int nobody_runs(void *arg)
{
	struct pvas_create_attr attr = { .size = sizeof(attr), .backend = pt_backend() };
	struct pvas_space *space;
	int err;

	if (prctl(PR_SET_DUMPABLE, 1))
		return -errno;
	err = pvas_create(&space, &attr);
	if (err)
		return err == -EPERM ? -EIO : err;
	return run_path(space, arg, "succeed");
}

/* a program, or interpreter, that its user may run but not read: EPERM */
PVAS_TEST(unreadable)
{
	char ip[64], path[64];

	PT_NEED_ROOT();
	EXPECT_EQ(0, pt_as_nobody(nobody_runs, (void *)copy_file("r", pt_self(), 0755)));
	EXPECT_EQ(-EPERM, pt_as_nobody(nobody_runs, (void *)copy_file("x", pt_self(), 0711)));
	snprintf(ip, sizeof(ip), "%s/i", pt_tmpdir());
	ASSERT_NE(NULL, copy_file("i", "/lib64/ld-linux-x86-64.so.2", 0711));
	strcpy(path, with_interp("p", ip));
	EXPECT_EQ(-EPERM, pt_as_nobody(nobody_runs, path));
	chmod(ip, 0755);
	EXPECT_EQ(0, pt_as_nobody(nobody_runs, path));
}

/* set-user-id and set-group-id programs: EPERM, even if they change nothing */
PVAS_TEST(set_uid_and_gid)
{
	struct pvas_space *space = new_space(_metadata, 0);
	const char *path = copy_file("suid", pt_self(), 0755);

	ASSERT_NE(NULL, path);
	chmod(path, 04755);
	EXPECT_EQ(-EPERM, run_path(space, path, "succeed"));
	chmod(path, 02755);
	EXPECT_EQ(-EPERM, run_path(space, path, "succeed"));
	if (!geteuid()) {
		chmod(path, 04755);
		EXPECT_EQ(-EPERM, pt_as_nobody(nobody_runs, (void *)path));
	}
	chmod(path, 0755);
	EXPECT_EQ(0, run_path(space, path, "succeed"));
	EXPECT_EQ(0, pvas_tasks(space, NULL, 0));
	pvas_destroy(space);
}

/* a program with file capabilities: EPERM */
PVAS_TEST(file_capabilities)
{
	struct vfs_cap_data cap = {
		.magic_etc = VFS_CAP_REVISION_2 | VFS_CAP_FLAGS_EFFECTIVE,
		.data[0].permitted = 1 << CAP_NET_RAW,
	};
	const char *path = copy_file("cap", pt_self(), 0755);
	struct pvas_space *space;

	PT_NEED_ROOT();
	if (setxattr(path, "security.capability", &cap, XATTR_CAPS_SZ_2, 0))
		SKIP(return, "file capabilities can't be set here");
	space = new_space(_metadata, 0);
	EXPECT_EQ(-EPERM, run_path(space, path, "succeed"));
	EXPECT_EQ(-EPERM, pt_as_nobody(nobody_runs, (void *)path));
	removexattr(path, "security.capability");
	EXPECT_EQ(0, run_path(space, path, "succeed"));
	pvas_destroy(space);
}

static int arm_drop_exec(void *arg)
{
	struct armed *a = arg;
	int err = pt_raw_arm(a->raw->fd, 0, 1, 0);

	if (err)
		return err;
	if (setresgid(65534, 65534, 65534) || setresuid(65534, 65534, 65534))
		return -EIO;
	execl("/bin/true", "true", (char *)NULL);
	return -errno;
}

/* armed, then another user: the exec is refused, EPERM */
MODULE_TEST(credentials_change_after_arming, "the ABI of /dev/pvas")
{
	struct pt_raw raw;
	struct armed a = { &raw, NULL };

	PT_NEED_ROOT();
	ASSERT_EQ(0, pt_raw_make(&raw));
	EXPECT_EQ(-EPERM, pt_in_child(arm_drop_exec, &a));
	pt_raw_close(&raw);
}

/* ---- room ---- */

/* a program that needs more than its partition has: ENOMEM */
PVAS_TEST(too_big)
{
	struct pvas_space *space = new_space(_metadata, 4UL << 30);
	size_t len;
	char *elf = slurp(pt_self(), &len);
	Elf64_Ehdr *e = (Elf64_Ehdr *)elf;
	Elf64_Phdr *p = find_phdr(elf, PT_LOAD), *last = p;

	for (; p < (Elf64_Phdr *)(elf + e->e_phoff) + e->e_phnum; p++)
		if (p->p_type == PT_LOAD)
			last = p;
	last->p_memsz = 5UL << 30;
	EXPECT_EQ(-ENOMEM, run_bytes(space, elf, len));
	last->p_memsz = 1UL << 46;
	EXPECT_EQ(-ENOMEM, run_bytes(space, elf, len));
	last->p_memsz = 1UL << 30;
	EXPECT_EQ(0, run_bytes(space, elf, len));
	pvas_destroy(space);
}

/* ---- the program's file ---- */

static const char *gate;	/* what a task waits for */

TASK(wait_for_gate)
{
	int tries;

	CHECK_EQ(1, write(atoi(pt_args[1]), "r", 1));
	for (tries = 0; tries < 3000 && access(pt_args[0], F_OK); tries++)
		usleep(10000);
	CHECK(tries < 3000);
}

/* Returns when its main() runs. */
static pid_t start_waiting(struct pvas_space *space, const char *path)
{
	char fd[16], c;
	char *argv[] = { (char *)path, (char *)"--task", (char *)"wait_for_gate", (char *)gate,
			 fd, NULL };
	int fds[2], ret;
	pid_t pid;

	if (pipe(fds))
		return -errno;
	snprintf(fd, sizeof(fd), "%d", fds[1]);
	ret = pvas_spawn(space, PVAS_ANY, path, argv, environ, NULL, &pid);
	close(fds[1]);
	if (ret >= 0 && read(fds[0], &c, 1) != 1)
		ret = -ECHILD;
	close(fds[0]);
	return ret < 0 ? ret : pid;
}

/* a running program can't be written to (ETXTBSY), and can be afterwards */
MODULE_TEST(text_busy, "a running program can be written to")
{
	struct pvas_space *space = new_space(_metadata, 0);
	const char *path = strdup(copy_file("busy", pt_self(), 0755));
	pid_t pid[2];
	int fd;

	gate = strdup(tmp("gate"));
	pid[0] = start_waiting(space, path);
	pid[1] = start_waiting(space, path);
	ASSERT_LT(0, pid[0]);
	ASSERT_LT(0, pid[1]);
	EXPECT_EQ(-1, open(path, O_WRONLY));
	EXPECT_EQ(ETXTBSY, errno);
	kill(pid[0], SIGKILL);
	pt_wait(pid[0]);
	EXPECT_EQ(-1, open(path, O_WRONLY));
	EXPECT_EQ(ETXTBSY, errno);
	close(creat(gate, 0600));
	EXPECT_EQ(0, pt_wait(pid[1]));
	fd = open(path, O_WRONLY);
	EXPECT_LE(0, fd);
	/* And while it is open for writing, it can't be run. */
	EXPECT_EQ(-ETXTBSY, run_path(space, path, "succeed"));
	close(fd);
	EXPECT_EQ(0, run_path(space, path, "succeed"));
	pvas_destroy(space);
}

static int link_of(pid_t pid, const char *name, char *buf, size_t len)
{
	char path[64];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	n = readlink(path, buf, len - 1);
	if (n < 0)
		return -errno;
	buf[n] = '\0';
	return 0;
}

/* /proc/PID/exe is each task's own; so is comm; cmdline is the first one's */
MODULE_TEST(proc_exe, "/proc/PID/exe is the launcher's")
{
	struct pvas_space *space = new_space(_metadata, 0);
	char a[64], b[64], buf[4096], proc[64];
	pid_t pa, pb;

	gate = strdup(tmp("gate"));
	strcpy(a, copy_file("first", pt_self(), 0755));
	strcpy(b, copy_file("second", pt_self(), 0755));
	pa = start_waiting(space, a);
	pb = start_waiting(space, b);
	ASSERT_LT(0, pa);
	ASSERT_LT(0, pb);
	EXPECT_EQ(0, link_of(pa, "exe", buf, sizeof(buf)));
	EXPECT_STREQ(a, buf);
	EXPECT_EQ(0, link_of(pb, "exe", buf, sizeof(buf)));
	EXPECT_STREQ(b, buf);
	snprintf(proc, sizeof(proc), "/proc/%d/comm", pb);
	EXPECT_EQ(0, pt_read_file(proc, buf, sizeof(buf)));
	EXPECT_STREQ("second", buf);
	snprintf(proc, sizeof(proc), "/proc/%d/cmdline", pa);
	EXPECT_EQ(0, pt_read_file(proc, buf, sizeof(buf)));
	EXPECT_STREQ(a, buf);
	kill(pa, SIGKILL);
	pt_wait(pa);
	/* With the first gone, the second's is shown. */
	EXPECT_EQ(0, link_of(pb, "exe", buf, sizeof(buf)));
	EXPECT_STREQ(b, buf);
	snprintf(proc, sizeof(proc), "/proc/%d/cmdline", pb);
	EXPECT_EQ(0, pt_read_file(proc, buf, sizeof(buf)));
	EXPECT_STREQ(b, buf);
	pt_kill(pb);
	pvas_destroy(space);
}

/* ---- scripts ---- */

/* a script runs in the space: its interpreter is the program */
PVAS_TEST(script)
{
	struct pvas_space *space = new_space(_metadata, 0);
	char text[4200];
	int n;

	n = snprintf(text, sizeof(text), "#!%s --task\n", pt_self());
	/* Its name follows: the task function is not found, and the exit status says so. */
	EXPECT_EQ(1, run_path(space, put_file("s", text, n, 0755), NULL));
	n = snprintf(text, sizeof(text), "#!/bin/sh\nexit 9\n");
	EXPECT_EQ(9, run_path(space, put_file("s", text, n, 0755), NULL));
	n = snprintf(text, sizeof(text), "#!/nonexistent\n");
	EXPECT_EQ(-ENOENT, run_path(space, put_file("s", text, n, 0755), NULL));
	n = snprintf(text, sizeof(text), "#!%s\n", beside("nopie"));
	EXPECT_EQ(-ENOEXEC, run_path(space, put_file("s", text, n, 0755), NULL));
	n = snprintf(text, sizeof(text), "#!\n");
	EXPECT_EQ(-ENOEXEC, run_path(space, put_file("s", text, n, 0755), NULL));
	EXPECT_EQ(0, pvas_tasks(space, NULL, 0));
	pvas_destroy(space);
}

/* ---- exec by many, and out again ---- */

static void *idle_thread(void *arg)
{
	pause();
	return arg;
}

static void *exec_thread(void *arg)
{
	const struct exec_args *a = arg;
	char *argv[] = { (char *)a->path, (char *)"--task", (char *)a->arg, NULL };

	execv(a->path, argv);
	_exit(99);
}

/* an armed process with threads: they go, the caller enters, leader or not */
MODULE_TEST(threaded_exec, "the ABI of /dev/pvas")
{
	struct pt_raw raw;
	struct exec_args a = { NULL, pt_self(), "exit_7" };
	pthread_t t;
	pid_t pid;
	int by_leader, i;

	ASSERT_EQ(0, pt_raw_make(&raw));
	raw.slots[1].state = 0;
	for (by_leader = 0; by_leader < 2; by_leader++) {
		pid = fork();
		if (!pid) {
			for (i = 0; i < 8; i++)
				if (pthread_create(&t, NULL, idle_thread, NULL))
					_exit(98);
			if (pt_raw_arm(raw.fd, 0, 1, 0))
				_exit(97);
			if (by_leader)
				exec_thread(&a);
			pthread_create(&t, NULL, exec_thread, &a);
			pause();
		}
		EXPECT_EQ(pid, pt_raw_call(&raw, 1, SYS_getpid));
		EXPECT_EQ(pid, pt_raw_call(&raw, 1, SYS_gettid));
		pt_kill(pid);
		raw.slots[1].state = 0;
		EXPECT_EQ(0, pt_raw_count(raw.fd));
	}
	pt_raw_close(&raw);
}

static int out_fd;

/* Outside of the space, as a plain program. */
TASK(say_hello)
{
	CHECK_EQ(-ESRCH, pvas_self());
	CHECK_EQ(1, write(atoi(pt_args[0]), "h", 1));
	pause();
}

TASK(exec_out)
{
	char *argv[] = { (char *)pt_self(), (char *)"--task", (char *)"say_hello", pt_args[0],
			 NULL };

	execv(pt_self(), argv);
	_exit(99);
}

/* an exec out of the space: its partition is free before the new program runs */
PVAS_TEST(exec_out_of_the_space)
{
	struct pvas_space *space = new_space(_metadata, 0);
	char fd[16], c, exe[4096];
	char *argv[] = { (char *)pt_self(), (char *)"--task", (char *)"exec_out", fd, NULL };
	int fds[2], round;
	pid_t pid;

	ASSERT_EQ(0, pipe(fds));
	out_fd = fds[1];
	snprintf(fd, sizeof(fd), "%d", fds[1]);
	for (round = 0; round < 5; round++) {
		ASSERT_EQ(3, pvas_spawn(space, 3, pt_self(), argv, environ, NULL, &pid));
		ASSERT_EQ(1, read(fds[0], &c, 1));
		EXPECT_EQ(0, pvas_tasks(space, NULL, 0));
		EXPECT_EQ(0, link_of(pid, "exe", exe, sizeof(exe)));
		EXPECT_STREQ(pt_self(), exe);
		/* It is no task any more: the space's end is not its end. */
		if (round == 4) {
			pvas_destroy(space);
			EXPECT_EQ(0, kill(pid, 0));
		}
		kill(pid, SIGKILL);
		EXPECT_EQ(256 + SIGKILL, pt_wait(pid));
	}
}

TASK(exec_fails)
{
	char *argv[] = { (char *)"x", NULL };

	CHECK_ERR(ENOENT, execv("/nonexistent", argv));
	CHECK_ERR(EACCES, execv("/tmp", argv));
	CHECK_ERR(ENOEXEC, execv(pt_args[0], argv));
	/* All is as it was. */
	CHECK(pvas_self() > 0);
	CHECK(pt_inside(malloc(1 << 22), 1 << 22));
}

/* a failed exec of a task leaves it the task it was */
PVAS_TEST(exec_of_a_task_fails)
{
	struct pvas_space *space = new_space(_metadata, 0);
	char *argv[] = { (char *)pt_self(), (char *)"--task", (char *)"exec_fails", NULL, NULL };
	pid_t pid;

	argv[3] = strdup(put_file("junk", "\1\2\3\4", 4, 0755));
	ASSERT_LT(0, pvas_spawn(space, PVAS_ANY, pt_self(), argv, environ, NULL, &pid));
	EXPECT_EQ(0, pt_wait(pid));
	pvas_destroy(space);
}

/* ---- what the program finds ---- */

#define BIG_ARGS 2000

TASK(count_args)
{
	int n = 0;

	while (pt_args[n]) {
		CHECK_EQ(n % 256, (int)strlen(pt_args[n]));
		n++;
	}
	CHECK_EQ(BIG_ARGS, n);
	CHECK(!strcmp(getenv("PVAS_TEST_EMPTY"), ""));
	CHECK(pt_inside(pt_args[BIG_ARGS - 1], 255));
}

/* thousands of arguments, empty ones too, arrive */
PVAS_TEST(arguments)
{
	struct pvas_space *space = new_space(_metadata, 0);
	static char *argv[BIG_ARGS + 4];
	static char *envp[] = { (char *)"PVAS_TEST_EMPTY=", NULL };
	pid_t pid;
	int i;

	argv[0] = (char *)pt_self();
	argv[1] = (char *)"--task";
	argv[2] = (char *)"count_args";
	for (i = 0; i < BIG_ARGS; i++) {
		argv[i + 3] = calloc(1, 257);
		memset(argv[i + 3], 'a', i % 256);
	}
	ASSERT_LT(0, pvas_spawn(space, PVAS_ANY, pt_self(), argv, envp, NULL, &pid));
	EXPECT_EQ(0, pt_wait(pid));
	pvas_destroy(space);
}

TASK_TEST(auxiliary_vector)
{
	CHECK_EQ(4096, getauxval(AT_PAGESZ));
	CHECK_EQ(0, getauxval(AT_SECURE));
	CHECK_EQ(getuid(), getauxval(AT_UID));
	CHECK_EQ(geteuid(), getauxval(AT_EUID));
	CHECK_EQ(getgid(), getauxval(AT_GID));
	CHECK_EQ(sysconf(_SC_CLK_TCK), getauxval(AT_CLKTCK));
	CHECK(getauxval(AT_HWCAP) != 0);
	CHECK(getauxval(AT_MINSIGSTKSZ) != 0);
	CHECK(pt_inside((void *)getauxval(AT_PHDR), 56));
	CHECK(pt_inside((void *)getauxval(AT_BASE), 64));
	CHECK(pt_inside((void *)getauxval(AT_ENTRY), 1));
	CHECK(pt_inside((void *)getauxval(AT_RANDOM), 16));
	CHECK(!strcmp((char *)getauxval(AT_PLATFORM), "x86_64"));
	CHECK(!strcmp((char *)getauxval(AT_EXECFN), pt_self()));
	CHECK(!memcmp((void *)getauxval(AT_BASE), ELFMAG, SELFMAG));
	CHECK(!memcmp((void *)getauxval(AT_SYSINFO_EHDR), ELFMAG, SELFMAG));
}

TASK(no_extra_files)
{
	/* The loader has closed the program: 0, 1, 2 and nothing else of ours. */
	CHECK_ERR(EBADF, fcntl(200, F_GETFD));
	CHECK_EQ(3, open("/dev/null", O_RDONLY));
}

static int close_rest(void *arg)
{
	(void)arg;
	return close_range(3, -1, CLOSE_RANGE_CLOEXEC) ? -errno : 0;
}

/* no descriptor of the loader's is left open */
PVAS_TEST(descriptors)
{
	struct pvas_space *space = new_space(_metadata, 0);
	struct pvas_spawn_attr attr = { .size = sizeof(attr), .setup = close_rest };
	pid_t pid;

	ASSERT_LT(0, pvas_spawn(space, PVAS_ANY, pt_self(), pt_task_argv("no_extra_files"),
				environ, &attr, &pid));
	EXPECT_EQ(0, pt_wait(pid));
	pvas_destroy(space);
}

TASK(signals_reset)
{
	struct sigaction sa;
	sigset_t set;

	CHECK_EQ(0, sigaction(SIGUSR1, NULL, &sa));
	CHECK(sa.sa_handler == SIG_DFL);
	sigprocmask(0, NULL, &set);
	CHECK(!sigismember(&set, SIGUSR1));
}

PVAS_TEST(signals)
{
	signal(SIGUSR1, SIG_IGN);
	EXPECT_EQ(0, pt_run_task("signals_reset"));
}

PT_MAIN()
