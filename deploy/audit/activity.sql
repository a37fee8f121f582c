-- The story of one Live Activity: what was written about it, sent and answered, and what the app registered.
--
--     sqlite3 -box app.db ".parameter set :activity ride-3" ".read deploy/audit/activity.sql"
--
-- :activity is what the backend wrote into activity_id. Updates wait until the app has registered its token.

with story(at, step, device, nudge, what, detail) as (
  select created_at, 1, device_id, id, coalesce(kind, 'no kind') || ' written',
    'for ' || coalesce(recipient, 'owner') || coalesce(', about record ' || record_id, '')
  from nudge_outbox
  where activity_id = cast(:activity as text)
  union all
  select a.started_at, 2, a.device_id, a.nudge_id, 'sent', a.token_kind || ' token, ' || a.environment
  from nudge_attempt a
  where a.nudge_id in (select id from nudge_outbox where activity_id = cast(:activity as text))
  union all
  select coalesce(a.finished_at, a.started_at), 3, a.device_id, a.nudge_id, coalesce(a.outcome, 'in flight'),
    case when a.outcome is null then 'no answer yet'
      else coalesce(a.status || coalesce(' ' || a.reason, ''), 'no status') || ', after '
        || (a.finished_at - a.started_at) || ' ms' end
  from nudge_attempt a
  where a.nudge_id in (select id from nudge_outbox where activity_id = cast(:activity as text))
  union all
  select started_at, 4, device_id, null, 'activity started', ''
  from nudge_activity
  where activity_id = cast(:activity as text) and started_at is not null
  union all
  select registered_at, 5, device_id, null, 'update token registered',
    coalesce(environment, 'host unknown') || case when rejected_at is null then '' else ', set aside' end
  from nudge_token
  where kind = 'activity_update' and scope = cast(:activity as text)
  union all
  -- What its attempts say already is not said again.
  select settled_at, 6, device_id, id, state, coalesce(detail, '')
  from nudge_outbox
  where activity_id = cast(:activity as text) and (state <> 'attempted' or detail is not null)
  union all
  select ended_at, 7, device_id, null, 'activity over', 'later nudges about it are not sent'
  from nudge_activity
  where activity_id = cast(:activity as text) and ended_at is not null
)
select case when typeof(at) = 'integer' then strftime('%Y-%m-%dT%H:%M:%fZ', at / 1000.0, 'unixepoch') else at end
    as time,
  device, nudge, what, detail
from story
-- What is still open has no time of its own and comes last.
order by at is null, at, step, nudge, device;
