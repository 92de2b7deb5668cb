/** A variable of the environment that the tests cannot do without. */
export function env(name) {
  const value = process.env[name];
  if (!value) throw new Error(`${name} is not set: these tests are run by go test ./e2e -run TestTypeScriptClient`);
  return value;
}

export const consent = {
  accepted: true,
  beta_agreement_version: "2026-11",
  ai_readable_use_consent_version: "2026-11",
  text_hash_sha256: "0123456789abcdef".repeat(4),
  consenting_user_id: "user-7",
  consenting_user_email: "ada@harbour.example",
  accepted_at: "2026-11-01T10:00:00Z",
};
