#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
#
# ask.py LABEL EXPRESSION [LABEL EXPRESSION]...: evaluates them on the pvasps --json
# read from standard input, with its members as variables, "space" the first space
# and "t" its tasks. Prints "ok LABEL" or "FAIL LABEL" for each; exits 0 if all are true.
import json
import sys

KINDS = {"program", "heap", "file", "anon", "stack"}


def check_space(space):
    """Check the rules for every space that is shown in detail."""
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
    failed = 0
    for label, expression in zip(sys.argv[1::2], sys.argv[2::2]):
        true = eval(expression, names)
        print("ok" if true else "FAIL", label)
        if not true:
            failed += 1
            print("\tnot so:", expression)
    if failed:
        print("\t" + json.dumps(answer)[:2000])
    return 1 if failed else 0


sys.exit(main())
