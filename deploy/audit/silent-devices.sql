-- Devices that fell silent: those without a token that works, when it died, and what reached them last.
--
--     sqlite3 -box app.db ".read deploy/audit/silent-devices.sql"
--
-- `died` is the time that Apple names: from then on the token was no longer valid. `learned` is when an answer
-- told so. A device that the backend has deleted is listed as long as its attempts are kept.

with last_accepted(device_id, at) as (
  select device_id, max(finished_at) from nudge_attempt where outcome = 'accepted' group by device_id
),
death(device_id, attempt_id) as (
  select device_id, max(id) from nudge_attempt where outcome = 'dead_token' group by device_id
),
device(device_id, recipient, surface, tokens, good_tokens, rejected_at) as (
  select d.device_id, d.recipient, d.surface, count(t.id), coalesce(sum(t.id is not null and t.rejected_at is null), 0),
    max(t.rejected_at)
  from nudge_device d left join nudge_token t on t.device_id = d.device_id and t.kind = 'alert'
  group by d.device_id
  union all
  select x.device_id, null, null, 0, 0, null
  from death x where not exists (select 1 from nudge_device d where d.device_id = x.device_id)
)
select d.device_id as device, d.recipient as recipient, d.surface as surface,
  case when d.recipient is null then 'device deleted'
    when d.tokens > 0 then 'token set aside: no host knows it'
    when a.id is not null then 'token dead'
    else 'no alert token registered' end as trouble,
  case when d.tokens = 0
    then strftime('%Y-%m-%dT%H:%M:%fZ', a.apns_timestamp_at / 1000.0, 'unixepoch') end as died,
  strftime('%Y-%m-%dT%H:%M:%fZ',
    case when d.tokens > 0 then d.rejected_at else a.finished_at end / 1000.0, 'unixepoch') as learned,
  case when d.tokens = 0 then a.reason else 'BadDeviceToken' end as reason,
  strftime('%Y-%m-%dT%H:%M:%fZ', l.at / 1000.0, 'unixepoch') as last_accepted
from device d
  left join death x on x.device_id = d.device_id
  left join nudge_attempt a on a.id = x.attempt_id
  left join last_accepted l on l.device_id = d.device_id
where d.good_tokens = 0
order by learned desc, d.device_id;
