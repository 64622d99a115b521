/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A call of a function of the kernel lasts until the test lets it go on: a BPF program at its
 * begin keeps the processor busy. At kthread_use_mm(), a process that changes its mm is a kernel
 * thread to others meanwhile.
 */
#ifndef WINDOW_H
#define WINDOW_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <unistd.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>

#include "pvas_test.h"

/* Without preemption: after 20 s the kernel complains. */
#define WINDOW_MAX_NS	(15 * CLOCK_NS_PER_S)
/* The program copies so much between two looks. 5.10 has no values of 4 MiB or more. */
#define WINDOW_CHUNK	((4 << 20) - 8192)
#define WINDOW_ROUNDS	4000

/* Shared with the program; then come WINDOW_CHUNK bytes, which it copies to where they are. */
struct window_control {
	uint64_t key;		/* of the call to hold */
	uint64_t go;
	uint64_t max_ns;
	uint64_t open, closed;	/* how often */
};

/* The difference between the call and others */
enum window_key {
	WINDOW_PID,	/* of the process */
	WINDOW_ARG2,	/* the second argument */
	WINDOW_ANY,	/* nothing, and the key is 1 */
};

struct window {
	volatile struct window_control *control;
	int map, prog, event;
};

#define WINDOW_OFF(member)	offsetof(struct window_control, member)
#define WINDOW_LEN		(4096 + WINDOW_CHUNK)

#define BPF_(code_, dst, src, off_, imm_) \
	((struct bpf_insn){ .code = (code_), .dst_reg = (dst), .src_reg = (src), .off = (off_), \
			    .imm = (imm_) })
#define BPF_CALL_(fn)		BPF_(BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_##fn)
#define BPF_EXIT_()		BPF_(BPF_JMP | BPF_EXIT, 0, 0, 0, 0)
#define BPF_MOV_(dst, src)	BPF_(BPF_ALU64 | BPF_MOV | BPF_X, dst, src, 0, 0)
#define BPF_MOV_IMM_(dst, imm)	BPF_(BPF_ALU64 | BPF_MOV | BPF_K, dst, 0, 0, imm)
#define BPF_ALU_(op, dst, src)	BPF_(BPF_ALU64 | (op) | BPF_X, dst, src, 0, 0)
#define BPF_ALU_IMM_(op, dst, imm) BPF_(BPF_ALU64 | (op) | BPF_K, dst, 0, 0, imm)
#define BPF_LOAD_(dst, src, off) BPF_(BPF_LDX | BPF_MEM | BPF_DW, dst, src, off, 0)
#define BPF_ADD_MEM_(dst, src, off) \
	BPF_(BPF_STX | BPF_ATOMIC | BPF_DW, dst, src, off, BPF_ADD)
/* @off: instructions to skip */
#define BPF_JUMP_(op, dst, src, off) BPF_(BPF_JMP | (op) | BPF_X, dst, src, off, 0)
#define BPF_JUMP_IMM_(op, dst, imm, off) BPF_(BPF_JMP | (op) | BPF_K, dst, 0, off, imm)

static inline int window_bpf(int cmd, union bpf_attr *attr)
{
	int ret = (int)syscall(SYS_bpf, cmd, attr, sizeof(*attr));

	return ret < 0 ? -errno : ret;
}

static inline int window_map(void)
{
	union bpf_attr attr = {
		.map_type = BPF_MAP_TYPE_ARRAY, .key_size = 4, .value_size = WINDOW_LEN,
		.max_entries = 1, .map_flags = BPF_F_MMAPABLE,
	};
	struct rlimit all = { RLIM_INFINITY, RLIM_INFINITY };

	/* There it counts as locked memory. */
	if (pt_kernel_before(5, 11) && setrlimit(RLIMIT_MEMLOCK, &all))
		return -errno;
	return window_bpf(BPF_MAP_CREATE, &attr);
}

/* It lets what waits at @first, a map, go on. */
static inline int window_program(int map, enum window_key key, int first)
{
	struct bpf_insn insns[] = {
		/* r7: the key; r1: the registers */
		key == WINDOW_ANY ? BPF_MOV_IMM_(7, 1) :
				    BPF_LOAD_(7, 1, offsetof(struct user_regs_struct, rsi)),
		BPF_MOV_IMM_(6, key != WINDOW_PID),
		BPF_JUMP_IMM_(BPF_JNE, 6, 0, 3),
		BPF_CALL_(get_current_pid_tgid),
		BPF_ALU_IMM_(BPF_RSH, 0, 32),
		BPF_MOV_(7, 0),
		/* r8: the map's value */
		BPF_(BPF_ST | BPF_MEM | BPF_W, 10, 0, -4, 0),
		BPF_(BPF_LD | BPF_IMM | BPF_DW, 1, BPF_PSEUDO_MAP_FD, 0, map),
		BPF_(0, 0, 0, 0, 0),
		BPF_MOV_(2, 10),
		BPF_ALU_IMM_(BPF_ADD, 2, -4),
		BPF_CALL_(map_lookup_elem),
		BPF_JUMP_IMM_(BPF_JEQ, 0, 0, 29),
		BPF_MOV_(8, 0),
		BPF_LOAD_(1, 8, WINDOW_OFF(key)),
		BPF_JUMP_(BPF_JNE, 1, 7, 26),
		BPF_MOV_IMM_(7, 1),
		BPF_ADD_MEM_(8, 7, WINDOW_OFF(open)),
		BPF_(BPF_LD | BPF_IMM | BPF_DW, 1, BPF_PSEUDO_MAP_VALUE, 0, first),
		BPF_(0, 0, 0, 0, WINDOW_OFF(go)),
		BPF_(BPF_STX | BPF_MEM | BPF_DW, 1, 7, 0, 0),
		/* r9: the end */
		BPF_CALL_(ktime_get_ns),
		BPF_LOAD_(9, 8, WINDOW_OFF(max_ns)),
		BPF_ALU_(BPF_ADD, 9, 0),
		BPF_MOV_IMM_(6, WINDOW_ROUNDS),
		/* Each round copies memory, and looks whether it may end. */
		BPF_MOV_(1, 8),
		BPF_ALU_IMM_(BPF_ADD, 1, 4096),
		BPF_MOV_IMM_(2, WINDOW_CHUNK),
		BPF_MOV_(3, 8),
		BPF_ALU_IMM_(BPF_ADD, 3, 4096),
		BPF_CALL_(probe_read_kernel),
		/* Late, or told to go? In one branch: the verifier keeps a state for each. */
		BPF_CALL_(ktime_get_ns),
		BPF_MOV_(1, 9),
		BPF_ALU_(BPF_SUB, 1, 0),
		BPF_ALU_IMM_(BPF_RSH, 1, 63),
		BPF_LOAD_(2, 8, WINDOW_OFF(go)),
		BPF_ALU_(BPF_OR, 1, 2),
		BPF_JUMP_IMM_(BPF_JNE, 1, 0, 2),
		BPF_ALU_IMM_(BPF_SUB, 6, 1),
		BPF_JUMP_IMM_(BPF_JNE, 6, 0, -15),
		BPF_MOV_IMM_(7, 1),
		BPF_ADD_MEM_(8, 7, WINDOW_OFF(closed)),
		BPF_MOV_IMM_(0, 0),
		BPF_EXIT_(),
	};
	union bpf_attr attr = {
		.prog_type = BPF_PROG_TYPE_KPROBE, .insns = (uintptr_t)insns,
		.insn_cnt = PT_ARRAY_SIZE(insns), .license = (uintptr_t)"GPL",
	};

	return window_bpf(BPF_PROG_LOAD, &attr);
}

/* A probe of the kernel's, or -errno */
static inline int window_probe(const char *function)
{
	struct perf_event_attr attr = { .size = sizeof(attr), .sample_period = 1 };
	char type[16];
	int fd;

	if (pt_read_file("/sys/bus/event_source/devices/kprobe/type", type, sizeof(type)))
		return -ENOENT;
	attr.type = (uint32_t)atoi(type);
	attr.kprobe_func = (uintptr_t)function;
	fd = (int)syscall(SYS_perf_event_open, &attr, -1, 0, -1, PERF_FLAG_FD_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/*
 * 0, or -errno where the kernel has no BPF or no probes. With @first, a call that waits there
 * goes on when one begins to wait here: on two processors both can wait, but then nobody else runs.
 */
static inline int window_make_after(struct window *w, const char *function, enum window_key key,
				    const struct window *first)
{
	void *p;

	w->map = window_map();
	if (w->map < 0)
		return w->map;
	p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, w->map, 0);
	if (p == MAP_FAILED)
		return -errno;
	w->control = p;
	w->control->max_ns = WINDOW_MAX_NS;
	w->prog = window_program(w->map, key, first->map);
	if (w->prog < 0)
		return w->prog;
	w->event = window_probe(function);
	if (w->event < 0)
		return w->event;
	return ioctl(w->event, PERF_EVENT_IOC_SET_BPF, w->prog) ||
	       ioctl(w->event, PERF_EVENT_IOC_ENABLE, 0) ? -errno : 0;
}

static inline int window_make_at(struct window *w, const char *function, enum window_key key)
{
	struct window nobody = { .map = window_map() };
	int err = window_make_after(w, function, key, &nobody);

	/* The program holds it. */
	close(nobody.map);
	return err;
}

static inline int window_make(struct window *w)
{
	return window_make_at(w, "kthread_use_mm", WINDOW_PID);
}

/* The next call with this key is to wait: the next change of the process' mm. */
static inline void window_hold(struct window *w, uint64_t key)
{
	w->control->go = 0;
	w->control->open = w->control->closed = 0;
	w->control->key = key;
}

/* It waits now; false: it has not within 30 s. */
static inline bool window_is_open(struct window *w)
{
	int64_t end = now_ns() + 30 * CLOCK_NS_PER_S;

	while (!w->control->open)
		if (now_ns() > end)
			return false;
	return true;
}

/* Lets it go on; false: it has done so before, of itself. */
static inline bool window_close(struct window *w)
{
	bool held = !w->control->closed;

	w->control->go = 1;
	w->control->key = 0;
	return held;
}

/* Is the error that of a kernel without BPF or probes? */
static inline bool window_is_missing(int err)
{
	return err == -EPERM || err == -ENOSYS || err == -ENOENT;
}

static inline void window_break(struct window *w)
{
	close(w->event);
	close(w->prog);
	munmap((void *)w->control, 4096);
	close(w->map);
}

#endif /* WINDOW_H */
