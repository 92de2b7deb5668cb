-- +goose Up
-- Access tokens revoked before their end; a row may go once its token has expired anyway.
CREATE TABLE revoked_tokens (
	token_id      TEXT PRIMARY KEY,
	credential_id TEXT NOT NULL REFERENCES credentials,
	expires_at    BIGINT NOT NULL
);
CREATE INDEX revoked_tokens_age ON revoked_tokens (expires_at);

CREATE INDEX credentials_organization ON credentials (org_id, credential_id);
CREATE INDEX credentials_key ON credentials (key_id);
