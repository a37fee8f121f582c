-- Takes everything of nudged out of the database again, and nothing else. May run again.
-- Views go first, so that no view is left pointing at a dropped table; a table takes its indexes, its triggers
-- and its row in sqlite_sequence with it.

begin immediate;

drop view if exists nudge_dead_tokens;
drop view if exists nudge_undelivered;
drop view if exists nudge_daily;
drop view if exists nudge_audit;
drop view if exists nudge_story;
drop view if exists nudge_registration;

drop trigger if exists nudge_device_delete;
drop trigger if exists nudge_outbox_cancel;
drop trigger if exists nudge_outbox_insert;

drop table if exists nudge_worker;
drop table if exists nudge_activity;
drop table if exists nudge_token;
drop table if exists nudge_device;
drop table if exists nudge_attempt;
drop table if exists nudge_outbox;
drop table if exists nudge_schema;

commit;
