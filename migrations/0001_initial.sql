-- The tables, triggers and views of nudged, as a guest in a backend's own database.
--
-- Every statement may run again: `nudged migrate` and `sqlite3 app.db < 0001_initial.sql` do the same.
-- All that is stored here runs in the backend's SQLite, 3.28 or newer, also with
-- `pragma trusted_schema = off` and `recursive_triggers = on`.
--
-- No statement inside a trigger relies on a conflict clause, because lang_createtrigger.html says: "if an
-- ON CONFLICT clause is specified as part of the statement causing the trigger to fire, then the conflict
-- handling policy of the outer statement is used instead."
--
-- `cast((julianday('now') - 2440587.5) * 86400000 + 0.5 as integer)` is now, in milliseconds since 1970:
-- `unixepoch()` and 'subsec' came after 3.28.

begin immediate;

create table if not exists nudge_schema (
  version integer primary key,
  applied_at integer
);

-- The outbox. No constraint but the key: what a nudge says never fails the backend's transaction.
-- AUTOINCREMENT, since attempts outlive a row that the backend deletes, and its id must not come back.

create table if not exists nudge_outbox (
  id integer primary key autoincrement,
  created_at integer default (cast((julianday('now') - 2440587.5) * 86400000 + 0.5 as integer)),
  kind text default 'alert',
  event text,
  record_id text,
  recipient text default 'owner',
  surface text default 'phone',
  device_id text,
  conversation_id text,
  title text,
  subtitle text,
  body text,
  aps text,
  data text,
  activity_id text,
  attributes_type text,
  attributes text,
  content_state text,
  stale_at integer,
  dismiss_at integer,
  collapse_id text,
  priority integer,
  delivered_by text,
  push_requested integer default 0,
  not_before_at integer,
  expires_at integer,
  dedupe_key text,
  state text default 'pending',
  detail text,
  settled_at integer
);

-- Partial, so that settled history costs the claim nothing. A query must repeat the condition word for word.
create index if not exists nudge_outbox_undated on nudge_outbox (id)
  where state = 'pending' and not_before_at is null;
create index if not exists nudge_outbox_dated on nudge_outbox (not_before_at, id)
  where state = 'pending' and not_before_at is not null;
create index if not exists nudge_outbox_expiring on nudge_outbox (expires_at, id)
  where state = 'pending' and expires_at is not null;
create index if not exists nudge_outbox_waiting on nudge_outbox (activity_id, id)
  where state = 'waiting';
create index if not exists nudge_outbox_activity on nudge_outbox (activity_id, id)
  where activity_id is not null and state in ('pending', 'waiting');
create index if not exists nudge_outbox_dedupe on nudge_outbox (dedupe_key)
  where dedupe_key is not null;

-- Attempts. Written by the worker alone, so here constraints are welcome.

create table if not exists nudge_attempt (
  id integer primary key,
  nudge_id integer not null,
  device_id text not null,
  token_kind text,
  token_hash text not null,
  environment text,
  push_type text,
  topic text,
  apns_id text,
  started_at integer,
  finished_at integer,
  outcome text,
  status integer,
  reason text,
  apns_timestamp_at integer,
  apns_unique_id text,
  may_have_buzzed integer default 1,
  check (may_have_buzzed is 1
    or (may_have_buzzed is null and (outcome is 'unsent' or outcome is 'wrong_host')))
);

-- At most once to a device, and at most once to a token, whatever the code does. lang_createindex.html:
-- "all NULL values are considered different from all other NULL values and are thus unique", so only what
-- provably reached no phone can be tried again.
create unique index if not exists nudge_attempt_device on nudge_attempt (nudge_id, device_id, may_have_buzzed);
create unique index if not exists nudge_attempt_token on nudge_attempt (nudge_id, token_hash, may_have_buzzed);

-- Devices and their tokens. Written through nudge_registration, below.

create table if not exists nudge_device (
  device_id text not null primary key,
  recipient text not null default 'owner',
  surface text not null default 'phone',
  topic text,
  created_at integer,
  updated_at integer
) without rowid;

-- With the topic, so that a claim need not look at the device itself.
create index if not exists nudge_device_address on nudge_device (recipient, surface, device_id, topic);
create index if not exists nudge_device_recipient on nudge_device (recipient, device_id);

-- scope is '' for the kinds that have none: in a unique index NULLs would be distinct.
create table if not exists nudge_token (
  id integer primary key,
  device_id text not null,
  kind text not null,
  scope text not null default '',
  token text not null,
  environment text,
  proven_at integer,
  registered_at integer not null,
  rejected_at integer
);

create unique index if not exists nudge_token_place on nudge_token (device_id, kind, scope);
create index if not exists nudge_token_token on nudge_token (token);

-- What the worker remembers of Live Activities, and the lowest attempt id that may still be in flight.
-- last_nudge_id is the newest nudge that was attempted there, last_turn_id the newest start or end: nothing
-- older follows them.

create table if not exists nudge_activity (
  device_id text not null,
  activity_id text not null,
  last_timestamp integer,
  started_at integer,
  ended_at integer,
  last_nudge_id integer,
  last_turn_id integer,
  primary key (activity_id, device_id)
) without rowid;

create table if not exists nudge_worker (
  id integer primary key check (id = 1),
  low_water_attempt_id integer not null default 0
);

-- What a new row says about itself is put right here, and what deliberately does not fire is suppressed here.
-- One trigger, because the order of several is undefined. An ordinary row costs no update.

create trigger if not exists nudge_outbox_insert after insert on nudge_outbox
when new.created_at is null
  or new.state is not 'pending'
  or new.detail is not null
  or new.settled_at is not null
  or (cast(new.event as text) = 'job_finished'
    and new.delivered_by is not 'heartbeat' and new.push_requested is not 1)
  or (new.dedupe_key is not null
    and exists (select 1 from nudge_outbox where dedupe_key = new.dedupe_key and id <> new.id))
begin
  update nudge_outbox
  set created_at = coalesce(created_at, cast((julianday('now') - 2440587.5) * 86400000 + 0.5 as integer)),
    (state, detail, settled_at) = (
      select case when why is null then 'pending' else 'suppressed' end,
        why,
        case when why is not null
          then cast((julianday('now') - 2440587.5) * 86400000 + 0.5 as integer) end
      from (
        select case
          when cast(new.event as text) = 'job_finished'
            and new.delivered_by is not 'heartbeat' and new.push_requested is not 1
          then 'job_finished without heartbeat delivery or push request'
          else (
            select 'duplicate of nudge ' || min(id) from nudge_outbox
            where dedupe_key = new.dedupe_key and id <> new.id)
          end as why
      )
    )
  where id = new.id;
end;

-- The backend may cancel what is pending or waiting. A row that has attempts is `attempted`, for the states
-- partition the table, and a row that has ended stays what it was. No statement here sets the state to
-- 'cancelled', so the trigger ends under recursive_triggers too.

create trigger if not exists nudge_outbox_cancel after update of state on nudge_outbox
when new.state = 'cancelled'
begin
  update nudge_outbox
  set state = old.state, detail = old.detail, settled_at = old.settled_at
  where id = new.id
    and old.state in ('attempted', 'suppressed', 'expired', 'superseded', 'unaddressed', 'invalid');

  update nudge_outbox
  set state = 'attempted',
    detail = (
      select 'cancelled after ' || count(*) || case count(*) when 1 then ' attempt' else ' attempts' end
      from nudge_attempt where nudge_id = new.id),
    settled_at = coalesce(settled_at, cast((julianday('now') - 2440587.5) * 86400000 + 0.5 as integer))
  where id = new.id and state = 'cancelled'
    and exists (select 1 from nudge_attempt where nudge_id = new.id);

  update nudge_outbox
  set settled_at = coalesce(old.settled_at, settled_at,
    cast((julianday('now') - 2440587.5) * 86400000 + 0.5 as integer))
  where id = new.id and state = 'cancelled';
end;

-- Foreign keys are off in most connections, so a trigger it is.
create trigger if not exists nudge_device_delete after delete on nudge_device
begin
  delete from nudge_token where device_id = old.device_id;
end;

-- Registrations: an insert merges, a select shows what is known now.

create view if not exists nudge_registration as
select d.device_id as device_id, d.recipient as recipient, d.surface as surface, d.topic as topic,
  t.kind as kind, nullif(t.scope, '') as scope, t.token as token, t.environment as environment,
  t.registered_at as registered_at
from nudge_device d left join nudge_token t on t.device_id = d.device_id;

-- instr(..., char(0)): GLOB and length() stop at a NUL, instr() does not, in UTF-8 and in UTF-16.
-- registered_at may come as REAL or numeric text, as some drivers bind every number so.
create trigger if not exists nudge_registration_insert instead of insert on nudge_registration
begin
  select case
    when typeof(new.device_id) <> 'text' or new.device_id = '' or instr(new.device_id, char(0))
    then raise(abort, 'nudge_registration.device_id: text is required, not empty, without NUL')
    when new.recipient is not null
      and (typeof(new.recipient) <> 'text' or new.recipient = '' or instr(new.recipient, char(0)))
    then raise(abort, 'nudge_registration.recipient: text, not empty, without NUL, or NULL')
    when new.surface is not null and (typeof(new.surface) <> 'text' or new.surface in ('', '*')
      or instr(new.surface, char(0)))
    then raise(abort, 'nudge_registration.surface: the name of one surface (text, not *), or NULL')
    when new.topic is not null and (typeof(new.topic) <> 'text' or new.topic = ''
      or instr(new.topic, char(0)) or new.topic glob '*[^!-~]*')
    then raise(abort, 'nudge_registration.topic: the bundle id (printable ASCII without spaces), or NULL')
    when new.topic glob '*.push-type.*'
    then raise(abort, 'nudge_registration.topic: the bundle id without a .push-type suffix')
    when new.kind is not null and new.kind not in ('alert', 'voip', 'location', 'complication',
      'fileprovider', 'pushtotalk', 'widgets', 'controls', 'activity_start', 'activity_update')
    then raise(abort, 'nudge_registration.kind: alert (serves background too), activity_start, activity_update (serves the end too), voip, location, complication, fileprovider, pushtotalk, widgets or controls')
    when new.scope is not null and (typeof(new.scope) <> 'text' or instr(new.scope, char(0)))
    then raise(abort, 'nudge_registration.scope: text without NUL, or NULL')
    when new.token is not null and coalesce(new.scope, '') = ''
      and new.kind in ('activity_start', 'activity_update')
    then raise(abort, 'nudge_registration.scope: activity_start needs the attributes type, activity_update the activity id')
    when coalesce(new.scope, '') <> ''
      and coalesce(new.kind, 'alert') not in ('activity_start', 'activity_update')
    then raise(abort, 'nudge_registration.scope: only activity_start and activity_update have one')
    when new.environment is not null and new.environment not in ('production', 'sandbox')
    then raise(abort, 'nudge_registration.environment: production, sandbox or NULL')
    when new.registered_at is not null and not (cast(new.registered_at as integer) = new.registered_at
      and cast(new.registered_at as integer) between 100000000000 and 100000000000000)
    then raise(abort, 'nudge_registration.registered_at: whole milliseconds since 1970 UTC (not seconds), or NULL')
    when new.token is not null and (typeof(new.token) <> 'text' or instr(new.token, char(0)))
    then raise(abort, 'nudge_registration.token: hexadecimal text is required')
    when replace(replace(replace(lower(new.token), ' ', ''), '<', ''), '>', '') glob '*[^0-9a-f]*'
    then raise(abort, 'nudge_registration.token: only hexadecimal digits (spaces, < and > are ignored)')
    when length(replace(replace(replace(new.token, ' ', ''), '<', ''), '>', '')) not between 2 and 400
      or length(replace(replace(replace(new.token, ' ', ''), '<', ''), '>', '')) % 2 <> 0
    then raise(abort, 'nudge_registration.token: an even number of hexadecimal digits, 2 to 400')
  end;

  update nudge_device
  set recipient = coalesce(new.recipient, recipient),
    surface = coalesce(new.surface, surface),
    topic = coalesce(new.topic, topic),
    updated_at = cast((julianday('now') - 2440587.5) * 86400000 + 0.5 as integer)
  where device_id = new.device_id;

  insert into nudge_device (device_id, recipient, surface, topic, created_at, updated_at)
  select new.device_id, coalesce(new.recipient, 'owner'), coalesce(new.surface, 'phone'), new.topic,
    cast((julianday('now') - 2440587.5) * 86400000 + 0.5 as integer),
    cast((julianday('now') - 2440587.5) * 86400000 + 0.5 as integer)
  where not exists (select 1 from nudge_device where device_id = new.device_id);

  -- A token belongs to one device: nobody reads another person's nudges. (NULL matches nothing.)
  delete from nudge_token
  where token = replace(replace(replace(lower(new.token), ' ', ''), '<', ''), '>', '')
    and device_id <> new.device_id;

  -- The same token again: what an accepted push has proven outweighs what the app says, and the time of
  -- registration, which guards against an old 410, never goes back.
  update nudge_token
  set environment = case when proven_at is null then coalesce(new.environment, environment) else environment end,
    registered_at = max(
      case when typeof(registered_at) = 'integer' then registered_at else 0 end,
      coalesce(cast(new.registered_at as integer),
        cast((julianday('now') - 2440587.5) * 86400000 + 0.5 as integer))),
    rejected_at = null
  where device_id = new.device_id and kind = coalesce(new.kind, 'alert') and scope = coalesce(new.scope, '')
    and token = replace(replace(replace(lower(new.token), ' ', ''), '<', ''), '>', '');

  -- Another token in its place: nothing is known about it but what the registration says.
  update nudge_token
  set token = replace(replace(replace(lower(new.token), ' ', ''), '<', ''), '>', ''),
    environment = new.environment,
    proven_at = null,
    registered_at = coalesce(cast(new.registered_at as integer),
      cast((julianday('now') - 2440587.5) * 86400000 + 0.5 as integer)),
    rejected_at = null
  where device_id = new.device_id and kind = coalesce(new.kind, 'alert') and scope = coalesce(new.scope, '')
    and token <> replace(replace(replace(lower(new.token), ' ', ''), '<', ''), '>', '');

  insert into nudge_token (device_id, kind, scope, token, environment, registered_at)
  select new.device_id, coalesce(new.kind, 'alert'), coalesce(new.scope, ''),
    replace(replace(replace(lower(new.token), ' ', ''), '<', ''), '>', ''), new.environment,
    coalesce(cast(new.registered_at as integer),
      cast((julianday('now') - 2440587.5) * 86400000 + 0.5 as integer))
  where new.token is not null
    and not exists (
      select 1 from nudge_token
      where device_id = new.device_id and kind = coalesce(new.kind, 'alert') and scope = coalesce(new.scope, ''));

  -- What waited for this activity's token is looked at again.
  update nudge_outbox
  set state = 'pending', detail = null, settled_at = null
  where new.token is not null and new.kind = 'activity_update'
    and state = 'waiting' and activity_id = new.scope
    and (device_id = new.device_id
      or (device_id is null and coalesce(recipient, 'owner') = (
        select d.recipient from nudge_device d where d.device_id = new.device_id)));
end;

-- Audits. Times named _at are milliseconds, the same name without _at is ISO text in UTC.

-- A line per attempt, and a line per nudge that has none. What is still open, without one, has no time (at) yet.
create view if not exists nudge_story as
select a.nudge_id as nudge_id, a.id as attempt_id,
  a.started_at as at, strftime('%Y-%m-%dT%H:%M:%fZ', a.started_at / 1000.0, 'unixepoch') as time,
  n.kind as kind, n.event as event, n.record_id as record_id, n.conversation_id as conversation_id,
  n.activity_id as activity_id, n.recipient as recipient, n.surface as surface,
  a.device_id as device_id, d.recipient as device_recipient, d.surface as device_surface,
  a.token_kind as token_kind, a.token_hash as token_hash, a.environment as environment,
  a.push_type as push_type, a.topic as topic, a.apns_id as apns_id, a.apns_unique_id as apns_unique_id,
  n.state as state, n.detail as detail,
  a.outcome as outcome, a.status as status, a.reason as reason,
  a.apns_timestamp_at as apns_timestamp_at,
  strftime('%Y-%m-%dT%H:%M:%fZ', a.apns_timestamp_at / 1000.0, 'unixepoch') as apns_timestamp,
  a.may_have_buzzed as may_have_buzzed,
  n.created_at as created_at,
  case when typeof(n.created_at) = 'integer'
    then strftime('%Y-%m-%dT%H:%M:%fZ', n.created_at / 1000.0, 'unixepoch') end as created,
  a.started_at as started_at,
  strftime('%Y-%m-%dT%H:%M:%fZ', a.started_at / 1000.0, 'unixepoch') as started,
  a.finished_at as finished_at,
  strftime('%Y-%m-%dT%H:%M:%fZ', a.finished_at / 1000.0, 'unixepoch') as finished,
  n.settled_at as settled_at,
  strftime('%Y-%m-%dT%H:%M:%fZ', n.settled_at / 1000.0, 'unixepoch') as settled,
  -- from the moment the nudge was due to its request, and from the request to the answer
  a.started_at - max(n.created_at, coalesce(n.not_before_at, n.created_at)) as queue_ms,
  a.finished_at - a.started_at as latency_ms,
  n.not_before_at as not_before_at,
  case when typeof(n.not_before_at) = 'integer'
    then strftime('%Y-%m-%dT%H:%M:%fZ', n.not_before_at / 1000.0, 'unixepoch') end as not_before
from nudge_attempt a
  left join nudge_outbox n on n.id = a.nudge_id
  left join nudge_device d on d.device_id = a.device_id
union all
select n.id, null,
  n.settled_at, strftime('%Y-%m-%dT%H:%M:%fZ', n.settled_at / 1000.0, 'unixepoch'),
  n.kind, n.event, n.record_id, n.conversation_id,
  n.activity_id, n.recipient, n.surface,
  n.device_id, d.recipient, d.surface,
  null, null, null,
  null, null, null, null,
  n.state, n.detail,
  null, null, null,
  null,
  null,
  null,
  n.created_at,
  case when typeof(n.created_at) = 'integer'
    then strftime('%Y-%m-%dT%H:%M:%fZ', n.created_at / 1000.0, 'unixepoch') end,
  null,
  null,
  null,
  null,
  n.settled_at,
  strftime('%Y-%m-%dT%H:%M:%fZ', n.settled_at / 1000.0, 'unixepoch'),
  null,
  null,
  n.not_before_at,
  case when typeof(n.not_before_at) = 'integer'
    then strftime('%Y-%m-%dT%H:%M:%fZ', n.not_before_at / 1000.0, 'unixepoch') end
from nudge_outbox n
  left join nudge_device d on d.device_id = n.device_id
where not exists (select 1 from nudge_attempt a where a.nudge_id = n.id);

-- Of that, what has happened: a line per attempt, and a line per nudge that ended without one.
create view if not exists nudge_audit as
select * from nudge_story where attempt_id is not null or state not in ('pending', 'waiting');

-- A line per UTC day: nudges by the day they were created (NULL: not a time), attempts by the day they began.
create view if not exists nudge_daily as
select date(day * 86400, 'unixepoch') as day,
  sum(nudge) as nudges,
  sum(nudge and state = 'pending') as pending,
  sum(nudge and state = 'waiting') as waiting,
  sum(nudge and state = 'attempted') as attempted,
  sum(nudge and state = 'suppressed') as suppressed,
  sum(nudge and state = 'expired') as expired,
  sum(nudge and state = 'superseded') as superseded,
  sum(nudge and state = 'unaddressed') as unaddressed,
  sum(nudge and state = 'invalid') as invalid,
  sum(nudge and state = 'cancelled') as cancelled,
  sum(not nudge) as attempts,
  sum(not nudge and state is null) as in_flight,
  sum(not nudge and state is 'accepted') as accepted,
  sum(not nudge and state is 'rejected') as rejected,
  sum(not nudge and state is 'dead_token') as dead_token,
  sum(not nudge and state is 'wrong_host') as wrong_host,
  sum(not nudge and state is 'unanswered') as unanswered,
  sum(not nudge and state is 'interrupted') as interrupted,
  sum(not nudge and state is 'unsent') as unsent,
  cast(round(avg(latency)) as integer) as mean_latency_ms,
  max(latency) as max_latency_ms
from (
  select 1 as nudge, state, null as latency,
    case when typeof(created_at) = 'integer' and created_at between 100000000000 and 100000000000000
      then created_at / 86400000 end as day
  from nudge_outbox
  union all
  select 0, outcome, finished_at - started_at, started_at / 86400000
  from nudge_attempt
)
group by day;

-- Nudges that have ended and reached no device. While an attempt is in flight it is too early to say.
create view if not exists nudge_undelivered as
select n.id as nudge_id, n.kind as kind, n.event as event, n.record_id as record_id,
  n.conversation_id as conversation_id, n.recipient as recipient, n.surface as surface,
  n.device_id as device_id, n.state as state, n.detail as detail,
  (select count(*) from nudge_attempt a where a.nudge_id = n.id) as attempts,
  (select a.outcome from nudge_attempt a where a.nudge_id = n.id order by a.id desc limit 1) as last_outcome,
  (select a.status from nudge_attempt a where a.nudge_id = n.id order by a.id desc limit 1) as last_status,
  (select a.reason from nudge_attempt a where a.nudge_id = n.id order by a.id desc limit 1) as last_reason,
  n.created_at as created_at,
  case when typeof(n.created_at) = 'integer'
    then strftime('%Y-%m-%dT%H:%M:%fZ', n.created_at / 1000.0, 'unixepoch') end as created,
  n.settled_at as settled_at,
  strftime('%Y-%m-%dT%H:%M:%fZ', n.settled_at / 1000.0, 'unixepoch') as settled
from nudge_outbox n
where n.state not in ('pending', 'waiting')
  and not exists (
    select 1 from nudge_attempt a
    where a.nudge_id = n.id and (a.outcome = 'accepted' or a.outcome is null));

-- Each token that was dropped joins the attempt that was answered with 410.
create view if not exists nudge_dead_tokens as
select a.id as attempt_id, a.nudge_id as nudge_id,
  a.finished_at as finished_at,
  strftime('%Y-%m-%dT%H:%M:%fZ', a.finished_at / 1000.0, 'unixepoch') as finished,
  a.device_id as device_id, d.recipient as device_recipient, d.surface as device_surface,
  a.token_kind as token_kind, a.token_hash as token_hash, a.environment as environment, a.topic as topic,
  a.status as status, a.reason as reason,
  a.apns_timestamp_at as apns_timestamp_at,
  strftime('%Y-%m-%dT%H:%M:%fZ', a.apns_timestamp_at / 1000.0, 'unixepoch') as apns_timestamp
from nudge_attempt a
  left join nudge_device d on d.device_id = a.device_id
where a.outcome = 'dead_token';

insert into nudge_worker (id, low_water_attempt_id)
select 1, 0 where not exists (select 1 from nudge_worker);

insert into nudge_schema (version, applied_at)
select 1, cast((julianday('now') - 2440587.5) * 86400000 + 0.5 as integer)
where not exists (select 1 from nudge_schema where version = 1);

commit;
