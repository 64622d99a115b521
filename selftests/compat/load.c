// SPDX-License-Identifier: GPL-2.0-only
/* Opens the library named, calls it, closes it, ten times. */
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv)
{
	int i;

	for (i = 0; i < 10; i++) {
		void *lib = dlopen(argv[argc - 1], RTLD_NOW | RTLD_LOCAL);
		int (*answer)(void);

		if (!lib) {
			puts(dlerror());
			return 1;
		}
		answer = (int (*)(void))dlsym(lib, "answer");
		printf("%d\n", answer());
		dlclose(lib);
	}
	return 0;
}
