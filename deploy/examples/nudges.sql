-- What a backend writes, in plain SQL: any language's SQLite library does. Bind the values in a real backend.

-- The worker writes to the same file, for moments: every writer waits for its turn instead of failing.
pragma busy_timeout = 5000;

-- A turn is finished: the record and its nudge in one transaction, so that there is never one without the other.
begin immediate;
insert into message (id, conversation_id, text) values ('m-81', 'c-7', 'The report is ready.');
insert into nudge_outbox (event, record_id, conversation_id, title, body)
values ('turn_finished', 'm-81', 'c-7', 'Assistant', 'The report is ready.');
commit;

-- With a sound, a badge, and something for the app to read.
insert into nudge_outbox (event, record_id, title, body, aps, data)
values ('turn_finished', 'm-82', 'Assistant', 'Two questions are open.',
  '{"sound": "default", "badge": 2}', '{"message_id": "m-82"}');

-- A job: fires only when the heartbeat delivers it, or when somebody asked for a push.
insert into nudge_outbox (event, record_id, body, delivered_by) values ('job_finished', 'j-5', 'Backup done.', 'heartbeat');

-- Tomorrow's reminder, good for an hour, and only once however often the planner runs.
insert into nudge_outbox (body, not_before_at, expires_at, dedupe_key)
values ('Stand-up in ten minutes.', 1790000000000, 1790003600000, 'reminder-2026-09-21');

-- Wake the app silently on all of the owner's devices.
insert into nudge_outbox (kind, surface, data) values ('background', '*', '{"sync": "inbox"}');

-- A Live Activity: started with the app's start token, updated and ended with the token it then registers.
insert into nudge_outbox (kind, activity_id, attributes_type, attributes, content_state, title, body)
values ('activity_start', 'ride-3', 'RideAttributes', '{"activity_id": "ride-3"}', '{"minutes": 12}',
  'Ride', 'Your car is on its way.');
insert into nudge_outbox (kind, activity_id, content_state) values ('activity_update', 'ride-3', '{"minutes": 7}');
insert into nudge_outbox (kind, activity_id, content_state) values ('activity_end', 'ride-3', '{"minutes": 0}');

-- No longer needed: cancelled if it has not gone yet.
update nudge_outbox set state = 'cancelled'
where dedupe_key = 'reminder-2026-09-21' and state in ('pending', 'waiting');

-- What the app reports at each launch. Only the token of that kind and scope is replaced.
insert into nudge_registration (device_id, topic, kind, token, environment)
values ('phone-1', 'com.example.app', 'alert', '00ff00ff00ff00ff', 'production');
insert into nudge_registration (device_id, kind, scope, token)
values ('phone-1', 'activity_start', 'RideAttributes', '11ee11ee11ee11ee');
