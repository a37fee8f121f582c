"""The outbox: an INSERT never fails because of what the nudge says."""

import random

import hostile
from support import NOW, OR_CLAUSES, STATES, SchemaCase, statement

NOT_SENT = "job_finished without heartbeat delivery or push request"
PUT_RIGHT = {"created_at", "state", "detail", "settled_at"}


class Insert(SchemaCase):
    def columns(self):
        return [c[1] for c in self.rows("pragma table_info(nudge_outbox)") if c[1] != "id"]

    def assert_legal(self, where="1"):
        """Each row has exactly one legal state for a new row, and says why when it is suppressed."""
        wrong = self.rows(f"""
            select id, quote(state), quote(detail), quote(settled_at) from nudge_outbox
            where {where} and not coalesce(
              (state = 'pending' and detail is null and settled_at is null)
              or (state = 'suppressed' and typeof(detail) = 'text' and settled_at > {NOW - 10**12}
                and typeof(settled_at) = 'integer'), 0)""")
        self.assertEqual(wrong, [])
        self.assertEqual(self.value("select count(*) from nudge_outbox where created_at is null"), 0)

    def assert_views_answer(self):
        self.db.text_factory = bytes
        for view in ("nudge_audit", "nudge_story", "nudge_daily", "nudge_undelivered", "nudge_dead_tokens"):
            self.rows(f"select * from {view}")
        total = self.value("select count(*) from nudge_outbox")
        self.assertEqual(self.value("select sum(nudges) from nudge_daily"), total)
        states = "pending + waiting + attempted + suppressed + expired + superseded + unaddressed + invalid + cancelled"
        self.assertEqual(self.value(f"select sum({states}) from nudge_daily"), total)
        self.db.text_factory = str

    def test_defaults(self):
        nudge = self.insert()
        self.assertEqual(
            self.row("select kind, recipient, surface, push_requested, state, detail, settled_at from nudge_outbox"),
            ("alert", "owner", "phone", 0, "pending", None, None))
        self.assert_about_now(self.value("select created_at from nudge_outbox where id = ?", nudge))

    def test_ordinary_rows_cost_no_update(self):
        for values in (
            {"title": "a"}, {"event": "turn_finished", "body": "b"}, {"dedupe_key": "k"}, {"event": "failure"},
            {"event": "job_finished", "delivered_by": "heartbeat"}, {"event": "job_finished", "push_requested": 1},
            {"kind": "activity_update", "activity_id": "x", "expires_at": NOW, "not_before_at": NOW},
        ):
            with self.subTest(values):
                before = self.db.total_changes
                self.insert(**values)
                self.assertEqual(self.db.total_changes - before, 1)

    def test_hostile_values_one_by_one_under_every_clause(self):
        for clause in OR_CLAUSES:
            self.db.close()
            self.db = self.open()
            self.db.execute("begin")
            count = 0
            for column in self.columns():
                for value in hostile.VALUES:
                    try:
                        nudge = self.insert(clause=clause, **{column: value})
                    except Exception as error:
                        self.fail(f"insert {clause}{column} = {value!r:.60}: {error}")
                    count += 1
                    if column not in PUT_RIGHT:
                        sql, parameters = statement("insert", "probe", {column: value})
                        self.db.execute(f"create temp table if not exists probe as select * from nudge_outbox where 0")
                        self.db.execute("delete from probe")
                        self.db.execute(sql, parameters)
                        self.assertTrue(
                            self.value(f"""select (select typeof({column}) || quote({column}) from nudge_outbox where id = ?)
                              is (select typeof({column}) || quote({column}) from probe)""", nudge),
                            f"{column} = {value!r:.60} was changed")
            self.db.execute("commit")
            self.assertEqual(self.value("select count(*) from nudge_outbox"), count)
            self.assert_legal()
            self.assertEqual(
                self.value("select count(*) from nudge_outbox where state = 'suppressed' and detail like 'job%'"), 2,
                "the event job_finished as TEXT and as BLOB, and nothing else")
            self.assert_views_answer()

    def test_hostile_values_in_random_combinations(self):
        chance = random.Random(20260101)
        columns = self.columns()
        self.db.execute("begin")
        for number in range(3_000):
            chosen = chance.sample(columns, chance.randint(2, len(columns)))
            values = {c: chance.choice(hostile.VALUES if chance.random() < 0.98 else ["x" * 300_000]) for c in chosen}
            try:
                self.insert(clause=chance.choice(OR_CLAUSES), **values)
            except Exception as error:
                self.fail(f"row {number} (seed 20260101): {error}")
        self.db.execute("commit")
        self.assertEqual(self.value("select count(*) from nudge_outbox"), 3_000)
        self.assert_legal()
        # What the worker does with them later must not break a view either.
        self.db.execute("update nudge_outbox set state = 'attempted', settled_at = 1790000000000 where id % 2")
        self.db.execute("""insert into nudge_attempt (nudge_id, device_id, token_hash, started_at, finished_at, outcome)
            select id, 'd', 'h', 1790000000000, 1790000000050, 'rejected' from nudge_outbox where id % 2""")
        self.db.execute("update nudge_outbox set state = 'cancelled' where state = 'pending'")
        self.assert_views_answer()
        self.assertEqual(self.value("pragma integrity_check"), "ok")

    def test_hostile_values_with_recursive_triggers(self):
        self.db.execute("pragma recursive_triggers = on")
        for clause in OR_CLAUSES:
            for values in ({"state": "cancelled"}, {"state": None, "detail": "x"}, {"event": "job_finished"}):
                self.insert(clause=clause, **values)
        self.assert_legal()

    def test_null_says_what_it_said(self):
        nudge = self.insert(kind=None, recipient=None, surface=None, event=None)
        self.assertEqual(
            self.row("select kind, recipient, surface, event from nudge_outbox where id = ?", nudge),
            (None, None, None, None))

    def test_the_workers_columns_are_put_right(self):
        for state in STATES + (None, "", "PENDING", "nonsense", b"pending", 7):
            with self.subTest(state):
                nudge = self.insert(state=state, detail="mine", settled_at=NOW, created_at=None)
                self.assertEqual(self.state(nudge), ("pending", None))
                self.assertIsNone(self.value("select settled_at from nudge_outbox where id = ?", nudge))
                self.assert_about_now(self.value("select created_at from nudge_outbox where id = ?", nudge))
        nudge = self.insert(state="pending", created_at=NOW)
        self.assertEqual(self.value("select created_at from nudge_outbox where id = ?", nudge), NOW)

    def test_changes_and_last_insert_rowid_are_the_inserts_own(self):
        nudge = self.insert(state="cancelled")
        self.assertEqual(self.row("select changes(), last_insert_rowid()"), (1, nudge))

    def test_a_deleted_id_does_not_come_back(self):
        nudge = self.insert()
        self.db.execute("delete from nudge_outbox")
        self.assertGreater(self.insert(), nudge)


class WhatDoesNotFire(SchemaCase):
    def test_job_finished_fires_only_by_heartbeat_or_on_request(self):
        sent = [
            {"delivered_by": "heartbeat"}, {"push_requested": 1}, {"push_requested": "1"}, {"push_requested": 1.0},
            {"push_requested": True}, {"delivered_by": None, "push_requested": 1},
            {"delivered_by": "cron", "push_requested": 1}, {"delivered_by": "heartbeat", "push_requested": None},
        ]
        kept = [
            {}, {"delivered_by": None}, {"push_requested": None}, {"delivered_by": None, "push_requested": None},
            {"push_requested": 0}, {"push_requested": 2}, {"push_requested": -1}, {"push_requested": "yes"},
            {"push_requested": b"1"}, {"push_requested": ""}, {"delivered_by": ""}, {"delivered_by": "Heartbeat"},
            {"delivered_by": "heartbeat "}, {"delivered_by": "heartbeat\x00"}, {"delivered_by": b"heartbeat"},
            {"delivered_by": 1}, {"delivered_by": "cron", "push_requested": 0}, {"push_requested": float("inf")},
        ]
        for clause in OR_CLAUSES:
            for given in sent + kept:
                with self.subTest(given, clause=clause):
                    nudge = self.insert(clause=clause, event="job_finished", **given)
                    settled = self.value("select settled_at from nudge_outbox where id = ?", nudge)
                    if given in sent:
                        self.assertEqual(self.state(nudge), ("pending", None))
                        self.assertIsNone(settled)
                    else:
                        self.assertEqual(self.state(nudge), ("suppressed", NOT_SENT))
                        self.assert_about_now(settled)

    def test_other_events_always_fire(self):
        for event in (None, "turn_finished", "failure", "JOB_FINISHED", "job_finished ", "", "mine"):
            with self.subTest(event):
                self.assertEqual(self.state(self.insert(event=event, delivered_by=None, push_requested=None))[0], "pending")

    def test_a_second_row_with_the_same_key_is_suppressed(self):
        for clause in OR_CLAUSES:
            with self.subTest(clause):
                key = "k" + clause
                first = self.insert(clause=clause, dedupe_key=key)
                again = [self.insert(clause=clause, dedupe_key=key) for _ in range(3)]
                self.assertEqual(self.state(first), ("pending", None))
                for nudge in again:
                    self.assertEqual(self.state(nudge), ("suppressed", f"duplicate of nudge {first}"))
                    self.assert_about_now(self.value("select settled_at from nudge_outbox where id = ?", nudge))

    def test_a_key_holds_until_its_row_is_gone(self):
        first = self.insert(dedupe_key="k")
        for state in ("attempted", "invalid", "expired", "waiting"):
            self.db.execute("update nudge_outbox set state = ? where id = ?", (state, first))
            self.assertEqual(self.state(self.insert(dedupe_key="k"))[0], "suppressed")
        self.db.execute("delete from nudge_outbox where dedupe_key = 'k'")
        self.assertEqual(self.state(self.insert(dedupe_key="k"))[0], "pending")

    def test_keys_within_one_statement(self):
        self.db.execute("insert into nudge_outbox (dedupe_key) values ('a'), ('b'), ('a'), (null), (null), ('b')")
        self.assertEqual(
            self.rows("select dedupe_key, state, detail from nudge_outbox order by id"),
            [("a", "pending", None), ("b", "pending", None), ("a", "suppressed", "duplicate of nudge 1"),
             (None, "pending", None), (None, "pending", None), ("b", "suppressed", "duplicate of nudge 2")])

    def test_distinct_keys_do_not_meet(self):
        for key in ("k", "K", "k ", "k\x00", "k\x00a", b"k", "", " "):
            self.assertEqual(self.state(self.insert(dedupe_key=key))[0], "pending", key)

    def test_when_both_rules_match_the_event_wins(self):
        self.insert(dedupe_key="k")
        self.assertEqual(self.state(self.insert(dedupe_key="k", event="job_finished")), ("suppressed", NOT_SENT))


class Cancel(SchemaCase):
    def cancel(self, nudge, **more):
        columns = "".join(f", {c} = ?" for c in more)
        self.db.execute(f"update nudge_outbox set state = 'cancelled'{columns} where id = ?", (*more.values(), nudge))

    def settled(self, nudge):
        return self.value("select settled_at from nudge_outbox where id = ?", nudge)

    def test_what_is_pending_or_waiting_is_cancelled(self):
        for state in ("pending", "waiting"):
            nudge = self.insert()
            self.db.execute("update nudge_outbox set state = ? where id = ?", (state, nudge))
            self.cancel(nudge)
            self.assertEqual(self.state(nudge), ("cancelled", None))
            self.assert_about_now(self.settled(nudge))

    def test_the_backends_own_words_are_kept(self):
        nudge = self.insert()
        self.cancel(nudge, detail="read on the laptop", settled_at=NOW)
        self.assertEqual((*self.state(nudge), self.settled(nudge)), ("cancelled", "read on the laptop", NOW))

    def test_attempts_make_it_attempted(self):
        for count, words in ((1, "1 attempt"), (2, "2 attempts"), (12, "12 attempts")):
            for outcome in (None, "accepted", "rejected"):
                nudge = self.insert()
                for number in range(count):
                    self.attempt(nudge, f"d{number}", outcome)
                self.cancel(nudge, detail="mine")
                self.assertEqual(self.state(nudge), ("attempted", "cancelled after " + words))
                self.assert_about_now(self.settled(nudge))

    def test_what_has_ended_stays_what_it_was(self):
        for recursive in ("off", "on"):
            self.db.execute(f"pragma recursive_triggers = {recursive}")
            for state in ("attempted", "suppressed", "expired", "superseded", "unaddressed", "invalid"):
                for clause in OR_CLAUSES:
                    nudge = self.insert()
                    self.db.execute(
                        "update nudge_outbox set state = ?, detail = 'why', settled_at = ? where id = ?", (state, NOW, nudge))
                    self.db.execute(
                        f"update {clause}nudge_outbox set state = 'cancelled', detail = 'x', settled_at = 1 where id = ?",
                        (nudge,))
                    self.assertEqual((*self.state(nudge), self.settled(nudge)), (state, "why", NOW))

    def test_cancelling_twice_changes_nothing(self):
        for recursive in ("off", "on"):
            self.db.execute(f"pragma recursive_triggers = {recursive}")
            nudge = self.insert()
            self.cancel(nudge, detail="first", settled_at=NOW)
            self.cancel(nudge)
            self.cancel(nudge, settled_at=1)
            self.cancel(nudge, settled_at=None)
            self.assertEqual((*self.state(nudge), self.settled(nudge)), ("cancelled", "first", NOW))

    def test_many_at_once(self):
        nudges = [self.insert() for _ in range(6)]
        self.attempt(nudges[1], outcome="accepted")
        self.db.execute("update nudge_outbox set state = 'invalid', detail = 'bad' where id = ?", (nudges[2],))
        self.db.execute("update nudge_outbox set state = 'cancelled'")
        self.assertEqual(
            [self.state(n) for n in nudges],
            [("cancelled", None), ("attempted", "cancelled after 1 attempt"), ("invalid", "bad")] + 3 * [("cancelled", None)])

    def test_the_workers_own_updates_fire_nothing(self):
        nudges = [self.insert() for _ in range(100)]
        before = self.db.total_changes
        self.db.execute("update nudge_outbox set state = 'attempted', settled_at = ? where id <= ?", (NOW, nudges[-1]))
        self.assertEqual(self.db.total_changes - before, 100)


class InsertUTF16(Insert):
    encoding = "UTF-16le"

    # In UTF-16 a BLOB of UTF-8 is not the text of the event.
    test_hostile_values_one_by_one_under_every_clause = None


class WhatDoesNotFireUTF16(WhatDoesNotFire):
    encoding = "UTF-16le"
