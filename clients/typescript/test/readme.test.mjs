// Every snippet of the README runs as it stands, one after the other, in one folder.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout } from "node:timers/promises";
import { env } from "./setting.mjs";

const readme = new URL("../README.md", import.meta.url);
const said = { Uploading: /READY/, Resuming: /READY/, Reading: /customer-submitted, unverified[^]*served/, "OAuth, and refusals": /^\d+\n404 upload_not_found req_/, Withdrawing: /^WITHDRAWN [\w-]+\.[\w-]+\.[\w-]+\n$/ };

test("the snippets of the README run", async (t) => {
  // In the package's own folder, so that its name leads to it.
  const folder = await mkdtemp(join(import.meta.dirname ?? new URL(".", import.meta.url).pathname, "readme-"));
  t.after(() => rm(folder, { recursive: true }));
  await writeFile(join(folder, "record.txt"), "Pump 2 was overhauled in October. It delivers its rated flow again.\n");

  const sections = (await readFile(readme, "utf8")).split(/^## /m).slice(1);
  const snippets = sections.flatMap((section) => [...section.matchAll(/^```js\n([^]*?)^```/gm)].map(([, code]) => ({ title: section.split("\n", 1)[0], code })));
  assert.deepEqual(snippets.map(({ title }) => title), [...Object.keys(said), "Webhooks"]);
  for (const [i, { title, code }] of snippets.entries()) {
    const file = join(folder, `${i}.mjs`);
    await writeFile(file, code);
    const child = spawn(process.execPath, [file], { cwd: folder, env: { ...process.env, FILE: "record.txt", PORT: env("WEBHOOK_PORT") }, stdio: ["ignore", "pipe", "pipe"] });
    t.after(() => child.kill());
    let [out, errors] = ["", ""];
    child.stdout.on("data", (chunk) => (out += chunk));
    child.stderr.on("data", (chunk) => (errors += chunk));
    if (title === "Webhooks") {
      await receives(child);
      child.kill();
      await once(child, "close");
      assert.match(out, /^upl_\w+ \d+ [A-Z]+\n$/, errors);
      continue;
    }
    const [exit] = await once(child, "close");
    assert.equal(exit, 0, `${title}: ${errors}`);
    assert.match(out, said[title], title);
  }
});

/** Posts to the snippet what the service posted to the test. */
async function receives(child) {
  const { headers, body } = JSON.parse(env("ACCESSION_DELIVERY"));
  const post = (content) => fetch(`http://127.0.0.1:${env("WEBHOOK_PORT")}/`, { method: "POST", headers, body: Buffer.from(content, "base64") });
  let first;
  while (!first) {
    assert.equal(child.exitCode, null, "the snippet ended");
    first = await post(body).catch(() => setTimeout(20)); // it does not listen yet
  }
  const again = await post(body);
  const forged = await post(Buffer.from("{}").toString("base64"));
  assert.deepEqual([first.status, again.status, forged.status], [202, 409, 400]);
}
