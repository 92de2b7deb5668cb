-- +goose Up
-- Times are Unix milliseconds; 0 and '' stand for "not yet". Sizes are bytes of plaintext.

CREATE TABLE organizations (
	org_id          TEXT PRIMARY KEY,
	allowance_bytes BIGINT NOT NULL CHECK (allowance_bytes >= 0),
	used_bytes      BIGINT NOT NULL DEFAULT 0 CHECK (used_bytes >= 0),
	reserved_bytes  BIGINT NOT NULL DEFAULT 0 CHECK (reserved_bytes >= 0),
	upload_count    BIGINT NOT NULL DEFAULT 0 CHECK (upload_count >= 0),
	record_position BIGINT NOT NULL DEFAULT 0,
	record_hash     TEXT NOT NULL,
	audit_position  BIGINT NOT NULL DEFAULT 0,
	audit_hash      TEXT NOT NULL,
	created_at      BIGINT NOT NULL
);

CREATE TABLE credentials (
	credential_id TEXT PRIMARY KEY,
	org_id        TEXT NOT NULL REFERENCES organizations,
	role          TEXT NOT NULL CHECK (role IN ('solution_company_upload', 'ai_reader')),
	scope         TEXT NOT NULL,
	key_id        TEXT NOT NULL,
	created_at    BIGINT NOT NULL,
	expires_at    BIGINT NOT NULL,
	revoked_at    BIGINT NOT NULL DEFAULT 0
);

CREATE TABLE uploads (
	upload_id       TEXT PRIMARY KEY,
	org_id          TEXT NOT NULL REFERENCES organizations,
	kind            TEXT NOT NULL CHECK (kind IN ('partner', 'customer', 'correction')),
	status          TEXT NOT NULL CHECK (status IN ('INITIATED', 'RECEIVING', 'PROCESSING', 'READY', 'REJECTED', 'FAILED', 'EXPIRED', 'WITHDRAWING', 'WITHDRAWN')),
	sequence        BIGINT NOT NULL CHECK (sequence >= 1),
	pipeline_id     TEXT NOT NULL,
	credential_id   TEXT NOT NULL,
	filename        TEXT NOT NULL,
	content_type    TEXT NOT NULL,
	size_bytes      BIGINT NOT NULL CHECK (size_bytes BETWEEN 1 AND 8589934592),
	visibility      TEXT NOT NULL,
	uploader_type   TEXT NOT NULL,
	consent         TEXT NOT NULL,
	notes           TEXT NOT NULL,
	material_type   TEXT NOT NULL,
	importance      TEXT NOT NULL CHECK (importance IN ('normal', 'important')),
	part_size_bytes BIGINT NOT NULL CHECK (part_size_bytes > 0),
	received_bytes  BIGINT NOT NULL DEFAULT 0 CHECK (received_bytes BETWEEN 0 AND size_bytes),
	next_part       BIGINT NOT NULL DEFAULT 1,
	digest_state    BLOB NOT NULL,
	sha256          TEXT NOT NULL DEFAULT '',
	original_upload_id TEXT NOT NULL DEFAULT '',
	reserved_bytes  BIGINT NOT NULL CHECK (reserved_bytes >= 0),
	used_bytes      BIGINT NOT NULL DEFAULT 0 CHECK (used_bytes >= 0),
	created_at      BIGINT NOT NULL,
	updated_at      BIGINT NOT NULL,
	expires_at      BIGINT NOT NULL,
	failure_gate    TEXT NOT NULL DEFAULT '',
	failure_code    TEXT NOT NULL DEFAULT '',
	failure_message TEXT NOT NULL DEFAULT '',
	-- The row is the queue: something is to be done from due_at on; whoever holds the lease does it until lease_until.
	due_at          BIGINT NOT NULL DEFAULT 0,
	lease           TEXT NOT NULL DEFAULT '',
	lease_until     BIGINT NOT NULL DEFAULT 0,
	attempt         BIGINT NOT NULL DEFAULT 0,
	CHECK (due_at = 0 OR status IN ('INITIATED', 'RECEIVING', 'PROCESSING', 'WITHDRAWING'))
);
CREATE INDEX uploads_corrections ON uploads (original_upload_id, created_at) WHERE original_upload_id <> '';
CREATE INDEX uploads_due ON uploads (due_at) WHERE due_at > 0;

CREATE TABLE parts (
	upload_id   TEXT NOT NULL REFERENCES uploads,
	part_number BIGINT NOT NULL CHECK (part_number >= 1),
	size_bytes  BIGINT NOT NULL CHECK (size_bytes >= 1),
	sha256      TEXT NOT NULL,
	object_key  TEXT NOT NULL,
	accepted_at BIGINT NOT NULL,
	PRIMARY KEY (upload_id, part_number)
);

CREATE TABLE gates (
	upload_id   TEXT NOT NULL REFERENCES uploads,
	position    BIGINT NOT NULL,
	name        TEXT NOT NULL,
	state       TEXT NOT NULL CHECK (state IN ('pending', 'running', 'passed', 'rejected', 'failed')),
	started_at  BIGINT NOT NULL DEFAULT 0,
	finished_at BIGINT NOT NULL DEFAULT 0,
	detail      TEXT NOT NULL DEFAULT '{}',
	PRIMARY KEY (upload_id, position)
);

CREATE TABLE artifacts (
	upload_id  TEXT NOT NULL REFERENCES uploads,
	name       TEXT NOT NULL CHECK (name IN ('text', 'summary', 'context')),
	object_key TEXT NOT NULL,
	size_bytes BIGINT NOT NULL,
	sha256     TEXT NOT NULL,
	PRIMARY KEY (upload_id, name)
);

CREATE TABLE external_references (
	upload_id     TEXT NOT NULL REFERENCES uploads,
	position      BIGINT NOT NULL,
	review_id     TEXT NOT NULL,
	source_url    TEXT NOT NULL,
	reviewer      TEXT NOT NULL,
	notes         TEXT NOT NULL,
	credential_id TEXT NOT NULL,
	attached_at   BIGINT NOT NULL,
	PRIMARY KEY (upload_id, position)
);

CREATE TABLE status_events (
	event_id      TEXT PRIMARY KEY,
	upload_id     TEXT NOT NULL REFERENCES uploads,
	org_id        TEXT NOT NULL,
	sequence      BIGINT NOT NULL CHECK (sequence >= 1),
	from_status   TEXT NOT NULL,
	cause         TEXT NOT NULL,
	status        TEXT NOT NULL,
	stage         TEXT NOT NULL,
	gate_state    TEXT NOT NULL,
	occurred_at   BIGINT NOT NULL,
	credential_id TEXT NOT NULL,
	request_id    TEXT NOT NULL,
	trace_id      TEXT NOT NULL,
	UNIQUE (upload_id, sequence),
	-- The rows of the lifecycle table (custody.Transitions); a test keeps both equal.
	CHECK (from_status || ' ' || cause || ' ' || status IN (
		' reserved INITIATED',
		'INITIATED part_accepted RECEIVING',
		'RECEIVING completed PROCESSING',
		'PROCESSING gate_changed PROCESSING',
		'PROCESSING gates_passed READY',
		'PROCESSING content_rejected REJECTED',
		'PROCESSING gate_exhausted FAILED',
		'FAILED resumed PROCESSING',
		'INITIATED reservation_lapsed EXPIRED',
		'RECEIVING reservation_lapsed EXPIRED',
		'INITIATED withdrawal_accepted WITHDRAWING',
		'RECEIVING withdrawal_accepted WITHDRAWING',
		'PROCESSING withdrawal_accepted WITHDRAWING',
		'READY withdrawal_accepted WITHDRAWING',
		'REJECTED withdrawal_accepted WITHDRAWING',
		'FAILED withdrawal_accepted WITHDRAWING',
		'EXPIRED withdrawal_accepted WITHDRAWING',
		'WITHDRAWING deletion_confirmed WITHDRAWN'))
);

CREATE TABLE audit_lines (
	org_id        TEXT NOT NULL REFERENCES organizations,
	position      BIGINT NOT NULL,
	audit_id      TEXT NOT NULL UNIQUE,
	at            BIGINT NOT NULL,
	action        TEXT NOT NULL,
	credential_id TEXT NOT NULL,
	upload_id     TEXT NOT NULL,
	status        TEXT NOT NULL,
	detail        TEXT NOT NULL,
	request_id    TEXT NOT NULL,
	trace_id      TEXT NOT NULL,
	previous_hash TEXT NOT NULL,
	line_hash     TEXT NOT NULL,
	PRIMARY KEY (org_id, position)
);

CREATE TABLE request_records (
	org_id         TEXT NOT NULL REFERENCES organizations,
	position       BIGINT NOT NULL,
	record_id      TEXT NOT NULL UNIQUE,
	request_id     TEXT NOT NULL,
	trace_id       TEXT NOT NULL,
	upload_id      TEXT NOT NULL,
	credential_id  TEXT NOT NULL,
	surface        TEXT NOT NULL CHECK (surface IN ('rest', 'mcp')),
	outcome        TEXT NOT NULL,
	context_sha256 TEXT NOT NULL,
	bytes          BIGINT NOT NULL,
	served_at      BIGINT NOT NULL,
	previous_hash  TEXT NOT NULL,
	record_hash    TEXT NOT NULL,
	PRIMARY KEY (org_id, position)
);
CREATE INDEX request_records_upload ON request_records (org_id, upload_id, position);
CREATE INDEX request_records_request ON request_records (org_id, request_id, position);

CREATE TABLE withdrawals (
	upload_id     TEXT PRIMARY KEY REFERENCES uploads,
	org_id        TEXT NOT NULL,
	credential_id TEXT NOT NULL,
	reason        TEXT NOT NULL,
	requested_at  BIGINT NOT NULL,
	attempts      BIGINT NOT NULL DEFAULT 0
);

-- A row exists only where every backend confirmed.
CREATE TABLE receipts (
	withdrawal_receipt_id TEXT PRIMARY KEY,
	upload_id             TEXT NOT NULL UNIQUE REFERENCES uploads,
	org_id                TEXT NOT NULL,
	credential_id         TEXT NOT NULL,
	reason                TEXT NOT NULL,
	requested_at          BIGINT NOT NULL,
	withdrawn_at          BIGINT NOT NULL,
	quota_bytes           BIGINT NOT NULL,
	sha256                TEXT NOT NULL,
	deletions             TEXT NOT NULL
);

CREATE TABLE idempotency_keys (
	credential_id   TEXT NOT NULL,
	operation       TEXT NOT NULL,
	idempotency_key TEXT NOT NULL,
	request_hash    TEXT NOT NULL,
	answer_status   BIGINT NOT NULL,
	answer_data     TEXT NOT NULL,
	created_at      BIGINT NOT NULL,
	PRIMARY KEY (credential_id, operation, idempotency_key)
);
CREATE INDEX idempotency_keys_age ON idempotency_keys (created_at);

-- What is evidence is only ever added.
-- +goose StatementBegin
CREATE TRIGGER status_events_keep BEFORE UPDATE ON status_events BEGIN SELECT RAISE(ABORT, 'status events never change'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER status_events_stay BEFORE DELETE ON status_events BEGIN SELECT RAISE(ABORT, 'status events are never deleted'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER request_records_keep BEFORE UPDATE ON request_records BEGIN SELECT RAISE(ABORT, 'request records never change'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER request_records_stay BEFORE DELETE ON request_records BEGIN SELECT RAISE(ABORT, 'request records are never deleted'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER audit_lines_keep BEFORE UPDATE ON audit_lines BEGIN SELECT RAISE(ABORT, 'audit lines never change'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER audit_lines_stay BEFORE DELETE ON audit_lines BEGIN SELECT RAISE(ABORT, 'audit lines are never deleted'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER receipts_keep BEFORE UPDATE ON receipts BEGIN SELECT RAISE(ABORT, 'receipts never change'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER receipts_stay BEFORE DELETE ON receipts BEGIN SELECT RAISE(ABORT, 'receipts are never deleted'); END;
-- +goose StatementEnd
