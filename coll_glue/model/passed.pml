// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Operations that their length may have passed on (block.h, post.c, wait.c, rooted.c): RANKS ranks
 * call OPS operations, each of one of the kinds below, and keep it or pass it on, all alike. In an
 * erroneous program one rank of one operation, ODD, has another length, and does otherwise.
 *
 * Checked: data that a rank reads are those of its operation; the job is ended only if there is
 * an ODD one; and it is ended then, or all ranks return: nobody waits for ever.
 *
 * A line has @word (operation and kind), @finished and @data, which also has the length of a
 * passed broadcast. Each rank has LINES of them, and a root publishes in one of SLOTS.
 * -DMUTANT=n breaks one rule, and the check must find it: 1 a passed operation is finished before
 * its post says that it was passed, 2 such a post does not wait for the readers of the data in its
 * line, 3 data do not wait until all have finished the passed operation in their line, 4 a rank
 * takes a root's later post for a sign that it has passed a broadcast on, 5 a rank that waits for
 * its reader does not look whether that has passed the operation on, 6 it finishes a passed
 * broadcast before it looks at its length, 7 passing ranks do not say so.
 */
#ifndef MUTANT
#define MUTANT 0
#endif
#ifndef RANKS
#define RANKS 2
#endif
#ifndef OPS
#define OPS 3
#endif

#define LINES 2
#define SLOTS 2
#define TOTAL (RANKS * LINES)
#define MESSAGES ((OPS + 1) * RANKS)
#define NONE 255
#define ALL 254

/*
 * Operations: everybody reads everybody's data, where they are, or copied (and then it is never
 * passed on); the root reads everybody's; everybody reads the root's, which were copied.
 */
#define EXCHANGE 0
#define SHORT 1
#define GATHER 2
#define BCAST 3

#define DATA 0
#define PASSED 1

byte kind_of[OPS + 1];		/* by operation, from 1 on */
bool kept[OPS + 1];
byte odd_op = NONE, odd_rank;
bool ended;

/* [rank * LINES + operation % LINES] */
byte op_in[TOTAL], kind_in[TOTAL], finished[TOTAL], data[TOTAL];
byte slot_op[SLOTS], slot_data[SLOTS];
bool sent[MESSAGES];		/* below: [operation * RANKS + rank] */

#define LINE(r, o) ((r) * LINES + (o) % LINES)
/* A passed broadcast's length, and data that look like one of another length, LINES before */
#define LENGTH(o, len) (20 + 2 * (o) + (len))
#define VALUE(o) LENGTH((o) - LINES, 1)
#define FINISHED_BY(l) \
	((op_in[l] && op_in[l] - 1 > finished[l]) -> op_in[l] - 1 : finished[l])
#define HAS_FINISHED(r, o) (FINISHED_BY(LINE(r, o)) >= (o) || FINISHED_BY(LINE(r, (o) + 1)) >= (o))
#define KEEPS(r, o) (kept[o] != (odd_op == (o) && odd_rank == (r)))
#define LEN(r, o) (odd_op == (o) && odd_rank == (r))

/* Each wait ends with the job. */
#define AWAIT(condition)			\
	if					\
	:: (condition)				\
	:: ended -> goto done			\
	fi

inline end_job()
{
	d_step {
		assert(odd_op != NONE);
		ended = true
	}
	goto done
}

inline wait_finished(r, o)
{
	AWAIT(HAS_FINISHED(r, o));
	if
	:: (MUTANT != 5 && o == op && op_in[LINE(r, o)] == o && kind_in[LINE(r, o)] == PASSED) ->
		end_job()
	:: else
	fi
}

inline wait_all_finished(o)
{
	if
	:: o > all_finished ->
		other = 0;
		do
		:: other < RANKS ->
			if
			:: other != me -> wait_finished(other, o)
			:: else
			fi;
			other++
		:: else -> break
		od;
		all_finished = o
	:: else
	fi
}

inline wait_for_use()
{
	if
	:: used[op % LINES] > all_finished ->
		if
		:: reader[op % LINES] == ALL -> wait_all_finished(used[op % LINES])
		:: else -> wait_finished(reader[op % LINES], used[op % LINES])
		fi
	:: else
	fi
}

inline use_again(by)
{
	wait_for_use();
	used[op % LINES] = op;
	reader[op % LINES] = by
}

inline set_word(kind)
{
	d_step {
		op_in[LINE(me, op)] = op;
		kind_in[LINE(me, op)] = kind
	}
}

inline finish()
{
	finished[LINE(me, op)] = op
}

inline post(by)
{
	use_again(by);
	data[LINE(me, op)] = VALUE(op);
	set_word(DATA)
}

inline post_passed()
{
	if
	:: MUTANT == 7 -> finish()
	:: else ->
		if
		:: (MUTANT != 2 && kind_in[LINE(me, op)] != PASSED) -> use_again(ALL)
		:: else
		fi;
		if
		:: MUTANT != 3 -> used[op % LINES] = op
		:: else -> used[op % LINES] = 0
		fi;
		if
		:: MUTANT == 1 -> finish()
		:: else
		fi;
		data[LINE(me, op)] = LENGTH(op, LEN(me, op));
		set_word(PASSED);
		if
		:: MUTANT != 1 -> finish()
		:: else
		fi
	fi
}

/* The post of @r, and its data */
inline wait_post(r)
{
	AWAIT(op_in[LINE(r, op)] >= op);
	if
	:: kind_in[LINE(r, op)] == PASSED -> end_job()
	:: else
	fi
}

inline read_posts()
{
	other = 0;
	do
	:: other < RANKS -> wait_post(other); other++
	:: else -> break
	od;
	if
	:: all_finished < op - 1 -> all_finished = op - 1
	:: else
	fi;
	other = 0;
	do
	:: other < RANKS -> assert(data[LINE(other, op)] == VALUE(op)); other++
	:: else -> break
	od
}

inline exchange()
{
	post(ALL);
	read_posts();
	finish();
	wait_all_finished(op)
}

inline gather()
{
	if
	:: me == 0 ->
		other = 1;
		do
		:: other < RANKS ->
			wait_post(other);
			assert(data[LINE(other, op)] == VALUE(op));
			other++
		:: else -> break
		od;
		finish()
	:: else ->
		post(0);
		finish();
		wait_finished(0, op)
	fi
}

inline publish()
{
	if
	:: op > SLOTS -> wait_all_finished(op - SLOTS)
	:: else
	fi;
	slot_data[op % SLOTS] = VALUE(op);
	slot_op[op % SLOTS] = op;
	finish()
}

/* ---- the component below ---- */

/* In a broadcast the root sends, in a gather all others, otherwise all; who receives waits. */
#define SENDS(r) (kind_of[op] == EXCHANGE || (kind_of[op] == BCAST) == ((r) == 0))
#define RECEIVES(r) (kind_of[op] == EXCHANGE || (kind_of[op] == GATHER) == ((r) == 0))

inline below()
{
	sent[op * RANKS + me] = true;
	other = 0;
	do
	:: (other < RANKS && RECEIVES(me)) ->
		if
		:: SENDS(other) -> AWAIT(sent[op * RANKS + other])
		:: else
		fi;
		other++
	:: else -> break
	od
}

/* A rank that is not the root looks for its data, or its post. */
inline follow_root()
{
	AWAIT(slot_op[op % SLOTS] >= op || op_in[LINE(0, op)] >= op);
	if
	:: MUTANT == 4 -> keeps = op_in[LINE(0, op)] < op
	:: else -> keeps = slot_op[op % SLOTS] >= op
	fi;
	if
	:: keeps ->
		assert(slot_data[op % SLOTS] == VALUE(op));
		finish()
	:: else ->
		if
		:: MUTANT == 6 -> post_passed(); passed = data[LINE(0, op)]
		:: else -> passed = data[LINE(0, op)]; post_passed()
		fi;
		if
		:: (passed >= LENGTH(op, 0) && passed <= LENGTH(op, 1) &&
		    passed != LENGTH(op, LEN(me, op))) -> end_job()
		:: else
		fi;
		below()
	fi
}

proctype rank(byte me)
{
	byte op = 1, all_finished, other, passed;
	byte used[LINES], reader[LINES];
	bool keeps;

	do
	:: op <= OPS ->
		if
		:: kind_of[op] == SHORT -> post(ALL); read_posts()
		:: (kind_of[op] == BCAST && me) -> follow_root()
		:: else ->
			if
			:: !KEEPS(me, op) -> post_passed(); below()
			:: else ->
				if
				:: kind_of[op] == EXCHANGE -> exchange()
				:: kind_of[op] == GATHER -> gather()
				:: else -> publish()
				fi
			fi
		fi;
		op++
	:: else -> break
	od;
done:	skip
}

init
{
	byte i, any;

	atomic {
		i = 1;
		do
		:: i <= OPS ->
			select(any : EXCHANGE .. BCAST);
			kind_of[i] = any;
			if
			:: kept[i] = true
			:: kind_of[i] != SHORT -> kept[i] = false
			fi;
			if
			:: (odd_op == NONE && kind_of[i] != SHORT) ->
				odd_op = i;
				select(odd_rank : 0 .. (RANKS - 1))
			:: true
			fi;
			i++
		:: else -> break
		od;
		i = 0;
		do
		:: i < RANKS -> run rank(i); i++
		:: else -> break
		od
	}
}
