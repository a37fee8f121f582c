-- The last 24 hours: what became of the nudges written in that time, or since :since, and how their attempts ended.
--
--     sqlite3 -box app.db ".read deploy/audit/last-day.sql"
--
-- The states partition the table: the lines of `nudges` add up to the first. Those of `attempts` add up too.

with settings(since) as (
  select case when typeof(:since) = 'integer' then :since
    else cast((julianday(coalesce(nullif(:since, ''), datetime('now', '-1 day'))) - 2440587.5) * 86400000 + 0.5 as integer)
    end
),
nudge(id, state) as (
  select n.id, n.state from settings, nudge_outbox n where n.created_at >= since
),
attempt(outcome) as (
  select coalesce(a.outcome, 'in flight') from nudge_attempt a where a.nudge_id in (select id from nudge)
),
line(part, place, what, count) as (
  select 'nudges', 0, 'all', count(*) from nudge
  union all
  select 'nudges', 1, state, count(*) from nudge group by state
  union all
  select 'attempts', 0, 'all', count(*) from attempt
  union all
  select 'attempts', 1, outcome, count(*) from attempt group by outcome
)
select part, what, count from line order by part desc, place, count desc, what;
