// Reads deliveries on standard input and counts those that each verifier takes; of forged ones it must take none.
import { Webhook as Standard } from "standardwebhooks";
import { Webhook as Svix } from "svix";

const chunks = [];
for await (const chunk of process.stdin) chunks.push(chunk);
const taken = { StandardWebhooks: 0, Svix: 0, Forged: 0 };
const verifiers = { StandardWebhooks: Standard, Svix };
for (const d of JSON.parse(Buffer.concat(chunks).toString("utf8"))) {
  const body = Buffer.from(d.Body, "base64").toString("utf8");
  for (const [name, Verifier] of Object.entries(verifiers)) {
    const prefix = name === "Svix" ? "svix" : "webhook";
    const headers = { [prefix + "-id"]: d.ID, [prefix + "-timestamp"]: d.Timestamp, [prefix + "-signature"]: d.Signature };
    const verifier = new Verifier(d.Secret);
    verifier.verify(body, headers); // throws where it does not take it
    taken[name]++;
    try {
      verifier.verify(body.replace("READY", "REJECTED") + " ", headers);
      taken.Forged++;
    } catch {
      // as it must
    }
  }
}
console.log(JSON.stringify(taken));
