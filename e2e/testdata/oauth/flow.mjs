// Takes an OAuth client that others wrote through what an integrator does with it, and prints what it saw: one line of JSON
// while the credential is good, and one more when standard input ends, by when the credential is revoked.
import { webcrypto } from 'node:crypto';

globalThis.crypto ??= webcrypto; // Node 18 has it, though not as a global

const base = process.env.ISSUER;
const api = new URL(`${base}/api/v1/organizations/${process.env.ORG}/quota`);
const identity = new URL(`${base}/oauth/identity`);

export const settings = {
  issuer: new URL(base),
  resource: new URL(base),
  id: process.env.CLIENT_ID,
  secret: process.env.CLIENT_SECRET,
  post: process.env.AUTH_METHOD === 'client_secret_post',
  scope: 'metadata_read',
};

const say = (seen) => process.stdout.write(`${JSON.stringify(seen)}\n`);
const read = async (response) => ({ status: response.status, body: await response.json() });

// refusal runs what must fail, and tells how the client understood it.
async function refusal(attempt) {
  try {
    await attempt();
  } catch (e) {
    return { name: e.name, error: e.error, status: e.status ?? e.response?.status, challenge: e.cause?.[0]?.scheme };
  }
  return { name: 'none' };
}

// flow wants of client: discover() → metadata, token(), call(token, url) → Response, introspect(token), revoke(token).
export async function flow(client) {
  const metadata = await client.discover();
  const token = await client.token();
  const second = await client.token();
  await client.revoke(second.access_token);
  say({
    issuer: metadata.issuer,
    token,
    identity: await read(await client.call(token.access_token, identity)),
    quota: await read(await client.call(token.access_token, api)),
    introspection: await client.introspect(token.access_token),
    afterwards: await client.introspect(second.access_token),
    claims: await client.claims?.(token.access_token),
    secondRefused: await refusal(() => client.call(second.access_token, identity)),
  });
  for await (const _ of process.stdin);
  say({
    token: await refusal(() => client.token()),
    identity: await refusal(() => client.call(token.access_token, identity)),
    quota: await refusal(() => client.call(token.access_token, api)),
  });
}
