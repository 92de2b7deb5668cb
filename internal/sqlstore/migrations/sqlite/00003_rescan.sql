-- +goose Up
-- Re-scans: a READY upload may wait for work, and a re-scan may refuse it. Both are CHECKs, which only a new table can have.

-- uploads: other tables refer to it, so its rows leave and come back within this transaction.
PRAGMA defer_foreign_keys = ON;
CREATE TABLE uploads_before AS SELECT * FROM uploads;
DROP TABLE uploads;
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
	-- What last found the content clean, and when that was a re-scan.
	scanned_with    TEXT NOT NULL DEFAULT '',
	rescanned_at    BIGINT NOT NULL DEFAULT 0,
	CHECK (due_at = 0 OR status IN ('INITIATED', 'RECEIVING', 'PROCESSING', 'READY', 'WITHDRAWING'))
);
INSERT INTO uploads (upload_id, org_id, kind, status, sequence, pipeline_id, credential_id, filename, content_type, size_bytes,
	visibility, uploader_type, consent, notes, material_type, importance, part_size_bytes, received_bytes,
	next_part, digest_state, sha256, original_upload_id, reserved_bytes, used_bytes, created_at, updated_at,
	expires_at, failure_gate, failure_code, failure_message, due_at, lease, lease_until, attempt)
	SELECT upload_id, org_id, kind, status, sequence, pipeline_id, credential_id, filename, content_type, size_bytes,
	visibility, uploader_type, consent, notes, material_type, importance, part_size_bytes, received_bytes,
	next_part, digest_state, sha256, original_upload_id, reserved_bytes, used_bytes, created_at, updated_at,
	expires_at, failure_gate, failure_code, failure_message, due_at, lease, lease_until, attempt
	FROM uploads_before;
DROP TABLE uploads_before;
CREATE INDEX uploads_corrections ON uploads (original_upload_id, created_at) WHERE original_upload_id <> '';
-- By status first: many waiting re-scans must not slow down the gates' lane.
CREATE INDEX uploads_due ON uploads (status, due_at) WHERE due_at > 0;
CREATE INDEX uploads_scanned ON uploads (scanned_with, upload_id) WHERE status = 'READY' AND due_at = 0;
CREATE INDEX uploads_rescanned ON uploads (rescanned_at) WHERE rescanned_at > 0;

CREATE TABLE status_events_after (
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
		'READY rescan_refused REJECTED',
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
INSERT INTO status_events_after (event_id, upload_id, org_id, sequence, from_status, cause, status, stage, gate_state, occurred_at,
	credential_id, request_id, trace_id)
	SELECT event_id, upload_id, org_id, sequence, from_status, cause, status, stage, gate_state, occurred_at,
	credential_id, request_id, trace_id
	FROM status_events;
DROP TABLE status_events;
ALTER TABLE status_events_after RENAME TO status_events;
-- +goose StatementBegin
CREATE TRIGGER status_events_keep BEFORE UPDATE ON status_events BEGIN SELECT RAISE(ABORT, 'status events never change'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER status_events_stay BEFORE DELETE ON status_events BEGIN SELECT RAISE(ABORT, 'status events are never deleted'); END;
-- +goose StatementEnd
