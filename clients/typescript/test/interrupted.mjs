// One process of two that share an upload: the first dies as soon as STOP_AT bytes are accepted, the second is given no more than the
// upload's id and the file. Prints what it did, as JSON.
import { writeFile } from "node:fs/promises";
import { Client } from "@accession/client";
import { openFile } from "@accession/client/file";
import { consent, env } from "./setting.mjs";

const client = new Client({ baseURL: env("ACCESSION_URL"), org: env("ACCESSION_ORG"), credential: { apiKey: env("ACCESSION_TOKEN") } });
const file = await openFile(env("FILE"));
const done = { verify: 0, send: 0, complete: 0 };
const onProgress = ({ phase, bytes }) => {
  done[phase]++;
  if (bytes >= Number(process.env.STOP_AT ?? Infinity)) process.exit(7);
};
const id = process.env.UPLOAD_ID;
const status = id
  ? await client.resume(id, file, { onProgress })
  : await client.upload(file, { filename: "log.txt", content_type: "text/plain", consent }, { onProgress, onReserved: ({ upload_id }) => writeFile(env("ID_FILE"), upload_id) });
await file.close();
console.log(JSON.stringify({ ...done, status: status.status, failure: status.failure }));
