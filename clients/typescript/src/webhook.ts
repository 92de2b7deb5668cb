import { hmac } from "@noble/hashes/hmac";
import { sha256 } from "@noble/hashes/sha2";
import { concatBytes, utf8ToBytes } from "@noble/hashes/utils";
import type { ContextRecalled, StatusChange } from "./wire.js";

/** A delivery that is not from the service, or not from now. Answer 400. */
export class SignatureError extends Error {
  override readonly name = "SignatureError";
}

/** What a webhook posts. A status change has no event; a kind that this version does not know has nothing else to rely on. */
export type WebhookEvent = (StatusChange & { event?: undefined }) | ContextRecalled | { event: "webhookTest"; event_id: string };

/**
 * Verifies a delivery (Standard Webhooks 1.0) and returns its event. body is exactly what was received, before any JSON parsing.
 * secrets are whsec_…, two while a secret rotates. Throws a SignatureError where no secret signed it, or it is more than toleranceSeconds
 * (300 by default) from now.
 *
 * Deliveries come at least once: deduplicate by event_id, ignore a sequence at or below the last one of its upload, and read Client.status where
 * one is missing.
 */
export function verifyWebhook(
  body: string | Uint8Array,
  headers: Headers | Record<string, string | string[] | undefined>,
  secrets: string | readonly string[],
  options: { toleranceSeconds?: number; now?: Date } = {},
): WebhookEvent {
  const header = (name: string) => {
    const value = headers instanceof Headers ? headers.get(name) : headers[name];
    return (Array.isArray(value) ? value[0] : value) ?? "";
  };
  const [id, timestamp] = [header("webhook-id"), header("webhook-timestamp")];
  if (!id || !/^\d{1,12}$/.test(timestamp)) throw new SignatureError("webhook-id or webhook-timestamp is missing");
  const off = Math.abs((options.now ?? new Date()).getTime() / 1000 - Number(timestamp));
  if (off > (options.toleranceSeconds ?? 300)) throw new SignatureError("the delivery is too old, or from the future");

  const content = typeof body === "string" ? utf8ToBytes(body) : body;
  const signed = concatBytes(utf8ToBytes(`${id}.${timestamp}.`), content);
  const sent = header("webhook-signature").split(" ").filter((one) => one.startsWith("v1,"));
  let good = false;
  for (const secret of typeof secrets === "string" ? [secrets] : secrets) {
    const want = "v1," + btoa(String.fromCharCode(...hmac(sha256, keyOf(secret), signed)));
    for (const one of sent) good = equal(one, want) || good;
  }
  if (!good) throw new SignatureError("no secret of this receiver signed the delivery");

  const event = JSON.parse(typeof body === "string" ? body : new TextDecoder().decode(body)) as WebhookEvent;
  if (event.event_id !== id) throw new SignatureError("the event is not the one that webhook-id names");
  return event;
}

function keyOf(secret: string): Uint8Array {
  let key = "";
  try {
    key = atob(secret.replace(/^whsec_/, ""));
  } catch {
    // said below, without the secret
  }
  if (key.length < 24) throw new TypeError("a webhook secret is not whsec_ and base64"); // an empty key would sign for anybody
  return Uint8Array.from(key, (char) => char.charCodeAt(0));
}

/** Takes as long for every text of the same length. */
function equal(a: string, b: string): boolean {
  let difference = a.length ^ b.length;
  for (let i = 0; i < b.length; i++) difference |= a.charCodeAt(i) ^ b.charCodeAt(i);
  return difference === 0;
}
