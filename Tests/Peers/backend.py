#!/usr/bin/python3
"""The backend's side of a test: plain Python sqlite3, driven over stdin and stdout, one JSON line each way.

    backend.py DATABASE

    {"sql": "...", "arguments": [...]}      one statement
    {"transaction": [["...", [...]], ...]}  several in one BEGIN IMMEDIATE ... COMMIT
    {"script": "..."}                       executescript()

Answers: {"rows": [[...]], "columns": [...], "last_id": N, "changes": N, "before_commit_ms": T, "at_ms": T}
or {"error": "..."}.
A BLOB is {"hex": "..."}, in both directions; {"text_hex": "..."} stands for TEXT of those bytes.
"""

import json
import sqlite3
import sys
import time


def bound(sql, arguments):
    """The statement and what Python binds. Python cannot bind TEXT that is no UTF-8, so SQL makes it of a BLOB."""
    values = []
    parts = sql.split("?") if any(isinstance(a, dict) and "text_hex" in a for a in arguments) else None
    for index, value in enumerate(arguments):
        if isinstance(value, dict):
            if "text_hex" in value:
                parts[index] += "cast("
                parts[index + 1] = " as text)" + parts[index + 1]
            value = bytes.fromhex(value.get("text_hex", value.get("hex")))
        values.append(value)
    return ("?".join(parts) if parts else sql), values


def result(value):
    return {"hex": value.hex()} if isinstance(value, bytes) else value


def run(database, request):
    if "script" in request:
        database.executescript(request["script"])
        return {}
    if "transaction" not in request:
        cursor = database.execute(*bound(request["sql"], request.get("arguments", [])))
        rows = [[result(value) for value in row] for row in cursor.fetchall()]
        columns = [column[0] for column in cursor.description or []]
        return {"rows": rows, "columns": columns, "last_id": cursor.lastrowid, "changes": cursor.rowcount}
    database.execute("begin immediate")
    try:
        for sql, arguments in request["transaction"]:
            cursor = database.execute(*bound(sql, arguments))
        before = time.time_ns() / 1e6
        database.execute("commit")
        return {"last_id": cursor.lastrowid, "before_commit_ms": before}
    except BaseException:
        if database.in_transaction:
            database.execute("rollback")
        raise


def main():
    database = sqlite3.connect(sys.argv[1], timeout=10, isolation_level=None)
    database.text_factory = lambda data: data.decode("utf-8", "backslashreplace")
    for line in sys.stdin:
        try:
            answer = run(database, json.loads(line))
        except (sqlite3.Error, sqlite3.Warning, ValueError, OverflowError) as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        answer["at_ms"] = time.time_ns() / 1e6
        print(json.dumps(answer), flush=True)


main()
