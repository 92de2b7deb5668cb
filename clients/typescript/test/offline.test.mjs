// What needs no service.
import assert from "node:assert/strict";
import { createHmac, createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { test } from "node:test";
import { inspect } from "node:util";
import { AccessionError, Client, SignatureError, retryable, verifyWebhook } from "@accession/client";
import { newDigest as inBrowsers } from "../dist/sha256.js";
import { newDigest as inNode } from "../dist/sha256-node.js";

test("both digests are SHA-256, piece by piece", () => {
  const content = Uint8Array.from({ length: 100_003 }, (_, i) => i * 7);
  const want = createHash("sha256").update(content).digest("hex");
  for (const newDigest of [inBrowsers, inNode]) {
    const digest = newDigest();
    for (let at = 0; at < content.length; at += 4099) digest.update(content.subarray(at, at + 4099));
    assert.equal(digest.hex(), want);
  }
});

test("nothing that a browser loads needs Node.js", async () => {
  const left = ["../dist/index.js"];
  const seen = new Set();
  while (left.length > 0) {
    const file = left.pop();
    if (seen.has(file)) continue;
    seen.add(file);
    const code = await readFile(new URL(file, import.meta.url), "utf8");
    assert.doesNotMatch(code, /"node:|\bBuffer\.|\bprocess\./, file);
    for (const [, name] of code.matchAll(/from "([^"]+)"/g)) {
      if (name.startsWith("./")) left.push("../dist/" + name.slice(2));
      else if (name === "#sha256") left.push("../dist/sha256.js");
      else assert.match(name, /^@noble\/hashes\//);
    }
  }
  assert.ok(seen.has("../dist/sha256.js") && seen.has("../dist/connection.js"));
});

test("a client never prints its credential", () => {
  for (const credential of [{ apiKey: "acc_secret" }, { clientId: "cred_1", clientSecret: "acc_secret" }]) {
    const client = new Client({ baseURL: "http://127.0.0.1:1", org: "harbour", credential });
    assert.doesNotMatch(inspect(client, { depth: null, showHidden: true }) + JSON.stringify(client), /secret/);
  }
  assert.throws(() => new Client({ baseURL: "http://127.0.0.1:1", org: "harbour", credential: { apiKey: "acc_secret\n" } }), (error) => !error.message.includes("secret\n"));
  assert.throws(() => new Client({ baseURL: "http://user:word@127.0.0.1", org: "harbour", credential: { apiKey: "acc_x" } }), TypeError);
});

/** A server that answers each request by the next of answers. */
async function answering(t, ...answers) {
  const asked = [];
  const server = createServer((request, response) => {
    request.resume();
    request.on("end", () => {
      asked.push(request);
      const { status, headers = {}, body = "" } = answers[Math.min(asked.length, answers.length) - 1];
      response.writeHead(status, headers).end(body);
    });
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  return { asked, url: `http://127.0.0.1:${server.address().port}` };
}

const envelope = JSON.stringify({ request_id: "req_1", trace_id: "t", data: { used_bytes: 7 } });

test("redirects are not followed: a credential stays where it was meant to go", async (t) => {
  const elsewhere = await answering(t, { status: 200, body: envelope });
  const service = await answering(t, { status: 307, headers: { location: elsewhere.url } });
  const client = new Client({ baseURL: service.url, org: "harbour", credential: { apiKey: "acc_x" } });
  await assert.rejects(client.quota(), (error) => error instanceof AccessionError && error.status === 307 && error.code === "");
  assert.equal(elsewhere.asked.length, 0);
});

test("passing failures are repeated, within bounds", async (t) => {
  const service = await answering(t, { status: 503, headers: { "retry-after": "1" } }, { status: 502, body: "<html>" }, { status: 409, body: '{"code":"idempotency_in_progress"}' }, { status: 200, body: envelope });
  const told = [];
  const options = { baseURL: service.url, org: "harbour", credential: { apiKey: "acc_x" } };
  const quota = await new Client({ ...options, retry: { firstMs: 2, notify: (error, wait) => told.push([error.status, wait]) } }).quota();
  assert.equal(quota.used_bytes, 7);
  assert.deepEqual(told.map(([status]) => status), [503, 502, 409]);
  assert.ok(told[0][1] >= 1000 && told[1][1] >= 2 && told[1][1] <= 4 && told[2][1] >= 4 && told[2][1] <= 8, JSON.stringify(told));

  const dead = await answering(t, { status: 503 });
  await assert.rejects(new Client({ ...options, baseURL: dead.url, retry: { attempts: 3, firstMs: 1 } }).quota(), (error) => error.status === 503);
  assert.equal(dead.asked.length, 3);
  const stop = new AbortController();
  const waiting = new Client({ ...options, baseURL: dead.url, retry: { firstMs: 60_000, notify: () => stop.abort(new Error("enough")) } });
  await assert.rejects(waiting.quota({ signal: stop.signal }), /enough/);
  for (const status of [400, 401, 403, 404, 409, 413, 501]) assert.equal(retryable(new AccessionError({ status, headers: new Headers() }, {})), false, String(status));
});

test("ids cannot leave their place in the path", async () => {
  const client = new Client({ baseURL: "http://127.0.0.1:1", org: "harbour", credential: { apiKey: "acc_x" } });
  for (const id of ["", ".", ".."]) await assert.rejects(client.status(id), TypeError);
});

test("webhooks are verified", () => {
  const key = Buffer.alloc(32, 5);
  const secret = "whsec_" + key.toString("base64");
  const other = "whsec_" + Buffer.alloc(32, 6).toString("base64");
  const body = JSON.stringify({ event_id: "evt_1", upload_id: "upl_1", sequence: 3, status: "READY", occurred_at: "2026-11-20T12:00:00Z" });
  const at = Math.floor(Date.now() / 1000);
  const signed = (timestamp = at, id = "evt_1") => ({
    "webhook-id": id,
    "webhook-timestamp": String(timestamp),
    "webhook-signature": "v1,AAAA v1," + createHmac("sha256", key).update(`${id}.${timestamp}.${body}`).digest("base64"),
  });
  assert.equal(verifyWebhook(body, signed(), secret).sequence, 3);
  assert.equal(verifyWebhook(Buffer.from(body), new Headers(signed()), [other, secret]).status, "READY");
  for (const [what, headers, secrets, content = body] of [
    ["another secret", signed(), other],
    ["no secret", signed(), []],
    ["another body", signed(), secret, body.replace("READY", "FAILED")],
    ["old", signed(at - 301), secret],
    ["from the future", signed(at + 302), secret],
    ["another id", signed(at, "evt_2"), secret],
    ["no signature", { ...signed(), "webhook-signature": "" }, secret],
    ["another version", { ...signed(), "webhook-signature": signed()["webhook-signature"].replaceAll("v1,", "v1a,") }, secret],
    ["nothing", {}, secret],
  ]) {
    assert.throws(() => verifyWebhook(content, headers, secrets), SignatureError, what);
  }
  assert.throws(() => verifyWebhook(body, signed(), "whsec_"), TypeError);
});
