// SPDX-License-Identifier: GPL-2.0-only
/*
 * BPF programs of root's on functions that the module redirects, as monitoring attaches them:
 * the bounds stay, whichever was there first.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/btf.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "pvas_test.h"

/* The hooks linger after the last space. */
#define HOOKS_OFF_US	1000000

static const char * const traced[] = { "do_madvise", "commit_creds", "copy_creds" };

/* ---- BPF ---- */

/* The bytes that follow a type of this kind, with @n members */
static size_t btf_extra(unsigned int kind, unsigned int n)
{
	switch (kind) {
	case BTF_KIND_INT:
	case BTF_KIND_VAR:
	case BTF_KIND_DECL_TAG:
		return 4;
	case BTF_KIND_ARRAY:
		return sizeof(struct btf_array);
	case BTF_KIND_STRUCT:
	case BTF_KIND_UNION:
	case BTF_KIND_DATASEC:
	case BTF_KIND_ENUM64:
		return 12UL * n;
	case BTF_KIND_ENUM:
	case BTF_KIND_FUNC_PROTO:
		return 8UL * n;
	default:
		return 0;
	}
}

static char *read_btf(void)
{
	int fd = open("/sys/kernel/btf/vmlinux", O_RDONLY | O_CLOEXEC);
	size_t room = 64UL << 20, len = 0;
	char *btf = malloc(room);
	ssize_t n;

	while (btf && fd >= 0 && len < room && (n = read(fd, btf + len, room - len)) > 0)
		len += (size_t)n;
	close(fd);
	if (len)
		return btf;
	free(btf);
	return NULL;
}

/* The number of a function among the kernel's types; 0: there is none */
static unsigned int btf_id_of(const char *btf, const char *name)
{
	const struct btf_header *head = (const void *)btf;
	const char *at = btf + head->hdr_len + head->type_off, *end = at + head->type_len;
	const char *strings = btf + head->hdr_len + head->str_off;
	const struct btf_type *type;
	unsigned int id;

	for (id = 1; at < end; id++) {
		type = (const void *)at;
		if (BTF_INFO_KIND(type->info) == BTF_KIND_FUNC &&
		    !strcmp(strings + type->name_off, name))
			return id;
		at += sizeof(*type) + btf_extra(BTF_INFO_KIND(type->info),
						BTF_INFO_VLEN(type->info));
	}
	return 0;
}

static int bpf(int cmd, union bpf_attr *attr)
{
	return (int)syscall(SYS_bpf, cmd, attr, sizeof(*attr));
}

/* An empty program after each call of the function; a descriptor that keeps it, or -1 */
static int attach(const char *btf, const char *name)
{
	struct bpf_insn code[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	union bpf_attr attr = {
		.prog_type = BPF_PROG_TYPE_TRACING,
		.expected_attach_type = BPF_TRACE_FEXIT,
		.insns = (uint64_t)(uintptr_t)code,
		.insn_cnt = PT_ARRAY_SIZE(code),
		.license = (uint64_t)(uintptr_t)"GPL",
		.attach_btf_id = btf_id_of(btf, name),
	};
	int program = bpf(BPF_PROG_LOAD, &attr), link;

	if (program < 0)
		return -1;
	memset(&attr, 0, sizeof(attr));
	attr.raw_tracepoint.prog_fd = (uint32_t)program;
	link = bpf(BPF_RAW_TRACEPOINT_OPEN, &attr);
	close(program);
	return link;
}

static void detach(int *links)
{
	for (size_t i = 0; i < PT_ARRAY_SIZE(traced); i++)
		close(links[i]);
}

/* Of all of them; false: this kernel can't */
static bool attach_all(int *links)
{
	char *btf = read_btf();
	bool all = btf;

	for (size_t i = 0; i < PT_ARRAY_SIZE(traced); i++) {
		links[i] = btf ? attach(btf, traced[i]) : -1;
		all &= links[i] >= 0;
	}
	free(btf);
	if (!all)
		detach(links);
	return all;
}

/* ---- the bounds ---- */

TASK(try_bounds)
{
	void *header = (void *)(uintptr_t)strtoul(pt_args[0], NULL, 16);
	const unsigned long user = CLONE_VM | CLONE_VFORK | CLONE_NEWUSER | SIGCHLD;

	CHECK_ERR(EPERM, madvise(header, 4096, MADV_DONTNEED));
	CHECK_ERR(EPERM, setresuid(65534, 65534, 65534));
	CHECK_ERR(EPERM, syscall(SYS_clone, user, 0, 0, 0, 0));
}

static int try_in_space(void)
{
	struct pvas_space *space;
	void *own;
	char at[24];
	pid_t pid;
	int ret;

	if (pt_create(&space, 0, 0))
		return -1;
	/* Memory of partition 0, which a task can't change */
	own = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	snprintf(at, sizeof(at), "%lx", (unsigned long)own);
	ret = pvas_task_spawn(space, 1, pt_self(), pt_argv_as("try_bounds", at), environ, NULL,
			      &pid);
	ret = ret < 0 ? ret : pt_wait(pid);
	pvas_space_destroy(space);
	munmap(own, 4096);
	return ret;
}

/* attached while there is no space, but there was one; and detached again */
PVAS_TEST(attached_before)
{
	int links[PT_ARRAY_SIZE(traced)];

	if (pt_backend() != PVAS_BACKEND_KERNEL)
		SKIP(return, "the user backend has no hooks");
	EXPECT_EQ(0, try_in_space());
	usleep(HOOKS_OFF_US);
	if (!attach_all(links))
		SKIP(return, "no BPF tracing on this kernel");
	EXPECT_EQ(0, try_in_space());
	EXPECT_EQ(0, try_in_space());
	detach(links);
	EXPECT_EQ(0, try_in_space());
}

/* attached while there is a space */
PVAS_TEST(attached_beside)
{
	struct pvas_space *space = PT_SPACE();
	int links[PT_ARRAY_SIZE(traced)];

	if (pt_backend() != PVAS_BACKEND_KERNEL)
		SKIP(return, "the user backend has no hooks");
	/* The hooks stay on for a moment: a process can have only one space. */
	if (!attach_all(links)) {
		pvas_space_destroy(space);
		SKIP(return, "no BPF tracing on this kernel");
	}
	pvas_space_destroy(space);
	EXPECT_EQ(0, try_in_space());
	detach(links);
}

PT_MAIN()
