-- +goose Up
-- Where an organization wants its events posted. Its secrets lie in the key store; here are only their names.
CREATE TABLE webhook_endpoints (
	org_id             TEXT COLLATE "C" PRIMARY KEY REFERENCES organizations,
	endpoint_id        TEXT NOT NULL UNIQUE,
	url                TEXT NOT NULL,
	state              TEXT NOT NULL CHECK (state IN ('active', 'disabled')),
	secret_id          TEXT NOT NULL,
	previous_secret_id TEXT NOT NULL DEFAULT '',
	overlap_until      BIGINT NOT NULL DEFAULT 0, -- the previous secret signs too until then
	created_at         BIGINT NOT NULL,
	updated_at         BIGINT NOT NULL,
	-- The circuit: failed attempts in a row, over all replicas, and from when on the next may be made.
	failures           BIGINT NOT NULL DEFAULT 0,
	retry_at           BIGINT NOT NULL DEFAULT 0
);

-- The outbox: a row is written in the transaction of the event it tells of. The row is the queue, as in uploads.
CREATE TABLE webhook_deliveries (
	event_id    TEXT COLLATE "C" PRIMARY KEY,
	org_id      TEXT COLLATE "C" NOT NULL REFERENCES webhook_endpoints,
	upload_id   TEXT COLLATE "C" NOT NULL REFERENCES uploads,
	position    BIGINT NOT NULL, -- in the order of the upload: twice the sequence, plus one for what goes with that change
	kind        TEXT NOT NULL CHECK (kind IN ('uploadStatusChanged', 'contextRecalled')),
	payload     TEXT NOT NULL DEFAULT '', -- JSON; empty where the status event says it all
	state       TEXT NOT NULL CHECK (state IN ('pending', 'delivered', 'dead')),
	queued_at   BIGINT NOT NULL,
	due_at      BIGINT NOT NULL,
	lease       TEXT NOT NULL DEFAULT '',
	lease_until BIGINT NOT NULL DEFAULT 0,
	attempt     BIGINT NOT NULL DEFAULT 0, -- since it was queued
	attempts    BIGINT NOT NULL DEFAULT 0, -- ever
	ended_at    BIGINT NOT NULL DEFAULT 0
);
CREATE INDEX webhook_deliveries_due ON webhook_deliveries (org_id, due_at) WHERE state = 'pending';
CREATE INDEX webhook_deliveries_order ON webhook_deliveries (org_id, upload_id, position) WHERE state = 'pending';
CREATE INDEX webhook_deliveries_log ON webhook_deliveries (org_id, state, event_id);
CREATE INDEX webhook_deliveries_ended ON webhook_deliveries (state, ended_at) WHERE state <> 'pending';

-- What became of each attempt; never what was sent or answered.
CREATE TABLE webhook_attempts (
	event_id   TEXT COLLATE "C" NOT NULL REFERENCES webhook_deliveries,
	attempt    BIGINT NOT NULL,
	org_id     TEXT COLLATE "C" NOT NULL,
	at         BIGINT NOT NULL,
	outcome    TEXT NOT NULL,
	status     BIGINT NOT NULL, -- of the answer; 0 where there was none
	latency_ms BIGINT NOT NULL,
	PRIMARY KEY (event_id, attempt)
);

SELECT keep_to_organization('webhook_endpoints');
SELECT keep_to_organization('webhook_deliveries');
SELECT keep_to_organization('webhook_attempts');
