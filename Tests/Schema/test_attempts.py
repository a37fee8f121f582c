"""Attempts: two unique indexes are the guarantee that a nudge is sent at most once to a device."""

import sqlite3

from support import NOW, OR_CLAUSES, SchemaCase


class AtMostOnce(SchemaCase):
    def refuse(self, sql, *parameters):
        with self.assertRaises(sqlite3.IntegrityError):
            self.db.execute(sql, parameters)

    def test_not_twice_to_a_device_whatever_the_token(self):
        for outcome in (None, "accepted", "rejected", "dead_token", "unanswered", "interrupted"):
            nudge = self.insert()
            self.attempt(nudge, "d1", outcome, token_hash="h1")
            with self.assertRaises(sqlite3.IntegrityError):
                self.attempt(nudge, "d1", token_hash="h2")

    def test_not_twice_to_a_token_whatever_the_device(self):
        nudge = self.insert()
        self.attempt(nudge, "d1", "rejected", token_hash="h1")
        with self.assertRaises(sqlite3.IntegrityError):
            self.attempt(nudge, "d2", token_hash="h1")
        self.attempt(nudge, "d2", token_hash="h2")
        self.attempt(self.insert(), "d1", token_hash="h1")

    def test_only_what_reached_no_phone_may_be_tried_again(self):
        for outcome in ("unsent", "wrong_host"):
            nudge = self.insert()
            for _ in range(3):
                self.attempt(nudge, "d1", outcome, may_have_buzzed=None)
            self.attempt(nudge, "d1")
            with self.assertRaises(sqlite3.IntegrityError):
                self.attempt(nudge, "d1")

    def test_nothing_else_may_say_that_no_phone_buzzed(self):
        for outcome in (None, "accepted", "rejected", "dead_token", "unanswered", "interrupted", "", "other"):
            nudge = self.insert()
            for value in (None, 0, 2, "x"):
                with self.assertRaises(sqlite3.IntegrityError):
                    self.attempt(nudge, "d1", outcome, may_have_buzzed=value)
            attempt = self.attempt(nudge, "d1", outcome)
            self.refuse("update nudge_attempt set may_have_buzzed = null where id = ?", attempt)
            self.db.execute("update nudge_attempt set may_have_buzzed = null, outcome = 'unsent' where id = ?", (attempt,))
            self.refuse("update nudge_attempt set outcome = 'accepted' where id = ?", attempt)

    def test_an_unsent_attempt_may_stand(self):
        self.attempt(self.insert(), "d1", "unsent", may_have_buzzed=1)

    def test_the_keys_of_the_guarantee_are_never_null(self):
        for column in ("nudge_id", "device_id", "token_hash"):
            values = {"nudge_id": 1, "device_id": "d", "token_hash": "h", column: None}
            with self.assertRaises(sqlite3.IntegrityError):
                self.insert("nudge_attempt", **values)

    def test_just_these_two_indexes_without_conditions(self):
        self.assertEqual(
            self.rows("select name from sqlite_master where type = 'index' and tbl_name = 'nudge_attempt' order by 1"),
            [("nudge_attempt_device",), ("nudge_attempt_token",)])
        for _, name, unique, _, partial in self.rows("pragma index_list(nudge_attempt)"):
            self.assertEqual((unique, partial), (1, 0))
            self.assertEqual(self.rows(f"pragma index_info({name})")[2][2], "may_have_buzzed")


class Tables(SchemaCase):
    def columns(self, table):
        return [c[1] for c in self.rows(f"pragma table_info({table})")]

    def test_the_columns_are_an_interface(self):
        for table, columns in {
            "nudge_outbox": """id created_at kind event record_id recipient surface device_id conversation_id title subtitle
                body aps data activity_id attributes_type attributes content_state stale_at dismiss_at collapse_id priority
                delivered_by push_requested not_before_at expires_at dedupe_key state detail settled_at""",
            "nudge_device": "device_id recipient surface topic created_at updated_at",
            "nudge_token": "id device_id kind scope token environment proven_at registered_at rejected_at",
            "nudge_attempt": """id nudge_id device_id token_kind token_hash environment push_type topic apns_id started_at
                finished_at outcome status reason apns_timestamp_at apns_unique_id may_have_buzzed""",
            "nudge_activity": "device_id activity_id last_timestamp started_at ended_at last_nudge_id last_turn_id",
            "nudge_worker": "id low_water_attempt_id",
            "nudge_schema": "version applied_at",
            "nudge_registration": "device_id recipient surface topic kind scope token environment registered_at",
        }.items():
            self.assertEqual(self.columns(table), columns.split(), table)

    def test_times_and_numbers_are_integers_and_all_else_is_text(self):
        integers = {"id", "priority", "push_requested", "nudge_id", "status", "may_have_buzzed", "last_timestamp", "last_nudge_id", "last_turn_id",
                    "low_water_attempt_id", "version"}
        for (table,) in self.rows("select name from sqlite_master where type = 'table' and name like 'nudge%'"):
            for column in self.rows(f"pragma table_info({table})"):
                expected = "integer" if column[1] in integers or column[1].endswith("_at") else "text"
                self.assertEqual(column[2].lower(), expected, f"{table}.{column[1]}")

    def test_one_token_per_device_kind_and_scope(self):
        values = {"device_id": "d", "kind": "alert", "registered_at": NOW}
        self.insert("nudge_token", token="aa", **values)
        with self.assertRaises(sqlite3.IntegrityError):
            self.insert("nudge_token", token="bb", **values)
        self.insert("nudge_token", token="bb", scope="s", **values)

    def test_bookkeeping(self):
        self.assertEqual(self.rows("select * from nudge_worker"), [(1, 0)])
        self.assertEqual(self.rows("select version from nudge_schema"), [(1,)])
        self.assert_about_now(self.value("select applied_at from nudge_schema"))
        with self.assertRaises(sqlite3.IntegrityError):
            self.db.execute("insert into nudge_worker values (2, 0)")

    def test_plans_use_the_indexes(self):
        pending = "state = 'pending' and"
        plans = [
            (f"select id from nudge_outbox where {pending} not_before_at is null and id > ? order by id", "nudge_outbox_undated"),
            (f"select id from nudge_outbox where {pending} not_before_at is not null and not_before_at <= ?"
             " order by not_before_at, id", "nudge_outbox_dated"),
            (f"select id from nudge_outbox where {pending} expires_at is not null and expires_at <= ?"
             " order by expires_at, id", "nudge_outbox_expiring"),
            ("select id from nudge_outbox where state = 'waiting' and activity_id = ?", "nudge_outbox_waiting"),
            ("select min(id) from nudge_outbox where dedupe_key = ?", "nudge_outbox_dedupe"),
            ("select device_id from nudge_device where recipient = 'a' and surface = 'b' and device_id > ?"
             " order by device_id", "nudge_device_address"),
            ("select device_id from nudge_device where recipient = 'a' and device_id > ? order by device_id",
             "nudge_device_recipient"),
            ("select * from nudge_device where device_id = ?", "PRIMARY KEY (device_id=?)"),
            ("select * from nudge_token where device_id = ? and kind = 'alert' and scope = ''", "nudge_token_place"),
            ("select * from nudge_token where token = ?", "nudge_token_token"),
            ("select * from nudge_activity where activity_id = ? and device_id = 'd'", "PRIMARY KEY (activity_id=? AND device_id=?)"),
            ("select 1 from nudge_attempt where nudge_id = ? and device_id = 'd' and may_have_buzzed = 1", "nudge_attempt_device"),
            ("select 1 from nudge_attempt where nudge_id = ? and token_hash = 'h' and may_have_buzzed = 1", "nudge_attempt_token"),
        ]
        for fill in (False, True):
            if fill:
                self.db.executescript(f"""
                    with recursive c(i) as (select 1 union all select i + 1 from c where i < 5000)
                    insert into nudge_outbox (title, dedupe_key, expires_at, not_before_at)
                    select 't', i, {NOW}, case i % 9 when 0 then {NOW} end from c;
                    update nudge_outbox set state = 'attempted' where id > 50;
                    update nudge_outbox set state = 'waiting', activity_id = 'a' || id where id > 4900;
                    insert into nudge_device (device_id, recipient) select id, 'r' || (id % 700) from nudge_outbox;
                    insert into nudge_token (device_id, kind, token, registered_at) select id, 'alert', id, 1 from nudge_outbox;
                    insert into nudge_attempt (nudge_id, device_id, token_hash) select id, id, id from nudge_outbox;
                    insert into nudge_activity (device_id, activity_id) select id, id % 9 from nudge_outbox;
                    analyze""")
            for sql, index in plans:
                with self.subTest(sql, analysed=fill):
                    plan = self.plan(sql, "1")
                    self.assertIn(index, plan)
                    self.assertNotIn("SCAN", plan)
                    self.assertNotIn("TEMP B-TREE", plan)


class Remembered(SchemaCase):
    def test_every_write_works_under_every_clause(self):
        for clause in OR_CLAUSES:
            self.db.execute(f"insert {clause}into nudge_activity values ('d', 'a' || ?, 1, 2, 3, 4, 5)", (clause,))
        self.assertEqual(self.value("select count(*) from nudge_activity"), len(OR_CLAUSES))
