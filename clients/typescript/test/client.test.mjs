// Against a running service, which e2e/typescript_client_test.go starts and names in the environment.
import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { AccessionError, Client, NetworkError, SourceChangedError, newIdempotencyKey } from "@accession/client";
import { openFile } from "@accession/client/file";
import { consent, env } from "./setting.mjs";

const partner = (more = {}) => new Client({ baseURL: env("ACCESSION_URL"), org: env("ACCESSION_ORG"), credential: { apiKey: env("ACCESSION_TOKEN") }, ...more });
const reader = () => partner({ credential: { apiKey: env("ACCESSION_READER_KEY") } });
const document = { filename: "log.txt", content_type: "text/plain", consent };
const refused = (status, code) => (error) => {
  assert.ok(error instanceof AccessionError, String(error));
  assert.deepEqual([error.status, error.code], [status, code], error.message);
  assert.match(error.requestId, /^req_/);
  assert.notEqual(error.traceId, "");
  return true;
};

/** A fetch that notes what it was asked; change may answer instead. */
function watched(change = (_request, ask) => ask()) {
  const asked = [];
  const watch = async (address, init) => {
    const request = { method: init.method, path: new URL(address).pathname, headers: init.headers };
    asked.push(request);
    return change(request, () => fetch(address, init));
  };
  return { fetch: watch, asked, paths: (end) => asked.filter((request) => request.path.endsWith(end)) };
}

/** Text of n bytes in lines of its own. */
function lines(n) {
  let text = "";
  for (let i = 1; text.length < n; i++) text += `On day ${i} pump ${i % 7} ran for ${(i * 31) % 24} hours at the old mill.\n`;
  return new TextEncoder().encode(text.slice(0, n));
}

test("a document is uploaded with an abort in the middle, resumed, read and withdrawn", async (t) => {
  const content = lines(2.5 * 1024 * 1024); // three parts
  const folder = await mkdtemp(join(tmpdir(), "accession-"));
  t.after(() => rm(folder, { recursive: true }));
  await writeFile(join(folder, "log.txt"), content);
  const file = await openFile(join(folder, "log.txt"));
  t.after(() => file.close());

  const client = partner();
  const before = await client.quota();
  const stop = new AbortController();
  let id = "";
  const cut = client.upload(file, document, {
    signal: stop.signal,
    onReserved: (reserved) => void (id = reserved.upload_id),
    onProgress: ({ phase, bytes }) => phase === "send" && bytes >= 1024 * 1024 && stop.abort(new Error("enough")),
  });
  await assert.rejects(cut, /enough/);
  assert.equal((await client.status(id)).next_part_number, 2);

  await assert.rejects(client.resume(id, content.subarray(1)), SourceChangedError);
  const seen = [];
  const changes = [];
  const wire = watched();
  const status = await partner({ fetch: wire.fetch }).resume(id, new Blob([content]), {
    onProgress: ({ phase, bytes }) => seen.push(`${phase} ${bytes}`),
    onStatus: ({ sequence }) => changes.push(sequence),
  });
  assert.equal(status.status, "READY", JSON.stringify(status.failure));
  assert.deepEqual(seen, ["verify 1048576", "send 2097152", "send 2621440", "complete 2621440"]);
  assert.deepEqual(wire.asked.filter(({ method }) => method === "PUT").map(({ headers }) => headers["idempotency-key"]), [`${id}-part-2`, `${id}-part-3`]);
  assert.deepEqual([...changes].sort((a, b) => a - b), changes, "changes are told in order");
  assert.equal(changes.at(-1), status.sequence);

  const served = await reader().context(id);
  assert.equal(served.context.content_trust, "untrusted");
  assert.ok(served.context.text.startsWith(served.context.boundary.begin) && served.context.text.includes("pump"));
  await reader().context(id);
  await reader().context(id);
  const records = [];
  for await (const record of reader().records({ uploadId: id, limit: 2 })) records.push(record.record_id);
  assert.equal(new Set(records).size, 3);
  assert.equal(records[2], served.record_id, "newest first");

  const gone = await client.withdraw(id, { reason: "test" });
  assert.deepEqual([gone.status, gone.deleted, gone.quota_bytes], ["WITHDRAWN", true, content.length]);
  const receipt = await client.withdrawalReceipt(gone.withdrawal_receipt_id);
  assert.equal(receipt.signed_receipt.split(".").length, 3);
  await assert.rejects(reader().context(id), refused(404, "context_not_ready"));
  assert.equal((await client.quota()).used_bytes, before.used_bytes);
  assert.equal((await client.resume(id, content)).status, "WITHDRAWN", "nothing is sent again");
});

test("wrong digests are refused, of a part and of the whole", async () => {
  const client = partner();
  const content = lines(100);
  const reserved = await client.initiateUpload({ ...document, size_bytes: 100 });
  await assert.rejects(client.putPart(reserved.upload_id, 1, content, { sha256: "0".repeat(64) }), refused(400, "content_digest_mismatch"));
  await client.putPart(reserved.upload_id, 1, content);
  await assert.rejects(client.completeUpload(reserved.upload_id, [{ part_number: 1 }], "0".repeat(64)), refused(409, "digest_mismatch"));
  await assert.rejects(client.resume(reserved.upload_id, lines(100).reverse()), refused(409, "part_ledger_mismatch"), "other content");
  assert.equal((await client.resume(reserved.upload_id, content)).status, "READY");
});

test("a repeated mutation is a replay", async () => {
  const client = partner();
  const idempotencyKey = newIdempotencyKey();
  const replays = [];
  const reserve = (size_bytes) => client.initiateUpload({ ...document, size_bytes }, { idempotencyKey, onAnswer: ({ replayed }) => replays.push(replayed) });
  const first = await reserve(9);
  assert.equal((await reserve(9)).upload_id, first.upload_id);
  assert.deepEqual(replays, [false, true]);
  await assert.rejects(reserve(10), refused(409, "idempotency_conflict"));
});

test("a lost answer is asked for again with the same key", async () => {
  let lost = 0;
  const wire = watched(async ({ path }, ask) => {
    const answer = await ask();
    await answer.clone().text();
    if (path.endsWith("/initiate") && lost++ < 2) throw new TypeError("fetch failed");
    return answer;
  });
  const told = [];
  const client = partner({ fetch: wire.fetch, retry: { firstMs: 1, notify: (error) => told.push(error) } });
  const counted = (await client.quota()).upload_count;
  let replayed;
  await client.initiateUpload({ ...document, size_bytes: 9 }, { onAnswer: (meta) => (replayed = meta.replayed) });
  assert.equal(replayed, true);
  assert.equal(new Set(wire.paths("/initiate").map(({ headers }) => headers["idempotency-key"])).size, 1);
  assert.equal((await client.quota()).upload_count, counted + 1);
  assert.ok(told.length === 2 && told.every((error) => error instanceof NetworkError));
});

test("429 is sat out for as long as Retry-After says", async () => {
  const told = [];
  const limited = (retry) => partner({ baseURL: env("ACCESSION_LIMITED_URL"), credential: { apiKey: env("ACCESSION_LIMITED_KEY") }, retry });
  const busy = limited({ firstMs: 1, notify: (error, wait) => told.push({ error, wait }) });
  for (let i = 0; i < 20 && told.length === 0; i++) await busy.quota(); // a machine that dawdles between two stays below one a second
  assert.ok(told.length > 0);
  for (const { error, wait } of told) {
    refused(429, "rate_limited")(error);
    assert.ok(error.retryAfterMs >= 1000 && wait >= error.retryAfterMs, `waited ${wait}`);
  }
  const hasty = limited({ patienceMs: 500 });
  await assert.rejects(async () => {
    for (let i = 0; i < 20; i++) await hasty.quota();
  }, refused(429, "rate_limited"));
});

test("tokens are shared, refreshed before they end, and once after a 401", async (t) => {
  const wire = watched();
  const client = partner({
    fetch: wire.fetch,
    credential: { clientId: env("ACCESSION_CLIENT_ID"), clientSecret: env("ACCESSION_CLIENT_SECRET"), scope: "metadata_read" },
  });
  const tokens = () => wire.paths("/oauth/token").length;
  await Promise.all([client.quota(), client.quota(), client.quota()]);
  assert.equal(tokens(), 1);
  assert.ok(wire.asked.every(({ headers }) => !("x-api-key" in headers)));

  const now = Date.now;
  t.after(() => (Date.now = now));
  Date.now = () => now() + 8 * 60_000; // of ten
  await client.quota();
  assert.equal(tokens(), 1);
  Date.now = () => now() + 9.5 * 60_000;
  await client.quota();
  assert.equal(tokens(), 2);

  const bearer = wire.asked.at(-1).headers.authorization.slice("Bearer ".length);
  const end = await fetch(`${env("ACCESSION_URL")}/oauth/revoke`, {
    method: "POST",
    body: new URLSearchParams({ token: bearer, client_id: env("ACCESSION_CLIENT_ID"), client_secret: env("ACCESSION_CLIENT_SECRET") }),
  });
  assert.equal(end.status, 200);
  await client.quota();
  assert.equal(tokens(), 3);

  // Whoever the service does not know at all is told so after one exchange.
  const stranger = watched();
  const unknown = partner({ fetch: stranger.fetch, credential: { clientId: "cred_unknown", clientSecret: "acc_unknown" } });
  await assert.rejects(unknown.quota(), (error) => error instanceof AccessionError && error.status === 401 && error.code === "invalid_client");
  assert.equal(stranger.asked.length, 1);
  // What the credential may not do is refused once and for all.
  const asked = wire.asked.length;
  await assert.rejects(client.recordPage(), refused(403, "access_denied"));
  assert.equal(wire.asked.length, asked + 1);
});

test("another organization is refused, and nothing else is tried", async () => {
  for (const credential of [{ apiKey: env("ACCESSION_TOKEN") }, { clientId: env("ACCESSION_CLIENT_ID"), clientSecret: env("ACCESSION_CLIENT_SECRET") }]) {
    const wire = watched();
    const client = partner({ org: "lighthouse", credential, fetch: wire.fetch });
    await assert.rejects(client.quota(), refused(403, "access_denied"));
    await assert.rejects(client.initiateUpload({ ...document, size_bytes: 9 }), refused(401, "credential_not_bound"));
    await assert.rejects(client.status("upl_00000000000000000000000000"), refused(404, "upload_not_found"));
    assert.equal(wire.asked.filter(({ path }) => path !== "/oauth/token").length, 3);
    assert.ok(wire.paths("/oauth/token").length <= 1);
  }
});

test("texts are submitted, corrected and referred to", async () => {
  const client = partner();
  const text = { filename: "note.txt", payload: "Pump 2 runs.", visibility: "ai_readable_controlled", consent };
  const first = await client.submitText(text);
  const second = await client.correct(first.upload_id, { ...text, payload: "Pump 2 ran." });
  assert.equal(second.original_upload_id, first.upload_id);
  assert.deepEqual((await reader().context(first.upload_id)).context.corrections, [second.upload_id]);
  assert.equal((await client.attachReview(first.upload_id, { review_id: "r-1" })).evaluation_status, "not_evaluated");
  await assert.rejects(client.submitText({ ...text, consent: { ...consent, accepted: false } }), (error) => {
    refused(400, "consent_invalid")(error);
    assert.deepEqual(error.fields.map(({ path }) => path), ["/consent/accepted"]);
    return true;
  });
});
