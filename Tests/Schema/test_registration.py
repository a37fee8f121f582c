"""Registrations merge, under every OR clause alike; what is malformed is refused, naming the column."""

import sqlite3

from support import NOW, OR_CLAUSES, Raw, SchemaCase

T1, T2, T3 = "aa" * 32, "bb" * 32, "cc" * 32
KINDS = ("alert", "voip", "location", "complication", "fileprovider", "pushtotalk", "widgets", "controls")
SCOPED = ("activity_start", "activity_update")


class RegistrationCase(SchemaCase):
    def register(self, device="d1", clause="", **values):
        self.insert("nudge_registration", clause, device_id=device, **values)

    def device(self, device="d1"):
        return self.row("select recipient, surface, topic from nudge_device where device_id = ?", device)

    def token(self, device="d1", kind="alert", scope=""):
        return self.row("""select token, environment, proven_at, registered_at, rejected_at from nudge_token
            where device_id = ? and kind = ? and scope = ?""", device, kind, scope)

    def prove(self, token, environment="production"):
        self.db.execute("update nudge_token set environment = ?, proven_at = ? where token = ?", (environment, NOW, token))

    def for_each_clause(self):
        for clause in OR_CLAUSES:
            self.db.close()
            self.db = self.open()
            with self.subTest(clause=clause):
                yield clause


class Merge(RegistrationCase):
    def test_a_device_alone(self):
        for clause in self.for_each_clause():
            self.register(clause=clause)
            self.assertEqual(self.device(), ("owner", "phone", None))
            self.assertEqual(self.value("select count(*) from nudge_token"), 0)
            self.assert_about_now(self.value("select created_at from nudge_device"))
            self.assert_about_now(self.value("select updated_at from nudge_device"))

    def test_what_is_not_said_stays(self):
        for clause in self.for_each_clause():
            self.register(clause=clause, recipient="ann", surface="tablet", topic="com.example.app", token=T1)
            self.db.execute("update nudge_device set created_at = 5, updated_at = 5")
            self.register(clause=clause)
            self.register(clause=clause, recipient=None, surface=None, topic=None, kind=None, scope=None, token=None)
            self.assertEqual(self.device(), ("ann", "tablet", "com.example.app"))
            self.assertEqual(self.token()[0], T1)
            self.assertEqual(self.value("select created_at from nudge_device"), 5)
            self.assert_about_now(self.value("select updated_at from nudge_device"))
            self.register(clause=clause, surface="phone")
            self.assertEqual(self.device(), ("ann", "phone", "com.example.app"))
            self.register(clause=clause, topic="com.example.other")
            self.assertEqual(self.device(), ("ann", "phone", "com.example.other"))

    def test_each_kind_and_scope_has_its_own_token(self):
        for clause in self.for_each_clause():
            places = [(k, "") for k in KINDS] + [(k, s) for k in SCOPED for s in ("a", "b")]
            for number, (kind, scope) in enumerate(places):
                self.register(clause=clause, kind=kind, scope=scope or None, token=f"{number:02x}" * 32)
            for number, (kind, scope) in enumerate(places):
                self.assertEqual(self.token(kind=kind, scope=scope)[0], f"{number:02x}" * 32)
            self.register(clause=clause, kind="alert", token=T1)
            self.assertEqual(self.value("select count(*) from nudge_token"), len(places))
            self.assertEqual(self.token(kind="activity_start", scope="a")[0], "08" * 32)

    def test_a_start_token_before_the_alert_token_survives(self):
        for clause in self.for_each_clause():
            self.register(clause=clause, kind="activity_start", scope="Turn", token=T2, environment="sandbox")
            self.register(clause=clause, recipient="ann", token=T1, topic="com.example.app")
            self.assertEqual(self.token(kind="activity_start", scope="Turn")[:2], (T2, "sandbox"))
            self.assertEqual(self.token()[0], T1)

    def test_the_kind_is_alert_unless_given_and_an_empty_scope_is_none(self):
        self.register(token=T1, scope="")
        self.assertEqual(self.token()[0], T1)

    def test_tokens_are_normalised(self):
        for clause in self.for_each_clause():
            for given, kept in (
                ("<1e21 22ba 00FF>", "1e2122ba00ff"), ("AB" * 80, "ab" * 80), (" 0 1 ", "01"), ("00", "00"),
                ("F" * 400, "f" * 400), ("<" + "ab " * 200 + ">", "ab" * 200),
            ):
                self.register(clause=clause, token=given)
                self.assertEqual(self.token()[0], kept)
            self.assertEqual(self.value("select count(*) from nudge_token"), 1)

    def test_an_unchanged_token_keeps_a_proven_environment(self):
        for clause in self.for_each_clause():
            for kind, scope in (("alert", None), ("activity_start", "Turn"), ("activity_update", "A1")):
                token = {"alert": T1, "activity_start": T2, "activity_update": T3}[kind]
                place = {"kind": kind, "scope": scope}
                self.register(clause=clause, token=token, environment="sandbox", **place)
                self.prove(token, "production")
                for named in ("sandbox", "production", None):
                    self.register(clause=clause, token=token.upper(), environment=named, **place)
                    self.assertEqual(self.token("d1", kind, scope or "")[:3], (token, "production", NOW))

    def test_an_unchanged_unproven_token_takes_the_environment_that_is_named(self):
        for clause in self.for_each_clause():
            self.register(clause=clause, token=T1)
            self.assertEqual(self.token()[1], None)
            for named, known in (("sandbox", "sandbox"), (None, "sandbox"), ("production", "production"), (None, "production")):
                self.register(clause=clause, token=T1, environment=named)
                self.assertEqual(self.token()[1:3], (known, None))

    def test_a_changed_token_starts_afresh(self):
        for clause in self.for_each_clause():
            for named in ("sandbox", "production", None):
                self.register(clause=clause, token=T1, environment="production")
                self.prove(T1)
                self.db.execute("update nudge_token set rejected_at = ?", (NOW,))
                self.register(clause=clause, token=T2, environment=named, registered_at=NOW)
                self.assertEqual(self.rows("select token, environment, proven_at, registered_at, rejected_at from nudge_token"),
                                 [(T2, named, None, NOW, None)])

    def test_every_registration_renews_the_time_and_lifts_a_rejection(self):
        for clause in self.for_each_clause():
            self.register(clause=clause, token=T1, registered_at=NOW)
            self.assertEqual(self.token()[3], NOW)
            self.db.execute("update nudge_token set rejected_at = ?", (NOW,))
            self.register(clause=clause, token=T1, registered_at=NOW + 5)
            self.assertEqual(self.token()[3:], (NOW + 5, None))
            self.register(clause=clause, token=T1, registered_at=NOW - 5)
            self.assertEqual(self.token()[3], NOW + 5, "never back")
            self.db.execute("update nudge_token set registered_at = 100000000000")
            self.register(clause=clause, token=T1)
            self.assert_about_now(self.token()[3])

    def test_a_device_alone_renews_no_token(self):
        self.register(token=T1, registered_at=NOW)
        self.db.execute("update nudge_token set rejected_at = 7")
        self.register(environment="sandbox", registered_at=NOW + 9)
        self.assertEqual(self.token(), (T1, None, None, NOW, 7))

    def test_numbers_as_drivers_bind_them(self):
        for given in (NOW, float(NOW), str(NOW), 10**11, 10**14):
            self.register(token=T1, registered_at=NOW)
            self.db.execute("delete from nudge_token")
            self.register(token=T1, registered_at=given)
            self.assertEqual(self.row("select typeof(registered_at), registered_at from nudge_token"),
                             ("integer", int(given)))

    def test_the_view_shows_what_is_known(self):
        self.register("d2", recipient="ann", surface="tablet")
        self.register("d1", topic="com.example.app", token=T1, environment="sandbox", registered_at=NOW)
        self.register("d1", kind="activity_start", scope="Turn", token=T2, registered_at=NOW)
        self.assertEqual(self.rows("select * from nudge_registration order by device_id, kind"), [
            ("d1", "owner", "phone", "com.example.app", "activity_start", "Turn", T2, None, NOW),
            ("d1", "owner", "phone", "com.example.app", "alert", None, T1, "sandbox", NOW),
            ("d2", "ann", "tablet", None, None, None, None, None, None)])

    def test_many_in_one_statement(self):
        self.db.execute("""insert into nudge_registration (device_id, token)
            select 'd' || value, printf('%064x', value) from (select 1 as value union select 2 union select 3)""")
        self.assertEqual(self.value("select count(*) from nudge_token"), 3)

    def test_deleting_a_device_deletes_its_tokens(self):
        for keys in ("off", "on"):
            self.db.execute(f"pragma foreign_keys = {keys}")
            self.register("d1", token=T1)
            self.register("d1", kind="voip", token=T2)
            self.register("d2", token=T3)
            self.db.execute("delete from nudge_device where device_id = 'd1'")
            self.assertEqual(self.rows("select device_id, token from nudge_token"), [("d2", T3)])


class Move(RegistrationCase):
    def test_a_token_belongs_to_one_device(self):
        for clause in self.for_each_clause():
            self.register("d1", clause, recipient="ann", token=T1)
            self.register("d1", clause, kind="voip", token=T1)
            self.register("d1", clause, kind="location", token=T2)
            self.register("d3", clause, recipient="cem", token=T3)
            self.register("d2", clause, recipient="bob", token="<" + T1.upper() + ">")
            self.assertEqual(self.rows("select device_id, kind, token from nudge_token order by device_id, kind"),
                             [("d1", "location", T2), ("d2", "alert", T1), ("d3", "alert", T3)])

    def test_also_between_devices_of_one_recipient(self):
        for clause in self.for_each_clause():
            self.register("d1", clause, token=T1)
            self.register("d2", clause, token=T1)
            self.assertEqual(self.rows("select device_id from nudge_token"), [("d2",)])

    def test_moving_onto_a_device_that_has_a_token(self):
        for clause in self.for_each_clause():
            self.register("d1", clause, token=T1)
            self.register("d2", clause, token=T2)
            self.register("d2", clause, token=T1)
            self.assertEqual(self.rows("select device_id, token from nudge_token"), [("d2", T1)])

    def test_one_device_may_carry_it_under_several_kinds(self):
        for clause in self.for_each_clause():
            self.register("d1", clause, token=T1)
            self.register("d1", clause, kind="voip", token=T1)
            self.register("d1", clause, kind="activity_update", scope="A", token=T1)
            self.assertEqual(self.value("select count(*) from nudge_token where token = ?", T1), 3)

    def test_another_person_signs_in_on_the_same_device(self):
        for clause in self.for_each_clause():
            self.register("d1", clause, recipient="ann", token=T1)
            self.register("d2", clause, recipient="ann", token=T2)
            self.register("d1", clause, recipient="bob", token=T1)
            self.assertEqual(self.rows("select device_id, recipient, token from nudge_registration order by 1"),
                             [("d1", "bob", T1), ("d2", "ann", T2)])

    def test_what_was_rejected_there_is_not_rejected_here(self):
        self.register("d1", token=T1, environment="sandbox")
        self.db.execute("update nudge_token set rejected_at = ?, proven_at = ?", (NOW, NOW))
        self.register("d2", token=T1)
        self.assertEqual(self.token("d2")[:3] + self.token("d2")[4:], (T1, None, None, None))


class Refusal(RegistrationCase):
    MALFORMED = {
        "device_id": [None, "", b"d1", 7, 1.5, "d\x00", "\x00"],
        "recipient": ["", b"ann", 7, "ann\x00", "a\x00b"],
        "surface": ["", "*", b"phone", 7, "phone\x00"],
        "topic": ["", "com.example app", "com.example\n", "com.ex\x00", "com.\u00e9xample", b"com.example", 7, "\t",
                  "com.example.app.push-type.liveactivity", Raw(b"com.\xff")],
        "kind": ["", "background", "activity_end", "liveactivity", "Alert", "alert ", "alert\x00", b"alert", 1],
        "environment": ["", "Production", "development", "sandbox\n", "production\x00", b"sandbox", 0],
        "registered_at": [0, -1, 1_790_000_000, 1_790_000_000.0, 10**11 - 1, 10**14 + 1, 2**63 - 1, -(2**63), "", "now",
                          "2026-01-01", NOW + 0.5, float("inf"), b"1790000000000", "1790000000000x", str(NOW) + "\x00"],
        "token": ["", " ", "<>", "a", "abc", "(null)", "null", T1 + "\n", "\n" + T1, T1 + "\r\n", T1 + "\x00", "\x00",
                  T1[:32] + "\x00" + T1[32:], T1 + "\t", "../" + T1, T1 + "/..", T1 + "?x", "g" * 64, "0x" + T1, "f" * 401,
                  "f" * 402, "ab" * 10_000, "\uff11\uff12", "\u0663\u0664", "\U0001f600", bytes(32), b"aabb", 12, 1.5,
                  Raw(b"\xff\xff"), Raw(b"\xc1\xa1\xc1\xa1"), "%61%61", "aa-bb", "aa,bb", "[0-9]", "*", "aa\u00a0bb"],
    }

    def test_what_is_malformed_is_refused_by_name(self):
        for clause in self.for_each_clause():
            self.register("d1", recipient="ann", topic="com.example.app", token=T1, environment="sandbox")
            self.register("d9", token=T2)
            before = self.dump()
            for column, values in self.MALFORMED.items():
                for value in values:
                    with self.subTest(column=column, value=repr(value)[:40], clause=clause):
                        given = {"device_id": "d1", "token": T3, "recipient": "bob", column: value}
                        with self.assertRaises(sqlite3.IntegrityError) as caught:
                            self.insert("nudge_registration", clause, **given)
                        self.assertTrue(str(caught.exception).startswith(f"nudge_registration.{column}: "), caught.exception)
                        self.assertEqual(self.dump(), before)

    def test_a_scope_is_required_for_activities_and_refused_for_others(self):
        for clause in self.for_each_clause():
            wrong = [{"kind": k, "scope": "s"} for k in KINDS] + [{"scope": "s"}]
            wrong += [{"kind": k, "scope": s} for k in SCOPED for s in (None, "", b"s", b"", "s\x00", 7)]
            for given in wrong:
                with self.subTest(given, clause=clause), self.assertRaises(sqlite3.IntegrityError) as caught:
                    self.register(clause=clause, token=T1, **given)
                self.assertTrue(str(caught.exception).startswith("nudge_registration.scope: "), caught.exception)
            self.assertEqual(self.value("select count(*) from nudge_device"), 0)

    def test_a_refusal_leaves_the_backends_transaction_alone(self):
        for clause in self.for_each_clause():
            self.db.execute("begin")
            self.insert(title="kept")
            with self.assertRaises(sqlite3.IntegrityError):
                self.register(clause=clause, token="nonsense")
            self.assertTrue(self.db.in_transaction)
            self.db.execute("commit")
            self.assertEqual(self.value("select count(*) from nudge_outbox"), 1)
            self.assertEqual(self.value("select count(*) from nudge_device"), 0)

    def test_one_bad_row_of_several_undoes_the_statement(self):
        with self.assertRaises(sqlite3.IntegrityError):
            self.db.execute("insert into nudge_registration (device_id, token) values ('d1', 'aa'), ('d2', 'x')")
        self.assertEqual(self.value("select count(*) from nudge_device"), 0)


class Wake(RegistrationCase):
    def waiting(self, activity="A", **values):
        nudge = self.insert(kind="activity_update", activity_id=activity, **values)
        self.db.execute("update nudge_outbox set state = 'waiting', detail = 'no token yet' where id = ?", (nudge,))
        return nudge

    def test_an_update_token_wakes_what_waits_for_it(self):
        for clause in self.for_each_clause():
            self.register("d1", clause, recipient="ann", surface="tablet")
            woken = [self.waiting(recipient="ann"), self.waiting(recipient="ann", surface="*"),
                     self.waiting(recipient="ann", device_id="d1"), self.waiting(device_id="d1")]
            asleep = [self.waiting(recipient="bob"), self.waiting(), self.waiting("B", recipient="ann"),
                      self.waiting("a", recipient="ann"), self.waiting(recipient="ann", device_id="d2"),
                      self.waiting(None, recipient="ann")]
            settled = self.insert(kind="activity_update", activity_id="A", recipient="ann")
            self.db.execute("update nudge_outbox set state = 'expired' where id = ?", (settled,))
            self.register("d1", clause, kind="activity_update", scope="A", token=T1)
            for nudge in woken:
                self.assertEqual(self.row("select state, detail, settled_at from nudge_outbox where id = ?", nudge),
                                 ("pending", None, None))
            for nudge in asleep:
                self.assertEqual(self.state(nudge), ("waiting", "no token yet"))
            self.assertEqual(self.state(settled)[0], "expired")

    def test_null_is_the_owner(self):
        nudge = self.waiting(recipient=None)
        self.register("d1", kind="activity_update", scope="A", token=T1)
        self.assertEqual(self.state(nudge)[0], "pending")

    def test_the_same_token_again_wakes_too(self):
        self.register("d1", kind="activity_update", scope="A", token=T1)
        nudge = self.waiting()
        self.register("d1", kind="activity_update", scope="A", token=T1)
        self.assertEqual(self.state(nudge)[0], "pending")

    def test_other_tokens_wake_nothing(self):
        nudge = self.waiting()
        for given in ({"token": T1}, {"token": T2, "kind": "activity_start", "scope": "A"}, {},
                      {"kind": "activity_update", "scope": "A"}, {"token": T3, "kind": "activity_update", "scope": "B"}):
            self.register("d1", **given)
            self.assertEqual(self.state(nudge)[0], "waiting", given)


class MergeUTF16(Merge):
    encoding = "UTF-16le"


class RefusalUTF16(Refusal):
    encoding = "UTF-16be"
    # A cast from BLOB reads the bytes in the database's own encoding, so Raw is something else here.
    MALFORMED = {c: [v for v in values if not isinstance(v, Raw)] for c, values in Refusal.MALFORMED.items()}


class MoveRecursive(Move):
    def open(self, migrate=True):
        db = super().open(migrate)
        db.execute("pragma recursive_triggers = on")
        return db
