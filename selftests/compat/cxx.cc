// SPDX-License-Identifier: GPL-2.0-only
/* Exceptions through frames with destructors, in threads too; thread_local objects. */
#include <cstdio>
#include <map>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

static int destroyed;

struct Guard {
	~Guard()
	{
		destroyed++;
	}
};

static int dive(int depth)
{
	Guard g;

	if (!depth)
		throw std::runtime_error("bottom");
	return dive(depth - 1) + 1;
}

struct Counter {
	std::map<std::string, int> seen;
	Counter()
	{
		seen["made"] = 1;
	}
};

static thread_local Counter counter;

static int work(int n)
{
	for (int i = 0; i < n; i++) {
		try {
			throw std::to_string(i % 7);
		} catch (const std::string &s) {
			counter.seen[s]++;
		}
	}
	return counter.seen.size();
}

int main()
{
	std::vector<std::thread> threads;
	std::vector<int> sizes(16);

	try {
		dive(100);
	} catch (const std::exception &e) {
		printf("%s %d\n", e.what(), destroyed);
	}
	for (int i = 0; i < 16; i++)
		threads.emplace_back([i, &sizes] { sizes[i] = work(i); });
	for (auto &t : threads)
		t.join();
	for (int s : sizes)
		printf("%d ", s);
	printf("%zu\n", counter.seen.size());
	return 0;
}
