// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The store file:PATH. Its room is allocated when it is opened, so that a full file system is
 * an error then and not in the middle of a job. A file in a folder has no name: nothing is
 * left of it, whatever the end of the process.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <linux/fs.h>

#include "ring.h"
#include "store.h"

/**
 * struct file_store - an open file
 * @fd:		by which pages pass it: with O_DIRECT, where the file system has that
 * @own:	it is ours alone, so discarded pages can give their room back
 * @size:	of the part that pages are put into, in bytes
 * @lock, @rings: io_urings that no thread uses now
 * @no_rings:	there are no others to be had
 * @path:	for messages
 */
struct file_store {
	struct far_store store;
	int fd;
	bool own;
	off_t size;
	uint64_t put_bytes, get_bytes;
	pthread_mutex_t lock;
	struct file_ring *rings;
	bool no_rings;
	char path[];
};

/** struct file_ring - one that @next follows in the list of those unused */
struct file_ring {
	struct far_ring ring;
	struct file_ring *next;
};

/* Bytes of one transfer: the kernel's limit is higher. */
enum { MOST_AT_ONCE = 1 << 30 };

static struct file_store *to_file(struct far_store *store)
{
	return (struct file_store *)store;
}

static int fail(const struct file_store *f, const char *call)
{
	int err = errno ? errno : EIO;

	return far_fail(-err, "file:%s: %s: %s", f->path, call, strerror(err));
}

/* Open with O_DIRECT, or without if the file system refuses it. */
static int open_either(const char *path, int flags)
{
	int fd = open(path, flags | O_DIRECT | O_CLOEXEC, 0600);

	return fd < 0 && errno == EINVAL ? open(path, flags | O_CLOEXEC, 0600) : fd;
}

/*
 * Pages are memory of this process: nobody else may read or change them. Those without access to
 * the file can't lock it, either. A group may have access to devices, as "disk" has.
 */
static int check_owner(const struct file_store *f, const struct stat *st)
{
	mode_t others = S_ISBLK(st->st_mode) ? 07 : 077;

	if (S_ISLNK(st->st_mode))
		return far_fail(-ELOOP, "file:%s: a symbolic link (name the file itself)", f->path);
	if (!S_ISREG(st->st_mode) && !S_ISBLK(st->st_mode))
		return far_fail(-EINVAL, "file:%s: neither a file, nor a block device, nor a folder", f->path);
	if (st->st_uid != geteuid() && st->st_uid != 0)
		return far_fail(-EPERM, "file:%s: belongs to another user", f->path);
	if (st->st_mode & others)
		return far_fail(-EPERM, "file:%s: other users have rights to it (chmod %s)", f->path,
				S_ISBLK(st->st_mode) ? "660" : "600");
	return 0;
}

/* Large enough, and used by nobody else */
static int check_room(const struct file_store *f, const struct stat *st, uint64_t size)
{
	uint64_t has = (uint64_t)st->st_size;

	if (S_ISBLK(st->st_mode) && ioctl(f->fd, BLKGETSIZE64, &has))
		return fail(f, "BLKGETSIZE64");
	if (has < size)
		return far_fail(-ENOSPC, "file:%s: has %" PRIu64 " bytes, %" PRIu64 " are needed",
				f->path, has, size);
	if (flock(f->fd, LOCK_EX | LOCK_NB))
		return errno == EWOULDBLOCK ?
			far_fail(-EBUSY, "file:%s: another process uses it", f->path) : fail(f, "flock");
	return 0;
}

/* @at is an O_PATH descriptor of the file, so that what has been checked is what is opened. */
static int open_existing(struct file_store *f, int at, const struct stat *st, uint64_t size)
{
	char path[40];
	int err = check_owner(f, st);

	if (err)
		return err;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", at);
	f->fd = open_either(path, O_RDWR);
	if (f->fd < 0)
		return fail(f, "open");
	err = check_room(f, st, size);
	if (err)
		close(f->fd);
	return err;
}

/* A file that has a name for a moment: not all file systems have O_TMPFILE. */
static int open_and_unlink(const char *folder)
{
	size_t room = strlen(folder) + 32;
	char *path = malloc(room);
	int fd = -1, err = ENOMEM;

	if (path) {
		snprintf(path, room, "%s/.pvas-far-XXXXXX", folder);
		fd = mkostemp(path, O_CLOEXEC);
		err = errno;
		if (fd >= 0)
			unlink(path);
	}
	free(path);
	errno = err;
	return fd;
}

static int open_unnamed(struct file_store *f, uint64_t size)
{
	int err;

	f->own = true;
	f->fd = open_either(f->path, O_RDWR | O_TMPFILE | O_EXCL);
	if (f->fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR))
		f->fd = open_and_unlink(f->path);
	if (f->fd < 0)
		return fail(f, "open");
	err = fallocate(f->fd, 0, 0, (off_t)size) ? errno : 0;
	if (err == EOPNOTSUPP)
		err = ftruncate(f->fd, (off_t)size) ? errno : 0;
	if (!err)
		return 0;
	close(f->fd);
	return far_fail(-err, "file:%s: no room for %" PRIu64 " bytes: %s", f->path, size, strerror(err));
}

/* A folder's name may be a link: what is made there has no name. */
static int open_file(struct file_store *f, uint64_t size)
{
	struct stat st;
	int at, err;

	if (!stat(f->path, &st) && S_ISDIR(st.st_mode))
		return open_unnamed(f, size);
	at = open(f->path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (at < 0)
		return fail(f, "open");
	err = fstat(at, &st) ? fail(f, "fstat") : open_existing(f, at, &st, size);
	close(at);
	return err;
}

static int file_open(const struct far_store_config *config, struct far_store **store)
{
	uint64_t size = config->pages * config->page_size;
	size_t len = strlen(config->spec) + 1;
	struct file_store *f;
	int err;

	if (len == 1)
		return far_fail(-EINVAL, "file: a path is missing (file:PATH)");
	f = calloc(1, sizeof(*f) + len);
	if (!f)
		return far_fail(-ENOMEM, "no memory");
	memcpy(f->path, config->spec, len);
	f->store = (struct far_store){ &far_store_file, config->page_size, config->pages };
	f->size = (off_t)size;
	pthread_mutex_init(&f->lock, NULL);
	err = open_file(f, size);
	if (err)
		free(f);
	else
		*store = &f->store;
	return err;
}

/* Buffers and offsets are multiples of 4096 bytes. A few devices want more for O_DIRECT. */
static bool without_direct(struct file_store *f)
{
	int flags = fcntl(f->fd, F_GETFL);

	return errno == EINVAL && flags >= 0 && flags & O_DIRECT &&
	       !fcntl(f->fd, F_SETFL, flags & ~O_DIRECT);
}

/*
 * Is a regular file as large as it was? One that somebody has truncated grows again by a put of a
 * later page, and what lies before that reads as zeros.
 */
static int check_size(const struct file_store *f)
{
	struct stat st;

	if (fstat(f->fd, &st) || !S_ISREG(st.st_mode) || st.st_size >= f->size)
		return 0;
	return far_fail(-EIO, "file:%s: it was truncated", f->path);
}

/* Of a run of pages, what is left after the first @at bytes */
static int write_rest(struct file_store *f, const struct far_io *io, size_t at)
{
	size_t size = io->count * f->store.page_size;
	off_t from = (off_t)(io->first * f->store.page_size);
	ssize_t n;

	while (at < size) {
		n = pwrite(f->fd, (const char *)io->buf + at, size - at, from + (off_t)at);
		if (n > 0)
			at += (size_t)n;
		else if (n < 0 && errno != EINTR && !without_direct(f))
			return fail(f, "write");
	}
	__atomic_fetch_add(&f->put_bytes, size, __ATOMIC_RELAXED);
	return 0;
}

static int read_rest(struct file_store *f, const struct far_io *io, size_t at)
{
	size_t size = io->count * f->store.page_size;
	off_t from = (off_t)(io->first * f->store.page_size);
	ssize_t n;

	while (at < size) {
		n = pread(f->fd, (char *)io->buf + at, size - at, from + (off_t)at);
		if (n > 0)
			at += (size_t)n;
		else if (!n)
			return far_fail(-EIO, "file:%s: it was truncated", f->path);
		else if (errno != EINTR && !without_direct(f))
			return fail(f, "read");
	}
	__atomic_fetch_add(&f->get_bytes, size, __ATOMIC_RELAXED);
	return 0;
}

static int file_put(struct far_store *store, uint64_t first, uint64_t count, const void *buf)
{
	const struct far_io io = { 1, first, count, (void *)(uintptr_t)buf };
	int err = check_size(to_file(store));

	return err ? err : write_rest(to_file(store), &io, 0);
}

static int file_get(struct far_store *store, uint64_t first, uint64_t count, void *buf)
{
	const struct far_io io = { 0, first, count, buf };
	int err = read_rest(to_file(store), &io, 0);

	return err ? err : check_size(to_file(store));
}

/* ---- several at once ---- */

/* One that no other thread uses now; NULL: the kernel gives none */
static struct file_ring *take_ring(struct file_store *f)
{
	struct file_ring *r;

	pthread_mutex_lock(&f->lock);
	r = f->rings;
	if (r)
		f->rings = r->next;
	pthread_mutex_unlock(&f->lock);
	if (r || __atomic_load_n(&f->no_rings, __ATOMIC_RELAXED))
		return r;
	r = malloc(sizeof(*r));
	if (r && !far_ring_open(&r->ring))
		return r;
	__atomic_store_n(&f->no_rings, true, __ATOMIC_RELAXED);
	free(r);
	return NULL;
}

static void give_ring(struct file_store *f, struct file_ring *r)
{
	pthread_mutex_lock(&f->lock);
	r->next = f->rings;
	f->rings = r;
	pthread_mutex_unlock(&f->lock);
}

static void close_ring(struct file_ring *r)
{
	far_ring_close(&r->ring);
	free(r);
}

/* Start them all, as far as there is a ring: how many bytes of each are done is in @t. */
static void start_together(struct file_store *f, const struct far_io *ios, unsigned int count,
			   struct far_transfer *t)
{
	struct file_ring *r = count > 1 ? take_ring(f) : NULL;
	uint64_t size;
	unsigned int i;

	for (i = 0; i < count; i++) {
		size = ios[i].count * f->store.page_size;
		t[i] = (struct far_transfer){
			.write = ios[i].put,
			.buf = ios[i].buf,
			.size = (uint32_t)(size < MOST_AT_ONCE ? size : MOST_AT_ONCE),
			.at = (off_t)(ios[i].first * f->store.page_size),
		};
	}
	if (!r)
		return;
	if (!far_ring_run(&r->ring, f->fd, t, count)) {
		give_ring(f, r);
		return;
	}
	__atomic_store_n(&f->no_rings, true, __ATOMIC_RELAXED);
	close_ring(r);
}

/* The rest of each transfer goes by itself, which also tells why it fails. */
static int some_together(struct file_store *f, const struct far_io *ios, unsigned int count)
{
	struct far_transfer t[FAR_RING_DEPTH];
	unsigned int i;
	size_t done;
	int err = 0;

	start_together(f, ios, count, t);
	for (i = 0; i < count && !err; i++) {
		done = t[i].done > 0 ? (size_t)t[i].done : 0;
		err = ios[i].put ? write_rest(f, &ios[i], done) : read_rest(f, &ios[i], done);
	}
	return err;
}

static int file_together(struct far_store *store, const struct far_io *ios, unsigned int count)
{
	struct file_store *f = to_file(store);
	unsigned int i, n;
	int err = check_size(f);

	for (i = 0; i < count && !err; i += n) {
		n = count - i < FAR_RING_DEPTH ? count - i : FAR_RING_DEPTH;
		err = some_together(f, ios + i, n);
	}
	return err ? err : check_size(f);
}

/* The room stays allocated: a later put must not fail. */
static void file_discard(struct far_store *store, uint64_t first, uint64_t count)
{
	struct file_store *f = to_file(store);

	if (f->own)
		fallocate(f->fd, FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE,
			  (off_t)(first * store->page_size), (off_t)(count * store->page_size));
}

static void file_counters(struct far_store *store, struct far_store_counters *counters)
{
	struct file_store *f = to_file(store);

	counters->put_bytes = __atomic_load_n(&f->put_bytes, __ATOMIC_RELAXED);
	counters->get_bytes = __atomic_load_n(&f->get_bytes, __ATOMIC_RELAXED);
	counters->held_bytes = store->pages * store->page_size;
}

static void file_close(struct far_store *store)
{
	struct file_store *f = to_file(store);
	struct file_ring *r;

	while ((r = f->rings)) {
		f->rings = r->next;
		close_ring(r);
	}
	pthread_mutex_destroy(&f->lock);
	close(f->fd);
	free(f);
}

const struct far_store_ops far_store_file = {
	.scheme = "file",
	.open = file_open,
	.put = file_put,
	.get = file_get,
	.together = file_together,
	.discard = file_discard,
	.counters = file_counters,
	.close = file_close,
};
