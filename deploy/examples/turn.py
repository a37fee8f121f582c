#!/usr/bin/env python3
"""A turn that shows on the lock screen: its card is started by push, updated, and ended with the reply.

    turn.py DATABASE MESSAGE [SECONDS A STEP]

Nothing here waits for the phone: the rows do, until the app has registered a token for the card.
"""
import json
import sqlite3
import sys
import time
import uuid


def insert(database, table, **row):
    names, marks = ", ".join(row), ", ".join("?" * len(row))
    database.execute(f"insert into {table} ({names}) values ({marks})", tuple(row.values()))


def play(database, conversation, message, step):
    """Answers a message that came while the app was not open, and returns the id of the reply's record."""
    activity = str(uuid.uuid4())  # a new one for each turn

    def state(status):
        # The members of the app's ContentState, texts and integers only.
        return json.dumps({"title": "Assistant", "status": status}, ensure_ascii=False)

    # Each of these blocks is one transaction: all of it is committed, or nothing.
    with database:
        insert(database, "message", id=str(uuid.uuid4()), conversation_id=conversation, text=message)
        insert(
            database, "nudge_outbox", kind="activity_start", activity_id=activity, attributes_type="TurnAttributes",
            attributes=json.dumps({"activityId": activity}), content_state=state("Reading"), title="Assistant", body="On it.",
        )

    for status in ("Looking things up", "Writing"):
        time.sleep(step)  # the work
        with database:
            insert(
                database, "nudge_outbox", kind="activity_update", activity_id=activity, content_state=state(status),
                stale_at=int((time.time() + 600) * 1000),
            )

    time.sleep(step)
    record, reply = str(uuid.uuid4()), f"You said: {message}"
    with database:
        insert(database, "message", id=record, conversation_id=conversation, text=reply)
        insert(
            database, "nudge_outbox", event="turn_finished", record_id=record, conversation_id=conversation,
            title="Assistant", body=reply,
        )
        # Of the reply only its first breath: a body is shortened to Apple's limit, a state is not.
        insert(
            database, "nudge_outbox", kind="activity_end", record_id=record, activity_id=activity,
            content_state=state(reply[:200]),
        )
    return record


if __name__ == "__main__":
    connection = sqlite3.connect(sys.argv[1], timeout=5)
    print(play(connection, "c-7", sys.argv[2], float(sys.argv[3]) if len(sys.argv) > 3 else 1))
    connection.close()
