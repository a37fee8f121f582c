"""A guest in someone else's database: it leaves everything as it was, and goes without a trace."""

import os
import shutil
import sqlite3
import subprocess
import unittest

from support import INITIAL, MIGRATIONS, NOW, REMOVE, SchemaCase

BACKEND = """
    create table conversation (id integer primary key, title text not null);
    create table message (id integer primary key, conversation_id integer references conversation (id) on delete cascade,
      body text, draft text);
    create index message_conversation on message (conversation_id);
    create view latest as select m.body, c.title from message m join conversation c on c.id = m.conversation_id;
    create table log (line text);
    create table setting (name text);
    create trigger message_log after insert on message begin insert into log values (new.body); end;
    insert into conversation values (1, 'one'), (2, 'two');
    insert into message (conversation_id, body) values (1, 'a'), (2, 'b');
    pragma user_version = 4711;
    pragma application_id = 815;
"""
OURS = "name like 'nudge%' or name like 'sqlite_autoindex_nudge%' or tbl_name like 'nudge%'"


class Guest(SchemaCase):
    def setUp(self):
        self.db = self.open(migrate=False)
        self.db.executescript(BACKEND)

    def master(self, db=None):
        return (db or self.db).execute(
            "select type, name, tbl_name, sql from sqlite_master where name <> 'sqlite_sequence' order by 1, 2").fetchall()

    def test_all_names_begin_with_nudge(self):
        before = self.master()
        self.db.executescript(INITIAL)
        names = [row[1] for row in self.master() if row not in before]
        self.assertGreater(len(names), 20)
        self.assertEqual([n for n in names if not n.startswith("nudge_")], [])

    def test_again_changes_nothing(self):
        self.db.executescript(INITIAL)
        self.insert(title="kept", dedupe_key="k")
        self.insert("nudge_registration", device_id="d", token="aa")
        self.db.execute("update nudge_worker set low_water_attempt_id = 77")
        self.db.execute("update nudge_schema set applied_at = 5")
        before = self.dump(), self.master(), self.value("pragma schema_version")
        for _ in range(2):
            self.db.executescript(INITIAL)
        self.assertEqual((self.dump(), self.master(), self.value("pragma schema_version")), before)

    def test_what_was_cut_off_is_completed(self):
        self.db.executescript(INITIAL)
        whole = self.master()
        for kind in ("trigger", "view", "index"):
            for (name,) in self.rows("select name from sqlite_master where type = ? and name like 'nudge%'", kind):
                self.db.execute(f"drop {kind} if exists {name}")
        self.db.executescript(INITIAL)
        self.assertEqual(self.master(), whole)

    def test_removal_leaves_the_database_as_it_was(self):
        dump, master = self.dump(), self.master()
        for _ in range(2):
            self.db.executescript(INITIAL)
            self.insert(title="a")
            self.insert("nudge_registration", device_id="d", token="aa")
            self.attempt(1)
            self.db.execute("analyze")
            self.db.executescript(REMOVE)
            statistics = [r[1] for r in self.master() if r[1].startswith("sqlite_stat")]
            self.assertEqual([r for r in self.master() if r[1] not in statistics], master)
            for table in statistics:
                self.assertEqual(self.rows(f"select * from {table} where tbl like 'nudge%'"), [])
            self.assertEqual(self.rows("select * from sqlite_sequence"), [])
            self.assertEqual(self.dump(), dump)
        self.db.executescript(REMOVE)
        self.assertEqual(self.value("pragma integrity_check"), "ok")

    def test_removal_without_a_migration_is_harmless(self):
        before = self.dump(), self.master()
        self.db.executescript(REMOVE)
        self.assertEqual((self.dump(), self.master()), before)

    def test_settings_are_left_alone(self):
        names = ("user_version", "application_id", "journal_mode", "foreign_keys", "auto_vacuum", "page_size", "encoding",
                 "recursive_triggers", "synchronous", "secure_delete", "ignore_check_constraints", "legacy_alter_table")
        for mode in ("delete", "wal", "truncate"):
            for keys in ("on", "off"):
                db = sqlite3.connect(self.file(), isolation_level=None)
                self.addCleanup(db.close)
                db.execute(f"pragma journal_mode = {mode}")
                db.execute(f"pragma foreign_keys = {keys}")
                db.executescript(BACKEND)
                settings = [db.execute(f"pragma {n}").fetchall() for n in names]
                for script in (INITIAL, INITIAL, REMOVE, REMOVE, INITIAL):
                    db.executescript(script)
                    self.assertEqual([db.execute(f"pragma {n}").fetchall() for n in names], settings)

    def alter(self, db):
        """What a backend does to its own tables. Returns what each statement said: under legacy_alter_table some
        fail because of the backend's own view, and DROP COLUMN came with 3.35."""
        said = []
        for statement in (
            "alter table conversation rename to talk", "alter table message add column extra text default 'x'",
            "alter table message rename column body to content", "alter table talk rename to conversation",
            "alter table setting rename to preference", "alter table preference rename column name to key",
            "alter table message drop column draft",
        ):
            try:
                db.execute(statement)
                said.append((statement, "done"))
            except sqlite3.OperationalError as error:
                said.append((statement, str(error)))
        return said

    def test_the_backends_alter_tables_go_on_working(self):
        for pragma in ("legacy_alter_table = off", "legacy_alter_table = on", "foreign_keys = on", "trusted_schema = off"):
            with self.subTest(pragma):
                plain, guest = self.open(migrate=False), self.open(migrate=False)
                for db in (plain, guest):
                    db.executescript(BACKEND)
                guest.executescript(INITIAL)
                for db in (plain, guest):
                    db.execute(f"pragma {pragma}")
                said = self.alter(plain)
                self.assertEqual(self.alter(guest), said)
                if not pragma.startswith("legacy_alter_table = on"):
                    failed = [s for s in said if s[1] != "done"]
                    self.assertEqual(len(failed), 0 if sqlite3.sqlite_version_info >= (3, 35, 0) else 1, failed)
                ours = [r for r in self.master(guest) if r[1].startswith("nudge_")]
                self.assertEqual([r for r in self.master(guest) if r not in ours], self.master(plain))
                self.assertEqual(self.insert(db=guest, dedupe_key="k"), 1)
                self.insert(db=guest, dedupe_key="k")
                self.assertEqual(guest.execute("select detail from nudge_outbox where id = 2").fetchone(), ("duplicate of nudge 1",))
                guest.execute("insert into nudge_registration (device_id, token) values ('d', 'aa')")
                self.assertEqual(guest.execute("select count(*) from nudge_story").fetchone(), (2,))
                self.assertEqual(guest.execute("select count(*) from nudge_audit").fetchone(), (1,))
                plain.close()
                guest.close()

    def test_the_backend_may_rebuild_its_tables(self):
        # lang_altertable.html, "Making Other Kinds Of Table Schema Changes": create, copy, drop, rename.
        self.db.executescript(INITIAL)
        self.db.executescript("""
            pragma foreign_keys = off;
            begin;
            create table new_setting (name text not null, at integer);
            insert into new_setting (name) select name from setting;
            drop table setting;
            alter table new_setting rename to setting;
            commit;""")
        self.insert(title="a")

    def test_a_column_added_to_our_tables_is_fine(self):
        self.db.executescript(INITIAL)
        for table in ("nudge_outbox", "nudge_device", "nudge_token", "nudge_attempt"):
            self.db.execute(f"alter table {table} add column note text default 'n'")
        self.insert(title="a", note="mine", state="x")
        self.insert("nudge_registration", device_id="d", token="aa")
        self.assertEqual(self.value("select count(*) from nudge_registration"), 1)
        self.db.executescript(INITIAL)
        self.db.executescript(REMOVE)
        self.assertEqual(self.rows(f"select name from sqlite_master where {OURS}"), [])

    def test_untrusted_schemas_and_attached_databases(self):
        path = self.file()
        db = sqlite3.connect(path, isolation_level=None)
        db.executescript(INITIAL)
        db.close()
        self.db.execute("pragma trusted_schema = off")
        self.db.execute("attach ? as app", (path,))
        self.db.execute("insert into app.nudge_outbox (event) values ('job_finished')")
        self.db.execute("insert into app.nudge_registration (device_id, token) values ('d', 'aa')")
        self.assertEqual(self.value("select state from app.nudge_outbox"), "suppressed")
        self.assertEqual(self.value("select token from app.nudge_token"), "aa")

    def test_record_and_nudge_share_a_transaction(self):
        self.db.executescript(INITIAL)
        self.db.executescript("begin; insert into message (body) values ('x'); insert into nudge_outbox (title) values ('x'); rollback;")
        self.assertEqual(self.value("select count(*) from nudge_outbox"), 0)

    def test_nothing_stored_needs_a_newer_library(self):
        self.db.executescript(INITIAL)
        text = " ".join(r[3] or "" for r in self.master() if r[1].startswith("nudge_")).lower()
        for word in ("unixepoch(", "subsec", "iif(", "->", "nulls ", "strict", "generated", "returning", "format(",
                     "on conflict", "materialized", "distinct from", "or ignore", "or replace", " filter", '"', "json"):
            self.assertNotIn(word, text)


@unittest.skipUnless(shutil.which("sqlite3"), "no sqlite3 shell")
class Shell(SchemaCase):
    """The same files, fed to the sqlite3 shell by hand."""

    def shell(self, path, *arguments, text=None, source=None):
        # The shell has its own library; only the Python beside it may be on the old one.
        environment = {k: v for k, v in os.environ.items() if k != "LD_LIBRARY_PATH"}
        return subprocess.run(["sqlite3", "-bail", path, *arguments], input=text, stdin=source, env=environment,
                              check=True, capture_output=True, encoding="utf-8")

    def feed(self, path, name):
        with open(MIGRATIONS / name, encoding="utf-8") as source:
            done = self.shell(path, source=source)
        self.assertEqual((done.stdout, done.stderr), ("", ""))

    def test_feeding_twice_and_removing_twice(self):
        path = self.file()
        self.shell(path, text=BACKEND)
        before = self.shell(path, ".dump").stdout
        for _ in range(2):
            self.feed(path, "0001_initial.sql")
        # What the shell made, this library can use.
        db = sqlite3.connect(path, isolation_level=None)
        self.insert(db=db, event="job_finished")
        self.insert("nudge_registration", db=db, device_id="d", token="AA")
        db.close()
        self.assertEqual(self.shell(path, "select state from nudge_outbox; select token from nudge_registration").stdout,
                         "suppressed\naa\n")
        for _ in range(2):
            self.feed(path, "remove.sql")
        self.assertEqual(self.shell(path, ".dump").stdout.replace("DELETE FROM sqlite_sequence;\n", ""), before)
        self.assertEqual(self.shell(path, "pragma user_version").stdout, "4711\n")

    def test_a_dump_restores_every_row_as_it_was(self):
        path, copy = self.file(), self.file()
        self.feed(path, "0001_initial.sql")
        self.shell(path, text=f"""
            insert into nudge_outbox (event, dedupe_key) values ('job_finished', 'k'), (null, 'k'), (null, 'l');
            update nudge_outbox set state = 'attempted', settled_at = {NOW} where dedupe_key = 'l';
            insert into nudge_registration (device_id, token) values ('d', 'aa');""")
        dump = self.shell(path, ".dump").stdout
        self.shell(copy, text=dump)
        self.assertEqual(self.shell(copy, ".dump").stdout, dump)

    def test_a_malformed_registration_is_told_in_the_shell(self):
        path = self.file()
        self.feed(path, "0001_initial.sql")
        with self.assertRaises(subprocess.CalledProcessError) as caught:
            self.shell(path, "insert or ignore into nudge_registration (device_id, token) values ('d', '(null)')")
        self.assertIn("nudge_registration.token: ", caught.exception.stderr)
