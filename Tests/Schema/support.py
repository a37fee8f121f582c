"""What the suites of the schema share: a database, the migrations, hostile values."""

import os
import pathlib
import sqlite3
import tempfile
import unittest

MIGRATIONS = pathlib.Path(__file__).resolve().parents[2] / "migrations"
INITIAL = (MIGRATIONS / "0001_initial.sql").read_text()
REMOVE = (MIGRATIONS / "remove.sql").read_text()

NOW = 1_790_000_000_000
OR_CLAUSES = ("", "or abort ", "or fail ", "or ignore ", "or replace ", "or rollback ")
ENDS_WITHOUT_ATTEMPT = ("suppressed", "expired", "superseded", "unaddressed", "invalid", "cancelled")
STATES = ("pending", "waiting", "attempted") + ENDS_WITHOUT_ATTEMPT


class Raw(bytes):
    """Bytes that are bound as TEXT, valid UTF-8 or not."""


def statement(verb, table, values):
    """`insert [or ...] into table (columns) values (...)` and its parameters."""
    marks = ", ".join("cast(? as text)" if isinstance(v, Raw) else "?" for v in values.values())
    parameters = [bytes(v) if isinstance(v, Raw) else v for v in values.values()]
    return f"{verb} into {table} ({', '.join(values)}) values ({marks})", parameters


class SchemaCase(unittest.TestCase):
    """A test with a migrated database in memory; `self.db` is in autocommit mode."""

    encoding = "UTF-8"

    def setUp(self):
        self.db = self.open()

    def tearDown(self):
        self.db.close()

    def open(self, migrate=True):
        db = sqlite3.connect(":memory:", isolation_level=None)
        db.execute(f"pragma encoding = '{self.encoding}'")
        if migrate:
            db.executescript(INITIAL)
        return db

    def file(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        return os.path.join(folder.name, "app.db")

    def insert(self, table="nudge_outbox", clause="", db=None, **values):
        """Inserts a row and returns its id."""
        sql, parameters = statement(f"insert {clause}".rstrip(), table, values)
        if not values:
            sql, parameters = f"insert {clause}into {table} default values", []
        return (db or self.db).execute(sql, parameters).lastrowid

    def attempt(self, nudge, device="d1", outcome=None, **values):
        values = {"token_hash": "h-" + device, "started_at": NOW, "outcome": outcome, **values}
        return self.insert("nudge_attempt", nudge_id=nudge, device_id=device, **values)

    def row(self, sql, *parameters):
        return self.db.execute(sql, parameters).fetchone()

    def rows(self, sql, *parameters):
        return self.db.execute(sql, parameters).fetchall()

    def value(self, sql, *parameters):
        return self.row(sql, *parameters)[0]

    def state(self, nudge):
        return self.row("select state, detail from nudge_outbox where id = ?", nudge)

    def dump(self):
        """The content of every table but SQLite's own statistics and sequences."""
        names = self.rows("select name from sqlite_master where type = 'table' and name not like 'sqlite%' order by 1")
        return {name: self.rows(f"select * from {name}") for (name,) in names}

    def plan(self, sql, *parameters):
        return "\n".join(line[3] for line in self.db.execute("explain query plan " + sql, parameters))

    def assert_about_now(self, milliseconds):
        now = self.value("select cast(strftime('%s', 'now') as integer) * 1000")
        self.assertIsInstance(milliseconds, int)
        self.assertLess(abs(milliseconds - now), 60_000)
