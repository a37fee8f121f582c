#!/usr/bin/env node
// A turn that shows on the lock screen: its card is started by push, updated, and ended with the reply.
//
//     turn.mjs DATABASE MESSAGE [SECONDS A STEP]
//
// Nothing here waits for the phone: the rows do, until the app has registered a token for the card. Without any
// package: the sqlite3 shell runs the SQL. With better-sqlite3 or node:sqlite bind the values instead of quoting them.
import { execFileSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";

const [path, message, step = "1"] = process.argv.slice(2);

// One transaction: all of it is committed, or nothing, and an exception says why.
function commit(...statements) {
  execFileSync("sqlite3", ["-batch", "-bail", "-cmd", ".timeout 5000", path], {
    input: ["begin immediate", ...statements, "commit", ""].join(";\n"),
  });
}

function insert(table, row) {
  const values = Object.values(row).map((value) =>
    typeof value === "number" ? value : `'${value.replaceAll("\0", "").replaceAll("'", "''")}'`);
  return `insert into ${table} (${Object.keys(row).join(", ")}) values (${values.join(", ")})`;
}

// Answers a message that came while the app was not open, and returns the id of the reply's record.
async function play(conversation, message) {
  const activity = randomUUID(); // a new one for each turn
  // The members of the app's ContentState, texts and integers only.
  const state = (status) => JSON.stringify({ title: "Assistant", status });

  commit(
    insert("message", { id: randomUUID(), conversation_id: conversation, text: message }),
    insert("nudge_outbox", {
      kind: "activity_start", activity_id: activity, attributes_type: "TurnAttributes",
      attributes: JSON.stringify({ activityId: activity }), content_state: state("Reading"), title: "Assistant", body: "On it.",
    }));

  for (const status of ["Looking things up", "Writing"]) {
    await sleep(step * 1000); // the work
    commit(insert("nudge_outbox", {
      kind: "activity_update", activity_id: activity, content_state: state(status), stale_at: Date.now() + 600_000,
    }));
  }

  await sleep(step * 1000);
  const [record, reply] = [randomUUID(), `You said: ${message}`];
  commit(
    insert("message", { id: record, conversation_id: conversation, text: reply }),
    insert("nudge_outbox", {
      event: "turn_finished", record_id: record, conversation_id: conversation, title: "Assistant", body: reply,
    }),
    // Of the reply only its first breath: a body is shortened to Apple's limit, a state is not.
    insert("nudge_outbox", {
      kind: "activity_end", record_id: record, activity_id: activity, content_state: state([...reply].slice(0, 200).join("")),
    }));
  return record;
}

console.log(await play("c-7", message));
