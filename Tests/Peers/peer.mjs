#!/usr/bin/env node
// The core of peer.py on Node's own http2: the same command line, script and log, so that one test runs on both.
//
// Understood: settings.max_concurrent_streams, tokens, rules (every condition), and the steps answer, interim,
// wait_ms, hold, reset, goaway, close, abort.

import { appendFileSync, existsSync, readFileSync } from "node:fs";
import { createSecureServer } from "node:http2";
import { parseArgs } from "node:util";
import { setTimeout as sleep } from "node:timers/promises";

const { values: options } = parseArgs({
  options: {
    certificate: { type: "string" },
    key: { type: "string" },
    script: { type: "string" },
    log: { type: "string" },
    address: { type: "string", default: "127.0.0.1" },
    port: { type: "string", default: "0" },
  },
});

const verdicts = {
  good: { status: 200 },
  wrong: { status: 400, reason: "BadDeviceToken" },
  dead: { status: 410, reason: "Unregistered" },
  topic: { status: 400, reason: "DeviceTokenNotForTopic" },
};
const conditions = ["token", "request", "on_connection", "connection", "for_token", "topic"];

let connectionCount = 0;
let requestCount = 0;
const tokenCounts = new Map();
let ruleUses = new Map();
let scriptText = "";
let scriptValue = {};

function log(event, fields) {
  const at_ms = performance.timeOrigin + performance.now();
  appendFileSync(options.log, JSON.stringify({ event, at_ms, ...fields }) + "\n");
}

function script() {
  const text = existsSync(options.script) ? readFileSync(options.script, "utf8") : "{}";
  if (text !== scriptText) {
    scriptText = text;
    scriptValue = JSON.parse(text);
    ruleUses = new Map();
  }
  return scriptValue;
}

function steps(request) {
  const { rules = [], tokens = {} } = script();
  for (const [index, rule] of rules.entries()) {
    if (conditions.some((name) => name in rule && rule[name] !== request[name])) continue;
    if (request.request < (rule.from_request ?? 0)) continue;
    const uses = ruleUses.get(index) ?? 0;
    if ("times" in rule && uses >= rule.times) continue;
    ruleUses.set(index, uses + 1);
    return rule.do;
  }
  return [{ answer: verdicts[tokens[request.token] ?? "good"] }];
}

function answer(stream, value, request) {
  const headers = { ":status": value.status ?? 200, ...value.headers };
  if ((value.apns_id ?? true) && request.apns_id) headers["apns-id"] = request.apns_id;
  let body = "";
  if ("body" in value) {
    body = value.body;
  } else if ("body_size" in value) {
    body = "x".repeat(value.body_size);
  } else if ("reason" in value || "fields" in value) {
    const reason = "reason" in value ? { reason: value.reason } : {};
    body = JSON.stringify({ ...reason, ...value.fields });
    headers["content-type"] = "application/json";
  }
  stream.respond(headers, { endStream: body === "" });
  if (body !== "") stream.end(body);
  log("answer", { connection: request.connection, stream: request.stream, status: headers[":status"] });
}

async function perform(stream, session, request) {
  for (const step of steps(request)) {
    const [[name, value]] = Object.entries(step);
    if (name === "wait_ms") await sleep(value);
    else if (name === "hold") while (!existsSync(value)) await sleep(5);
    else if (stream.destroyed && ["answer", "interim", "reset"].includes(name)) continue;
    else if (name === "answer") answer(stream, value, request);
    else if (name === "interim") stream.additionalHeaders({ ":status": value, link: "</hint>; rel=preload" });
    else if (name === "reset") stream.close(value);
    else if (name === "goaway") session.goaway(value.code ?? 0, value.last ?? request.stream);
    else if (name === "close") session.close();
    else if (name === "abort") session.destroy();
    else throw new Error(`peer.mjs: unknown step ${name}`);
  }
}

const { settings = {} } = script();
const server = createSecureServer({
  cert: readFileSync(options.certificate),
  key: readFileSync(options.key),
  settings: { maxConcurrentStreams: settings.max_concurrent_streams ?? 1000 },
});

server.on("session", (session) => {
  const connection = ++connectionCount;
  session.number = connection;
  session.requestCount = 0;
  log("connected", { connection, alpn: session.alpnProtocol });
  session.on("goaway", (code, last) => log("goaway", { connection, code, last }));
  session.on("ping", (data) => log("ping", { connection, data: data.toString("hex") }));
  session.on("remoteSettings", (changed) => log("settings", { connection, changed }));
  session.on("error", (error) => log("protocol_error", { connection, text: String(error) }));
  session.on("close", () => log("closed", { connection }));
});

server.on("stream", (stream, headers, flags, rawHeaders) => {
  const session = stream.session;
  const connection = session.number;
  const parts = [];
  stream.on("data", (part) => parts.push(part));
  stream.on("error", () => {});
  stream.on("aborted", () => log("reset", { connection, stream: stream.id, code: stream.rstCode }));
  stream.on("end", () => {
    const token = headers[":path"].split("/").at(-1);
    tokenCounts.set(token, (tokenCounts.get(token) ?? 0) + 1);
    const body = Buffer.concat(parts);
    const request = {
      connection,
      stream: stream.id,
      request: ++requestCount,
      on_connection: ++session.requestCount,
      for_token: tokenCounts.get(token),
      token,
      topic: headers["apns-topic"],
      apns_id: headers["apns-id"],
    };
    const pairs = [];
    for (let i = 0; i < rawHeaders.length; i += 2) pairs.push([rawHeaders[i], rawHeaders[i + 1]]);
    log("request", { ...request, headers: pairs, body: body.toString("utf8"), body_hex: body.toString("hex") });
    perform(stream, session, request);
  });
});

server.on("tlsClientError", (error) => log("handshake_failed", { text: String(error) }));
server.listen(Number(options.port), options.address, () => {
  console.log(JSON.stringify({ port: server.address().port }));
});
process.stdin.resume();
process.stdin.on("end", () => process.exit(0));
