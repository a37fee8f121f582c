"""Values of every type and shape that a backend may write by mistake, or an attacker on purpose."""

from support import Raw

INTEGERS = (0, 1, -1, 2**63 - 1, -(2**63), 1_790_000_000, 1_790_000_000_000, 10**14 + 1)
REALS = (0.5, -0.0, 1.0, 1e308, 5e-324, float("inf"), float("-inf"), float("nan"))
TEXTS = (
    "", " ", "null", "'", '"', "'); drop table nudge_outbox; --", "%s%n", "\n", "\r\n", "a\x00b", "\x00",
    "\U0001f468\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466", "\u0915\u094d\u0937", "\ufeff", "\uffff",
    "job_finished", "job_finished\x00", "heartbeat", "pending", "waiting", "attempted", "cancelled", "suppressed",
    "9223372036854775808", "0x10", "1e999", "{", "[]", '{"aps":{}}', "[" * 5_000, "x" * 100_000, "alert", "*", "1",
)
BROKEN = (Raw(b"\xff"), Raw(b"\xc0\x80"), Raw(b"\xed\xa0\x80"), Raw(b"ok\xf0\x9f"), Raw(b"\x80" * 1_000))
BLOBS = (b"", b"\x00", b"\xff\xfe", b'{"a":1}', b"job_finished", b"heartbeat", b"pending", b"\x00" * 100_000)

VALUES = (None, *INTEGERS, *REALS, *TEXTS, *BROKEN, *BLOBS)
