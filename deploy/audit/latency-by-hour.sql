-- Latency by hour: milliseconds of the last 24 hours, or since :since; hours are in UTC.
--
--     sqlite3 -box app.db ".read deploy/audit/latency-by-hour.sql"
--     sqlite3 -box app.db ".parameter set :since \"'2026-11-29'\"" ".read deploy/audit/latency-by-hour.sql"
--
-- `wait`: from the moment a nudge was due until its request, so pauses and outages are in it.
-- `answer`: from the request until Apple's answer. A percentile is the smallest value that so many lie at or below.

with settings(since) as (
  select case when typeof(:since) = 'integer' then :since
    else cast((julianday(coalesce(nullif(:since, ''), datetime('now', '-1 day'))) - 2440587.5) * 86400000 + 0.5 as integer)
    end
),
attempt(hour, outcome, waited, answered) as (
  select strftime('%Y-%m-%dT%H:00Z', a.started_at / 1000, 'unixepoch'), a.outcome,
    max(0, a.started_at - max(n.created_at, coalesce(n.not_before_at, n.created_at))),
    case when a.status is not null then a.finished_at - a.started_at end
  from settings, nudge_attempt a left join nudge_outbox n on n.id = a.nudge_id
  where a.started_at >= since
),
ranked as (
  select hour, outcome, waited, answered,
    row_number() over (partition by hour, waited is null order by waited) as wait_rank,
    count(waited) over (partition by hour) as waits,
    row_number() over (partition by hour, answered is null order by answered) as answer_rank,
    count(answered) over (partition by hour) as answers
  from attempt
)
select hour, count(*) as attempts, coalesce(sum(outcome = 'accepted'), 0) as accepted,
  min(case when wait_rank * 100 >= waits * 50 then waited end) as wait_median,
  min(case when wait_rank * 100 >= waits * 99 then waited end) as wait_p99,
  max(waited) as wait_max,
  min(case when answer_rank * 100 >= answers * 50 then answered end) as answer_median,
  min(case when answer_rank * 100 >= answers * 99 then answered end) as answer_p99,
  max(answered) as answer_max
from ranked
group by hour
order by hour;
