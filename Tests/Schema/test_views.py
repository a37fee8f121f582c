"""The views for audits: they add up, they find by index, they outlive nudges and devices."""

import datetime
import random

from support import ENDS_WITHOUT_ATTEMPT, NOW, SchemaCase


class Views(SchemaCase):
    def named(self, sql, *parameters):
        cursor = self.db.execute(sql, parameters)
        names = [c[0] for c in cursor.description]
        self.assertEqual(len(set(names)), len(names), "column names are distinct")
        return [dict(zip(names, row)) for row in cursor]

    def settle(self, nudge, state, detail=None):
        self.db.execute("update nudge_outbox set state = ?, detail = ?, settled_at = ? where id = ?",
                        (state, detail, NOW + 900, nudge))

    def sent(self, **values):
        nudge = self.insert(created_at=NOW - 40, event="turn_finished", record_id="r1", conversation_id="c1", **values)
        self.insert("nudge_registration", device_id="d1", recipient="ann", surface="tablet", token="aa")
        self.attempt(nudge, finished_at=NOW + 85, outcome="accepted", status=200, token_kind="alert",
                     environment="sandbox", push_type="alert", topic="com.example.app", apns_id="U")
        self.settle(nudge, "attempted")
        return nudge

    def test_a_line_per_attempt(self):
        nudge = self.sent()
        self.attempt(nudge, "d2", "rejected", status=400, reason="BadTopic", finished_at=NOW + 9)
        lines = self.named("select * from nudge_audit where nudge_id = ? order by attempt_id", nudge)
        self.assertEqual(len(lines), 2)
        expected = dict(
            nudge_id=nudge, attempt_id=1, at=NOW, time="2026-09-21T14:13:20.000Z", kind="alert", event="turn_finished",
            record_id="r1", conversation_id="c1", recipient="owner", surface="phone", device_id="d1",
            device_recipient="ann", device_surface="tablet", token_kind="alert", token_hash="h-d1", environment="sandbox",
            push_type="alert", topic="com.example.app", apns_id="U", state="attempted", outcome="accepted", status=200,
            reason=None, may_have_buzzed=1, created_at=NOW - 40, created="2026-09-21T14:13:19.960Z", started_at=NOW,
            started="2026-09-21T14:13:20.000Z", finished_at=NOW + 85, finished="2026-09-21T14:13:20.085Z",
            settled_at=NOW + 900, settled="2026-09-21T14:13:20.900Z", queue_ms=40, latency_ms=85)
        self.assertEqual({k: lines[0][k] for k in expected}, expected)
        self.assertEqual((lines[1]["reason"], lines[1]["device_recipient"], lines[1]["latency_ms"]), ("BadTopic", None, 9))

    def test_queueing_counts_from_when_it_was_due(self):
        self.sent(not_before_at=NOW - 7)
        self.assertEqual(self.value("select queue_ms from nudge_audit"), 7)

    def test_a_line_per_nudge_without_an_attempt(self):
        for state in ENDS_WITHOUT_ATTEMPT:
            self.settle(self.insert(created_at=NOW, device_id="d7"), state, "because")
        for state in ("pending", "waiting"):
            self.db.execute("update nudge_outbox set state = ? where id = ?",
                            (state, self.insert(created_at=NOW, not_before_at=NOW + 1)))
        self.assertEqual([s for s, in self.rows("select state from nudge_audit order by nudge_id")], list(ENDS_WITHOUT_ATTEMPT))
        lines = self.named("select * from nudge_story order by nudge_id")
        self.assertEqual([l["state"] for l in lines], list(ENDS_WITHOUT_ATTEMPT) + ["pending", "waiting"])
        for line in lines[-2:]:
            self.assertEqual((line["attempt_id"], line["at"], line["time"], line["created_at"], line["not_before_at"]),
                             (None, None, None, NOW, NOW + 1))
            self.assertEqual(line["not_before"], "2026-09-21T14:13:20.001Z")
        for line in lines[:-2]:
            self.assertEqual((line["attempt_id"], line["outcome"], line["detail"], line["at"], line["device_id"]),
                             (None, None, "because", NOW + 900, "d7"))
            self.assertEqual(line["time"], "2026-09-21T14:13:20.900Z")

    def test_nudge_and_device_may_be_gone(self):
        nudge = self.sent()
        self.db.execute("delete from nudge_device")
        self.assertEqual(self.row("select outcome, device_id, device_recipient, kind from nudge_audit where nudge_id = ?", nudge),
                         ("accepted", "d1", None, "alert"))
        self.db.execute("delete from nudge_outbox")
        self.assertEqual(self.row("select outcome, device_id, state, kind, created, latency_ms from nudge_audit where nudge_id = ?", nudge),
                         ("accepted", "d1", None, None, None, 85))
        self.attempt(99, "d9", "dead_token", status=410, reason="Unregistered", finished_at=NOW, apns_timestamp_at=NOW - 1)
        self.assertEqual(self.row("select nudge_id, device_id, device_recipient, reason, apns_timestamp, finished from nudge_dead_tokens"),
                         (99, "d9", None, "Unregistered", "2026-09-21T14:13:19.999Z", "2026-09-21T14:13:20.000Z"))
        self.assertEqual(self.value("select count(*) from nudge_undelivered"), 0)
        self.assertEqual(self.row("select sum(nudges), sum(attempts) from nudge_daily"), (0, 2))

    def test_iso_text_is_exact_to_the_millisecond(self):
        chance = random.Random(7)
        times = [10**11, 10**14, NOW + 999, NOW + 1] + [chance.randint(10**11, 10**14) for _ in range(3_000)]
        self.db.execute("begin")
        for number, time in enumerate(times):
            self.attempt(number, started_at=time)
        self.db.execute("commit")
        zero = datetime.datetime(1970, 1, 1)
        for time, text in self.rows("select at, time from nudge_audit"):
            exact = (zero + datetime.timedelta(milliseconds=time)).isoformat(timespec="milliseconds") + "Z"
            self.assertEqual(text, exact)

    def test_undelivered_is_what_ended_and_reached_no_device(self):
        self.sent()
        expected = {}
        for outcome in ("rejected", "dead_token", "unanswered", "interrupted"):
            nudge = self.insert()
            self.attempt(nudge, "d1", "wrong_host", may_have_buzzed=None)
            self.attempt(nudge, "d1", outcome, status=400, reason="R")
            self.settle(nudge, "attempted")
            expected[nudge] = ("attempted", 2, outcome, 400, "R")
        for state in ENDS_WITHOUT_ATTEMPT:
            nudge = self.insert()
            self.settle(nudge, state)
            expected[nudge] = (state, 0, None, None, None)
        partly = self.insert()
        self.attempt(partly, "d1", "accepted")
        self.attempt(partly, "d2", "rejected")
        flying = self.insert()
        self.attempt(flying, "d1", "rejected")
        self.attempt(flying, "d2")
        for nudge in (partly, flying):
            self.settle(nudge, "attempted")
        self.insert()
        lines = self.rows("select nudge_id, state, attempts, last_outcome, last_status, last_reason from nudge_undelivered")
        self.assertEqual({line[0]: line[1:] for line in lines}, expected)

    def test_a_day_adds_up(self):
        self.sent()
        day_before = self.insert(created_at=NOW - 86_400_000)
        for number, outcome in enumerate(("rejected", "dead_token", "unanswered", "interrupted", None)):
            self.attempt(day_before, f"d{number}", outcome, finished_at=NOW + 15 if outcome == "rejected" else None)
        for outcome in ("wrong_host", "unsent"):
            self.attempt(day_before, "d7", outcome, may_have_buzzed=None)
        for state in ENDS_WITHOUT_ATTEMPT:
            self.settle(self.insert(created_at=NOW), state)
        self.db.execute("update nudge_outbox set state = 'waiting' where id = ?", (self.insert(created_at=NOW),))
        for hostile in ("abc", 5, -(2**63), 2**63 - 1, float("inf"), b"x", 1_790_000_000):
            self.insert(created_at=hostile)
        lines = {line["day"]: line for line in self.named("select * from nudge_daily")}
        self.assertEqual(set(lines), {None, "2026-09-20", "2026-09-21"})
        self.assertEqual(lines[None]["nudges"], 7)
        self.assertEqual((lines["2026-09-20"]["nudges"], lines["2026-09-20"]["pending"], lines["2026-09-20"]["attempts"]), (1, 1, 0))
        today = lines["2026-09-21"]
        self.assertEqual(today["nudges"], 8)
        for column in ENDS_WITHOUT_ATTEMPT + ("attempted", "waiting", "accepted", "rejected", "dead_token", "unanswered",
                                              "interrupted", "wrong_host", "unsent", "in_flight"):
            self.assertEqual(today[column], 1, column)
        self.assertEqual((today["attempts"], today["mean_latency_ms"], today["max_latency_ms"]), (8, 50, 85))

    def test_dead_tokens_join_their_attempts(self):
        nudge = self.sent()
        self.attempt(nudge, "d2", "rejected", status=400)
        dead = self.attempt(nudge, "d3", "dead_token", status=410)
        self.assertEqual(self.rows("select attempt_id, nudge_id, device_id, token_hash, status from nudge_dead_tokens"),
                         [(dead, nudge, "d3", "h-d3", 410)])

    def test_one_nudge_is_found_by_index(self):
        for analysed in (False, True):
            for view in ("nudge_audit", "nudge_story", "nudge_undelivered", "nudge_dead_tokens"):
                plan = self.plan(f"select * from {view} where nudge_id = ?", 1)
                # What a view has found by index is read through.
                found = ("SCAN " + view, "SCAN nudge_story")
                scans = [l for l in plan.splitlines() if "SCAN" in l and l not in found and not l.startswith("SCAN SUBQUERY")]
                self.assertEqual(scans, [], plan)
            if not analysed:
                self.db.executescript("""
                    with recursive c(i) as (select 1 union all select i + 1 from c where i < 3000)
                    insert into nudge_outbox (title) select 't' from c;
                    insert into nudge_device (device_id) select id from nudge_outbox;
                    insert into nudge_attempt (nudge_id, device_id, token_hash) select id, id, id from nudge_outbox;
                    analyze""")
