// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Two senders, each with its ring in the receiver's memory, and a receiver that posts receives
 * with and without wildcards and reads the rings in any order. Checked: no message is lost,
 * comes twice or overtakes another one; a message goes to the receive that was posted first;
 * nobody waits for ever; each message that is left with its sender is given back once.
 *
 * A record is one slot here; the ring has SLOTS of them, one of which is kept for the cleared
 * state behind the newest record. -DMUTANT=n breaks one rule, and the check must find it:
 * 1 a record is published before its data, 2 the slot behind it is not cleared, 3 a receive
 * takes the newest message, 4 a receive from one source is preferred to an older wildcard,
 * 5 the room for the cleared slot is not kept, 6 a reference is given back before the fetch.
 */
#ifndef MUTANT
#define MUTANT 0
#endif

#define SENDERS 2
#define MESSAGES 2
#define SLOTS 2
#define TOTAL 4			/* SENDERS * MESSAGES */
#define RANDOM 2		/* one of so many receives has any arguments; others take anything */
#define RECEIVES 5		/* TOTAL and that one */
#define ANY 2
#define WAITING 2		/* most receives that wait at a time */
#define NONE 255

/* The rings: [sender * SLOTS + slot] */
bool state[4];
byte number[4], tag[4];
bool reference[4];
byte head[SENDERS], tail[SENDERS];

/* The contents of a sender's buffer, and how often its message was given back */
byte buffer[TOTAL], returned[TOTAL], references, sending;

/* In the receiver only: receives in the order in which they were posted */
byte want_src[RECEIVES], want_tag[RECEIVES];
bool waiting[RECEIVES];
byte posted, nr_waiting;
bool special;			/* the one with any arguments was posted */

/* Unexpected messages in the order in which they came; NONE: taken */
byte came[TOTAL], came_tag[TOTAL];
bool came_reference[TOTAL];
byte nr_came;

bool delivered[TOTAL];
byte tags[TOTAL];
byte nr_delivered;

#define SRC(message) (message / MESSAGES)
#define FITS(r, message, t) \
	((want_src[r] == ANY || want_src[r] == SRC(message)) && \
	 (want_tag[r] == ANY || want_tag[r] == t))

/* The receive gets the message: its data are fetched, or were in the record. */
inline deliver(r, message, is_reference)
{
	d_step {
		assert(!delivered[message]);
		k = SRC(message) * MESSAGES;
		do
		:: k < message ->
			/* No older message of this sender that fits, too */
			assert(delivered[k] || !FITS(r, k, tags[k]));
			k++
		:: else -> break
		od;
		k = 0;
		do
		:: k < r ->
			/* No older receive that fits, too */
			assert(!waiting[k] || !FITS(k, message, tags[message]));
			k++
		:: else -> break
		od;
		delivered[message] = true;
		nr_delivered++;
		nr_waiting = nr_waiting - waiting[r];
		waiting[r] = false;
		want_src[r] = 0;
		want_tag[r] = 0
	}
	if
	:: is_reference && MUTANT == 6 ->
		returned[message]++;
		assert(buffer[message] == message)
	:: is_reference && MUTANT != 6 ->
		assert(buffer[message] == message);
		returned[message]++
	:: else
	fi
}

/* Old values would only make states look different. */
inline forget()
{
	d_step {
		s = 0;
		k = 0;
		r = 0;
		t = 0;
		message = 0;
		found = NONE;
		is_reference = false
	}
}

active [SENDERS] proctype sender()
{
	byte i, slot, next, message, t;
	bool left;

	do
	:: i < MESSAGES ->
		atomic {
			message = _pid * MESSAGES + i;
			slot = _pid * SLOTS + head[_pid] % SLOTS;
			next = _pid * SLOTS + (head[_pid] + 1) % SLOTS;
			/* Any tags and kinds of one sender, some of the other one */
			t = i;
			left = i;
			if
			:: _pid == 0 -> t = !t
			:: true
			fi;
			if
			:: _pid == 0 -> left = !left
			:: true
			fi;
			tags[message] = t;
			buffer[message] = message
		}
		/* Room for the record and for the slot behind it */
#if MUTANT == 5
		(head[_pid] - tail[_pid] < SLOTS);
#else
		(head[_pid] - tail[_pid] < SLOTS - 1);
#endif
#if MUTANT == 1
		state[slot] = true;
#endif
		d_step {
			number[slot] = message;
			tag[slot] = t;
			reference[slot] = left
		}
#if MUTANT != 2
		state[next] = false;
#endif
		d_step {
			head[_pid]++;
			state[slot] = true;
			references = references + left
		}
		/* A blocking send waits; its buffer is then the user's again. */
		atomic {
			(!left || returned[message]);
			buffer[message] = NONE;
			i++;
			t = 0;
			left = false
		}
	:: else -> break
	od;
	sending++
}

active proctype receiver()
{
	byte pos[SENDERS], s, k, r, found, message, t;
	bool is_reference;

	do
	:: nr_delivered == TOTAL -> break
	/* Post a receive. */
	:: atomic {
		nr_delivered < TOTAL && posted < RECEIVES && nr_waiting < WAITING ->
			s = ANY;
			t = ANY;
			if
			:: posted < RANDOM && !special -> special = true; s = 0
			:: posted < RANDOM && !special -> special = true; s = 1
			:: true
			fi;
			if
			:: s != ANY -> t = 0
			:: s != ANY -> t = 1
			:: true
			fi;
			r = posted;
			posted++;
			want_src[r] = s;
			want_tag[r] = t;
			found = NONE;
			k = 0;
			do
			:: k < nr_came ->
				if
				:: came[k] != NONE && FITS(r, came[k], came_tag[k]) &&
				   (found == NONE || MUTANT == 3) -> found = k
				:: else
				fi;
				k++
			:: else -> break
			od;
			waiting[r] = (found == NONE);
			nr_waiting = nr_waiting + waiting[r]
		}
		if
		:: d_step { found != NONE ->
				message = came[found];
				is_reference = came_reference[found];
				came[found] = NONE
			}
			deliver(r, message, is_reference)
		:: else
		fi;
		forget()
	/* Read a record of a ring. */
	:: atomic {
		nr_delivered < TOTAL &&
		(state[pos[0] % SLOTS] || state[SLOTS + pos[1] % SLOTS]) ->
			if
			:: state[pos[0] % SLOTS] -> s = 0
			:: state[SLOTS + pos[1] % SLOTS] -> s = 1
			fi
		}
		d_step {
			k = s * SLOTS + pos[s] % SLOTS;
			message = number[k];
			t = tag[k];
			is_reference = reference[k];
			found = NONE;
			k = 0;
			do
			:: k < posted ->
				if
				:: waiting[k] && FITS(k, message, t) &&
				   (found == NONE || (MUTANT == 4 && want_src[k] != ANY)) ->
					found = k
				:: else
				fi;
				k++
			:: else -> break
			od;
			pos[s]++
		}
		tail[s] = pos[s];
		if
		:: found != NONE ->
			r = found;
			deliver(r, message, is_reference)
		:: else ->
			d_step {
				came[nr_came] = message;
				came_tag[nr_came] = t;
				came_reference[nr_came] = is_reference;
				nr_came++
			}
		fi;
		forget()
	od;
	/* All sends end, and each reference was given back once. */
	(sending == SENDERS);
	d_step {
		k = 0;
		r = 0;
		do
		:: k < TOTAL ->
			assert(delivered[k] && returned[k] <= 1);
			r = r + returned[k];
			k++
		:: else -> break
		od;
		assert(r == references)
	}
}
