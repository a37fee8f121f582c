-- What was burned during an outage: nudges that were spent without reaching anybody, and those that ran out of time.
--
--     sqlite3 -box app.db ".parameter set :since \"'2026-11-30 02:00'\"" \
--       ".parameter set :until \"'2026-11-30 05:00'\"" ".read deploy/audit/burned.sql"
--
-- Without :since the last 24 hours, without :until up to now. None of these is sent again: if one still matters,
-- the backend writes a new row.

with settings(since, until) as (
  select
    case when typeof(:since) = 'integer' then :since
      else cast((julianday(coalesce(nullif(:since, ''), datetime('now', '-1 day'))) - 2440587.5) * 86400000 + 0.5 as integer)
      end,
    case when typeof(:until) = 'integer' then :until
      else cast((julianday(coalesce(nullif(:until, ''), datetime('now', '+1 day'))) - 2440587.5) * 86400000 + 0.5 as integer)
      end
),
burned(at, nudge, device, how, may_have_arrived) as (
  select a.started_at, a.nudge_id, a.device_id,
    a.outcome || coalesce(' ' || a.status, '') || coalesce(' ' || a.reason, ''),
    case when a.outcome in ('unanswered', 'interrupted') then 'perhaps' else 'no' end
  from settings, nudge_attempt a
  where a.started_at between since and until
    and (a.outcome in ('unanswered', 'interrupted')
      or (a.outcome = 'rejected' and (a.status in (403, 429) or a.status >= 500))
      -- Refused three times over, and given up.
      or (a.outcome = 'unsent' and a.id = (
        select max(b.id) from nudge_attempt b where b.nudge_id = a.nudge_id and b.device_id = a.device_id)
        and exists (select 1 from nudge_outbox n where n.id = a.nudge_id and n.state = 'attempted')))
  union all
  select n.settled_at, n.id, n.device_id, 'expired, unsent', 'no'
  from settings, nudge_outbox n
  where n.state = 'expired' and n.settled_at between since and until
)
select strftime('%Y-%m-%dT%H:%M:%fZ', b.at / 1000.0, 'unixepoch') as time, b.nudge as nudge,
  n.record_id as record, n.event as event, b.device as device, b.how as how,
  b.may_have_arrived as may_have_arrived
from burned b left join nudge_outbox n on n.id = b.nudge
order by b.at, b.nudge, b.device;
