// SPDX-License-Identifier: GPL-2.0-only
/*
 * Looks for what must not be seen. All reading goes through a pipe: write()
 * says EFAULT where a load would kill.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "hostile.h"

size_t read_proc(const char *path, char *buf, size_t room)
{
	long fd = raw6(SYS_openat, AT_FDCWD, (uintptr_t)path, O_RDONLY | O_CLOEXEC, 0, 0, 0);
	size_t len = 0;
	long n;

	while (fd >= 0 && len < room - 1) {
		n = raw6(SYS_read, fd, (uintptr_t)buf + len, room - 1 - len, 0, 0, 0);
		if (n <= 0)
			break;
		len += n;
	}
	buf[len] = '\0';
	if (fd >= 0)
		raw6(SYS_close, fd, 0, 0, 0, 0, 0);
	return len;
}

static uint64_t hex(char **at)
{
	uint64_t v = 0;
	unsigned int c;

	for (;; (*at)++) {
		c = (unsigned char)**at;
		if (c - '0' < 10)
			v = v * 16 + c - '0';
		else if (c - 'a' < 6)
			v = v * 16 + c - 'a' + 10;
		else
			return v;
	}
}

static bool has(const char *text, size_t len, const char *word)
{
	size_t i, n = strlen(word);

	for (i = 0; i + n <= len; i++)
		if (!memcmp(text + i, word, n))
			return true;
	return false;
}

bool next_map(char **at, struct map_line *line)
{
	char *p = *at, *end;

	for (; *p; p = end + !!*end) {
		for (end = p; *end && *end != '\n'; end++)
			;
		line->text = p;
		line->len = end - p;
		line->start = hex(&p);
		/* smaps has other lines between; a mapping's begins with a range. */
		if (p == line->text || *p != '-')
			continue;
		p++;
		line->end = hex(&p);
		if (*p != ' ')
			continue;
		line->readable = p[1] == 'r';
		line->special = has(line->text, line->len, "[vvar");
		line->vdso = has(line->text, line->len, "[vdso");
		*at = end + !!*end;
		return true;
	}
	return false;
}

bool copy_out(int pipe_fds[2], uint64_t addr, void *buf, size_t len)
{
	long n = raw6(SYS_write, pipe_fds[1], addr, len, 0, 0, 0);

	if (n <= 0)
		return false;
	return raw6(SYS_read, pipe_fds[0], (uintptr_t)buf, n, 0, 0, 0) == (long)len;
}

static bool looks_like_kernel(uint64_t w)
{
	return w >= 0xffff800000000000ULL && w < 0xffffffffff000000ULL && !(w & 3);
}

/*
 * Those who share our memory may write where we look, and map another thing there: look
 * again, on a stack that is ours alone.
 */
static bool is_still(uint64_t addr)
{
	char maps[24576], *p = maps;
	struct map_line line;
	uint64_t again = 0;
	int fds[2];
	bool still = false;

	if (raw6(SYS_pipe2, (uintptr_t)fds, O_NONBLOCK | O_CLOEXEC, 0, 0, 0, 0))
		return false;
	read_proc("/proc/self/maps", maps, sizeof(maps));
	while (!still && next_map(&p, &line))
		still = line.special && addr >= line.start && addr < line.end;
	still = still && copy_out(fds, addr, &again, sizeof(again)) &&
		looks_like_kernel(again);
	raw6(SYS_close, fds[0], 0, 0, 0, 0, 0);
	raw6(SYS_close, fds[1], 0, 0, 0, 0, 0);
	return still;
}

static void look_at(const struct actor *a, const struct board *board, uint64_t addr,
		    const uint64_t *words, bool special)
{
	unsigned int i, k, v;

	for (i = 0; i < PAGE / 8; i++) {
		if (special && looks_like_kernel(words[i]) && is_still(addr + 8 * i)) {
			found(F_POINTER, a->session, addr + 8 * i, words[i], 0, NULL);
			return;
		}
		for (v = 0; v < board->n_victims; v++) {
			for (k = 0; k < 4 && i + k < PAGE / 8; k++)
				if (words[i + k] != secret_word(board->victims[v].secret, k))
					break;
			if (k == 4) {
				found(F_SECRET, a->session, addr + 8 * i, board->victims[v].secret,
				      0, NULL);
				return;
			}
		}
	}
}

/*
 * All mappings: their first pages, and their last. The page of a time namespace in the
 * vdso's data is looked at in a space only: elsewhere the kernel itself, 6.1 at least, now
 * and then leaves one mapped that it has freed (doc/reliability.md).
 */
void op_scan(struct actor *a)
{
	static char buf[1 << 16];
	struct map_line line;
	struct board board;
	uint64_t at, *words = (uint64_t *)(a->scratch + PAGE);
	char *p = buf;
	int fds[2];

	if (raw6(SYS_pipe2, (uintptr_t)fds, O_NONBLOCK | O_CLOEXEC, 0, 0, 0, 0))
		return;
	note(a, N_SCAN, 0);
	board_read(&board);
	read_proc("/proc/self/maps", buf, sizeof(buf));
	while (next_map(&p, &line)) {
		if (!line.readable)
			continue;
		for (at = line.start; at < line.end; at += PAGE) {
			if (at == line.start + 12 * PAGE && line.end - at > 4 * PAGE)
				at = line.end - 4 * PAGE;
			if (copy_out(fds, at, words, PAGE))
				look_at(a, &board, at, words, line.special && a->in_space);
		}
	}
	memset(words, 0, PAGE);
	raw6(SYS_close, fds[0], 0, 0, 0, 0, 0);
	raw6(SYS_close, fds[1], 0, 0, 0, 0, 0);
}

static void proc_path(char *to, int pid, const char *name)
{
	char digits[12];
	int n = 0;

	memcpy(to, "/proc/", 6);
	to += 6;
	do {
		digits[n++] = '0' + pid % 10;
		pid /= 10;
	} while (pid);
	while (n)
		*to++ = digits[--n];
	strcpy(to, name);
}

/* Another user's process, by all ways to read one: each must be refused. */
void op_peek(struct actor *a)
{
	struct { uint64_t base, len; } own = { (uintptr_t)a->scratch + PAGE, 64 }, theirs;
	struct board board;
	struct victim *v;
	char path[64];
	long fd, n;

	board_read(&board);
	if (!board.n_victims)
		return;
	v = &board.victims[pick(a, board.n_victims)];
	if (v->uid == raw6(SYS_getuid, 0, 0, 0, 0, 0, 0) && !v->addr)
		return;
	note(a, N_PEEK, v->pid);
	theirs.base = v->addr;
	theirs.len = 64;
	n = CALL(a, SYS_process_vm_readv, v->pid, &own, 1, &theirs, 1, 0);
	if (n <= 0) {
		proc_path(path, v->pid, "/mem");
		fd = raw6(SYS_openat, AT_FDCWD, (uintptr_t)path, O_RDONLY | O_CLOEXEC, 0, 0, 0);
		n = fd < 0 ? fd : CALL(a, SYS_pread64, fd, a->scratch + PAGE, 64, v->addr);
		if (fd >= 0)
			raw6(SYS_close, fd, 0, 0, 0, 0, 0);
	}
	if (n == 64 && *(uint64_t *)(a->scratch + PAGE) == secret_word(v->secret, 0))
		found(F_WALL, a->session, v->pid, v->addr, 0, NULL);
	memset(a->scratch + PAGE, 0, 64);
}
