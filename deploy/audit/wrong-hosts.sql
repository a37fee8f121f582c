-- Wrong-host discoveries: where a token was not known, what the other host said, and what is remembered now.
--
--     sqlite3 -box app.db ".read deploy/audit/wrong-hosts.sql"
--
-- Many lines for one device mean that nothing was learned: see `then_host` and `now`.

select strftime('%Y-%m-%dT%H:%M:%fZ', a.started_at / 1000.0, 'unixepoch') as time,
  a.device_id as device, a.token_kind as token_kind, a.nudge_id as nudge,
  a.environment as asked_first,
  b.environment as then_host,
  coalesce(b.outcome || coalesce(' ' || b.status, ''),
    case when b.id is not null then 'in flight' else 'the other host was not asked' end) as then_outcome,
  case
    when t.id is null then 'the token is gone'
    when t.rejected_at is not null then 'set aside until it is registered again'
    when t.proven_at is not null then t.environment || ', proven'
    when t.environment is not null then t.environment || ', as registered'
    else 'unknown'
  end as now
from nudge_attempt a
  -- The last attempt of this nudge with this token: a host that said so is not asked again, so it is the other's.
  left join nudge_attempt b on b.id = (
    select max(c.id) from nudge_attempt c
    where c.nudge_id = a.nudge_id and c.token_hash = a.token_hash and c.id > a.id)
  left join nudge_token t on t.id = (
    select max(u.id) from nudge_token u where u.device_id = a.device_id and u.kind = a.token_kind)
where a.outcome = 'wrong_host'
  -- A second refusal is told in the line of the first.
  and not exists (
    select 1 from nudge_attempt p
    where p.nudge_id = a.nudge_id and p.token_hash = a.token_hash and p.id < a.id and p.outcome = 'wrong_host')
order by a.id desc;
