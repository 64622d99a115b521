#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
#
# ask.py EXPRESSION: evaluates it on the pvasps --json read from standard input,
# with its members as variables, "space" the first space, "t" its tasks. Exits 0
# if it is true; else 1, and says what is not so.
import json
import sys

KINDS = {"program", "heap", "file", "anon", "stack"}


def check_space(space):
    """What holds for every space that is shown in detail."""
    end = space["partition_bytes"]
    for task in space["tasks"]:
        assert task["start"] == task["index"] << space["shift"], "start is not index << shift"
        assert task["end"] - task["start"] == space["partition_bytes"], "not a partition long"
        assert task["start"] >= end, "partitions overlap or are not sorted"
        end = task["end"]
        at = task["start"]
        for area in task.get("areas", []):
            assert area["kind"] in KINDS, "unknown kind"
            assert at <= area["start"] < area["end"] <= task["end"], "area outside"
            at = area["end"]
    assert space["task_count"] == len(space["tasks"]) or not space["detail"], "count"


def main():
    answer = json.load(sys.stdin)
    assert answer["schema"] == 1, "schema"
    for space in answer["spaces"]:
        check_space(space)
    names = dict(answer)
    if answer["spaces"]:
        names["space"] = answer["spaces"][0]
        names["t"] = answer["spaces"][0]["tasks"]
    if not eval(sys.argv[1], names):
        print("not so:", sys.argv[1])
        print(json.dumps(answer)[:2000])
        return 1
    return 0


sys.exit(main())
