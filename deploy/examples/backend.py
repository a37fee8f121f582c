#!/usr/bin/env python3
"""A backend that finishes a turn: the record and its nudge in one transaction.

    backend.py DATABASE TEXT
"""
import sqlite3
import sys
import uuid


def finish_turn(database, conversation, text):
    record = str(uuid.uuid4())
    # Leaving the block commits both rows, or neither.
    with database:
        database.execute(
            "insert into message (id, conversation_id, text) values (?, ?, ?)", (record, conversation, text)
        )
        database.execute(
            "insert into nudge_outbox (event, record_id, conversation_id, title, body) values (?, ?, ?, ?, ?)",
            ("turn_finished", record, conversation, "Assistant", text),
        )
    return record


if __name__ == "__main__":
    connection = sqlite3.connect(sys.argv[1], timeout=5)
    print(finish_turn(connection, "c-7", sys.argv[2]))
    connection.close()
