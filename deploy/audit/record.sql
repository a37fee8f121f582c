-- The story of one record: each nudge about it, from the row to the outcome, a line an event.
--
--     sqlite3 -box app.db ".parameter set :record m-81" ".read deploy/audit/record.sql"
--
-- :record is what the backend wrote into record_id.

with story(nudge, at, step, what, detail) as (
  select id, created_at, 1, 'written',
    coalesce(kind, 'no kind') || coalesce(' of activity ' || activity_id, '') || coalesce(' (' || event || ')', '')
      || ' for ' || coalesce(recipient, 'owner') || ', '
      || coalesce('device ' || device_id, 'surface ' || coalesce(surface, 'phone'))
  from nudge_outbox
  where record_id = cast(:record as text)
  union all
  select id, not_before_at, 2, 'due', 'not before this time'
  from nudge_outbox
  where record_id = cast(:record as text) and not_before_at is not null
  union all
  select a.nudge_id, a.started_at, 3, 'sent to ' || a.device_id,
    a.environment || ', ' || a.topic || ', apns-id ' || a.apns_id
  from nudge_attempt a
  where a.nudge_id in (select id from nudge_outbox where record_id = cast(:record as text))
  union all
  select a.nudge_id, coalesce(a.finished_at, a.started_at), 4, coalesce(a.outcome, 'in flight'),
    case when a.outcome is null then 'no answer yet'
      else coalesce(a.status || coalesce(' ' || a.reason, ''), 'no status') || ', after '
        || (a.finished_at - a.started_at) || ' ms' end
  from nudge_attempt a
  where a.nudge_id in (select id from nudge_outbox where record_id = cast(:record as text))
  union all
  -- What its attempts say already is not said again.
  select id, settled_at, 5, state, coalesce(detail, '')
  from nudge_outbox
  where record_id = cast(:record as text) and (state <> 'attempted' or detail is not null)
)
select nudge,
  case when typeof(at) = 'integer' then strftime('%Y-%m-%dT%H:%M:%fZ', at / 1000.0, 'unixepoch') else at end
    as time,
  what, detail
from story
-- A row that is still to be tried has no time of its own and comes last.
order by nudge, step in (1, 2) desc, at is null, at, step;
