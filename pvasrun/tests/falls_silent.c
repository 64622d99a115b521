// SPDX-License-Identifier: GPL-2.0-only
/*
 * Runs a command beside a file server that answers at first, and not later.
 *
 *	falls_silent DIRECTORY FILE lookup|getattr N|NAME COMMAND ARGUMENT...
 *
 * In DIRECTORY there is "prog", with the contents of FILE, or a FIFO if that is one. Requests of
 * this kind are answered N times, or until there is a file NAME, then nothing is; negative: always,
 * and how many there were is written to standard output. The kernel keeps no name and no attribute.
 *
 * The directory is mounted over, which needs root. Returns the command's exit status; 77 if
 * there can be no such file here.
 */
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "../../libpvas/tests/hung_server.h"

#define SKIPPED		77
#define MAX_READ	(1 << 17)

struct file {
	int dev, fd;
	struct stat st;
	uint32_t opcode;	/* whose requests are counted */
	int answers;
	const char *until;	/* a file's name, or NULL */
	int *count;
};

static void send(const struct file *file, uint64_t unique, int err, const void *data, size_t len)
{
	static char buf[sizeof(struct fuse_out_header) + MAX_READ];
	struct fuse_out_header out = { .unique = unique, .error = -err };

	out.len = (uint32_t)(sizeof(out) + len);
	memcpy(buf, &out, sizeof(out));
	if (len)
		memcpy(buf + sizeof(out), data, len);
	/* The process that asked may be gone. */
	if (write(file->dev, buf, out.len) < 0 && errno != ENOENT)
		_exit(1);
}

static struct fuse_attr attr_in(const struct file *file, uint64_t id)
{
	if (id == FUSE_ROOT_ID)
		return (struct fuse_attr){ .ino = id, .nlink = 1, .mode = S_IFDIR | 0755 };
	return (struct fuse_attr){
		.ino = id, .nlink = 1, .size = (uint64_t)file->st.st_size,
		.mode = (file->st.st_mode & S_IFMT) | 0755,
	};
}

static void send_contents(const struct file *file, const struct fuse_in_header *in)
{
	const struct fuse_read_in *want = (const struct fuse_read_in *)(in + 1);
	static char buf[MAX_READ];
	ssize_t n = pread(file->fd, buf, want->size < MAX_READ ? want->size : MAX_READ,
			  (off_t)want->offset);

	send(file, in->unique, 0, buf, n > 0 ? (size_t)n : 0);
}

static void answer_from(const struct file *file, const struct fuse_in_header *in)
{
	struct fuse_init_out init = { .major = 7, .minor = 31, .max_write = 4096 };
	struct fuse_entry_out entry = { .nodeid = FILE_ID, .attr = attr_in(file, FILE_ID) };
	struct fuse_attr_out attr = { .attr = attr_in(file, in->nodeid) };
	struct fuse_open_out open = { .fh = 1 };

	switch (in->opcode) {
	case FUSE_INIT:
		send(file, in->unique, 0, &init, sizeof(init));
		break;
	case FUSE_LOOKUP:
		if (strcmp((const char *)(in + 1), "prog"))
			send(file, in->unique, ENOENT, NULL, 0);
		else
			send(file, in->unique, 0, &entry, sizeof(entry));
		break;
	case FUSE_GETATTR:
		send(file, in->unique, 0, &attr, sizeof(attr));
		break;
	case FUSE_OPEN:
	case FUSE_OPENDIR:
		send(file, in->unique, 0, &open, sizeof(open));
		break;
	case FUSE_READ:
		send_contents(file, in);
		break;
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET:
	case FUSE_INTERRUPT:
		break;
	case FUSE_RELEASE:
	case FUSE_FLUSH:
	case FUSE_ACCESS:
		send(file, in->unique, 0, NULL, 0);
		break;
	default:
		send(file, in->unique, ENOSYS, NULL, 0);
	}
}

static bool is_enough(const struct file *file)
{
	if (file->until)
		return !access(file->until, F_OK);
	return ++*file->count > file->answers && file->answers >= 0;
}

static void __attribute__((noreturn)) serve_file(const struct file *file)
{
	static char buf[1 << 18] __attribute__((aligned(8)));
	const struct fuse_in_header *in = (const struct fuse_in_header *)buf;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	alarm(60);
	while (read(file->dev, buf, sizeof(buf)) > 0) {
		if (in->opcode == file->opcode && is_enough(file))
			break;
		answer_from(file, in);
	}
	for (;;)
		pause();
}

/* The kernel checks permissions, and asks for attributes for that. */
static int mount_file(const char *dir, int dev)
{
	char options[128];

	snprintf(options, sizeof(options),
		 "fd=%d,rootmode=40000,user_id=0,group_id=0,default_permissions", dev);
	return unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	       mount("silent", dir, "fuse", MS_NODEV | MS_NOSUID, options);
}

static int run_command(char **argv)
{
	int status = 0;
	pid_t pid = fork();

	if (!pid) {
		execvp(argv[0], argv);
		_exit(127);
	}
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int main(int argc, char **argv)
{
	struct file file = { .dev = open("/dev/fuse", O_RDWR | O_CLOEXEC) };
	pid_t server;
	int status;

	if (argc < 6)
		return 1;
	file.count = mmap(NULL, sizeof(int), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			  -1, 0);
	file.fd = open(argv[2], O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	file.opcode = !strcmp(argv[3], "lookup") ? FUSE_LOOKUP : FUSE_GETATTR;
	file.answers = atoi(argv[4]);
	file.until = argv[4][0] > '9' ? argv[4] : NULL;
	if (file.count == MAP_FAILED || file.fd < 0 || fstat(file.fd, &file.st))
		return 1;
	if (file.dev < 0 || mount_file(argv[1], file.dev))
		return SKIPPED;
	server = fork();
	if (!server)
		serve_file(&file);
	close(file.dev);
	status = run_command(argv + 5);
	kill(server, SIGKILL);
	waitpid(server, NULL, 0);
	if (file.answers < 0)
		printf("%d\n", *file.count);
	return status;
}
