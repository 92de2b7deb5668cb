-- +goose Up
-- The seats of people's sessions in the portal. The cookie itself is kept nowhere: session_hash is its SHA-256.
CREATE TABLE portal_sessions (
	session_hash  TEXT COLLATE "C" NOT NULL,
	role          TEXT COLLATE "C" NOT NULL CHECK (role IN ('solution_company_upload', 'ai_reader', 'admin')),
	credential_id TEXT COLLATE "C" NOT NULL,
	org_id        TEXT COLLATE "C" NOT NULL, -- empty for the administrator
	admin_proof   TEXT NOT NULL DEFAULT '', -- of the admin token that signed in, keyed with the cookie
	created_at    BIGINT NOT NULL,
	expires_at    BIGINT NOT NULL,
	PRIMARY KEY (session_hash, role)
);
CREATE INDEX portal_sessions_age ON portal_sessions (expires_at);

SELECT keep_to_organization('portal_sessions');
