-- Why was this not sent? Nudges that have reached no device, with the reason, the newest first.
--
--     sqlite3 -box app.db ".read deploy/audit/why-not.sql"
--     sqlite3 -box app.db ".parameter set :record m-81" ".read deploy/audit/why-not.sql"
--
-- Without :record: the nudges of the last 24 hours, or since :since (a text such as "'2026-11-30 08:00'", UTC,
-- or milliseconds since 1970).

with settings(since) as (
  select case when nullif(:record, '') is not null then 0
    when typeof(:since) = 'integer' then :since
    else cast((julianday(coalesce(nullif(:since, ''), datetime('now', '-1 day'))) - 2440587.5) * 86400000 + 0.5 as integer)
    end
),
last_attempt as (
  select nudge_id, max(id) as id, count(*) as attempts,
    max(outcome = 'accepted') as was_accepted
  from nudge_attempt
  where nudge_id in (
    select id from nudge_outbox, settings
    where created_at >= since and (nullif(:record, '') is null or record_id = cast(:record as text)))
  group by nudge_id
)
select n.id as nudge, n.record_id as record,
  case when typeof(n.created_at) = 'integer'
    then strftime('%Y-%m-%dT%H:%M:%fZ', n.created_at / 1000.0, 'unixepoch') else n.created_at end as written,
  n.state as state,
  case
    when n.state = 'pending' and n.not_before_at > (julianday('now') - 2440587.5) * 86400000
    then 'not due before ' || strftime('%Y-%m-%dT%H:%M:%SZ', n.not_before_at / 1000.0, 'unixepoch')
    when n.state = 'pending' and a.id is not null and a.outcome is null then 'in flight'
    when n.state = 'pending'
    then 'still to be tried: no worker runs, or its host is paused (see the log)'
    when n.state = 'waiting' then 'waits for the activity''s update token'
    when n.state = 'expired' then coalesce(n.detail, 'its time ran out before it could be sent')
    when n.state <> 'attempted' then coalesce(n.detail, '')
    when a.outcome is null then 'in flight'
    when a.outcome = 'rejected'
    then 'refused by Apple: ' || coalesce(a.status || coalesce(' ' || a.reason, ''), '')
    when a.outcome = 'dead_token' then 'the token is dead: the app is gone, or it has not registered since'
    when a.outcome = 'wrong_host' then 'no host that has a key knows the token'
    when a.outcome = 'unanswered' then 'handed over, never answered: it may have arrived'
    when a.outcome = 'interrupted' then 'the worker ended before the answer: it may have arrived'
    when a.outcome = 'unsent' then 'Apple''s server refused the stream three times'
    else a.outcome
  end || case when n.state = 'attempted' and n.detail is not null then ' (' || n.detail || ')' else '' end
    as why,
  coalesce(l.attempts, 0) as attempts
from settings, nudge_outbox n
  left join last_attempt l on l.nudge_id = n.id
  left join nudge_attempt a on a.id = l.id
where (n.created_at >= since or n.created_at is null)
  and (nullif(:record, '') is null or n.record_id = cast(:record as text))
  and not coalesce(l.was_accepted, 0)
order by n.id desc;
