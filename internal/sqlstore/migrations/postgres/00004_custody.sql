-- +goose Up
-- Times are Unix milliseconds; 0 and '' stand for "not yet". Sizes are bytes of plaintext. Ids are compared byte by byte, as Go does.
-- The schema is that of SQLite after its first four migrations.

CREATE TABLE organizations (
	org_id          TEXT COLLATE "C" PRIMARY KEY,
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
	credential_id TEXT COLLATE "C" PRIMARY KEY,
	org_id        TEXT COLLATE "C" NOT NULL REFERENCES organizations,
	role          TEXT NOT NULL CHECK (role IN ('solution_company_upload', 'ai_reader')),
	scope         TEXT NOT NULL,
	key_id        TEXT COLLATE "C" NOT NULL,
	created_at    BIGINT NOT NULL,
	expires_at    BIGINT NOT NULL,
	revoked_at    BIGINT NOT NULL DEFAULT 0
);
CREATE INDEX credentials_organization ON credentials (org_id, credential_id);
CREATE INDEX credentials_key ON credentials (key_id);

CREATE TABLE revoked_tokens (
	token_id      TEXT COLLATE "C" PRIMARY KEY,
	credential_id TEXT COLLATE "C" NOT NULL REFERENCES credentials,
	expires_at    BIGINT NOT NULL
);
CREATE INDEX revoked_tokens_age ON revoked_tokens (expires_at);

CREATE TABLE uploads (
	upload_id       TEXT COLLATE "C" PRIMARY KEY,
	org_id          TEXT COLLATE "C" NOT NULL REFERENCES organizations,
	kind            TEXT NOT NULL CHECK (kind IN ('partner', 'customer', 'correction')),
	status          TEXT NOT NULL CHECK (status IN ('INITIATED', 'RECEIVING', 'PROCESSING', 'READY', 'REJECTED', 'FAILED', 'EXPIRED', 'WITHDRAWING', 'WITHDRAWN')),
	sequence        BIGINT NOT NULL CHECK (sequence >= 1),
	pipeline_id     TEXT NOT NULL,
	credential_id   TEXT COLLATE "C" NOT NULL,
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
	digest_state    BYTEA NOT NULL,
	sha256          TEXT NOT NULL DEFAULT '',
	original_upload_id TEXT COLLATE "C" NOT NULL DEFAULT '',
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
	scanned_with    TEXT COLLATE "C" NOT NULL DEFAULT '',
	rescanned_at    BIGINT NOT NULL DEFAULT 0,
	CHECK (due_at = 0 OR status IN ('INITIATED', 'RECEIVING', 'PROCESSING', 'READY', 'WITHDRAWING'))
);
CREATE INDEX uploads_corrections ON uploads (original_upload_id, created_at) WHERE original_upload_id <> '';
-- By status first: many waiting re-scans must not slow down the gates' lane.
CREATE INDEX uploads_due ON uploads (status, due_at) WHERE due_at > 0;
CREATE INDEX uploads_scanned ON uploads (scanned_with, upload_id) WHERE status = 'READY' AND due_at = 0;
CREATE INDEX uploads_rescanned ON uploads (rescanned_at) WHERE rescanned_at > 0;

CREATE TABLE parts (
	upload_id   TEXT COLLATE "C" NOT NULL REFERENCES uploads,
	part_number BIGINT NOT NULL CHECK (part_number >= 1),
	size_bytes  BIGINT NOT NULL CHECK (size_bytes >= 1),
	sha256      TEXT NOT NULL,
	object_key  TEXT COLLATE "C" NOT NULL,
	accepted_at BIGINT NOT NULL,
	PRIMARY KEY (upload_id, part_number)
);

CREATE TABLE gates (
	upload_id   TEXT COLLATE "C" NOT NULL REFERENCES uploads,
	position    BIGINT NOT NULL,
	name        TEXT NOT NULL,
	state       TEXT NOT NULL CHECK (state IN ('pending', 'running', 'passed', 'rejected', 'failed')),
	started_at  BIGINT NOT NULL DEFAULT 0,
	finished_at BIGINT NOT NULL DEFAULT 0,
	detail      TEXT NOT NULL DEFAULT '{}',
	PRIMARY KEY (upload_id, position)
);

CREATE TABLE artifacts (
	upload_id  TEXT COLLATE "C" NOT NULL REFERENCES uploads,
	name       TEXT NOT NULL CHECK (name IN ('text', 'summary', 'context')),
	object_key TEXT COLLATE "C" NOT NULL,
	size_bytes BIGINT NOT NULL,
	sha256     TEXT NOT NULL,
	PRIMARY KEY (upload_id, name)
);

CREATE TABLE external_references (
	upload_id     TEXT COLLATE "C" NOT NULL REFERENCES uploads,
	position      BIGINT NOT NULL,
	review_id     TEXT NOT NULL,
	source_url    TEXT NOT NULL,
	reviewer      TEXT NOT NULL,
	notes         TEXT NOT NULL,
	credential_id TEXT COLLATE "C" NOT NULL,
	attached_at   BIGINT NOT NULL,
	PRIMARY KEY (upload_id, position)
);

CREATE TABLE status_events (
	event_id      TEXT COLLATE "C" PRIMARY KEY,
	upload_id     TEXT COLLATE "C" NOT NULL REFERENCES uploads,
	org_id        TEXT COLLATE "C" NOT NULL,
	sequence      BIGINT NOT NULL CHECK (sequence >= 1),
	from_status   TEXT NOT NULL,
	cause         TEXT NOT NULL,
	status        TEXT NOT NULL,
	stage         TEXT NOT NULL,
	gate_state    TEXT NOT NULL,
	occurred_at   BIGINT NOT NULL,
	credential_id TEXT COLLATE "C" NOT NULL,
	request_id    TEXT COLLATE "C" NOT NULL,
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

CREATE TABLE audit_lines (
	org_id        TEXT COLLATE "C" NOT NULL REFERENCES organizations,
	position      BIGINT NOT NULL,
	audit_id      TEXT COLLATE "C" NOT NULL UNIQUE,
	at            BIGINT NOT NULL,
	action        TEXT NOT NULL,
	credential_id TEXT COLLATE "C" NOT NULL,
	upload_id     TEXT COLLATE "C" NOT NULL,
	status        TEXT NOT NULL,
	detail        TEXT NOT NULL,
	request_id    TEXT COLLATE "C" NOT NULL,
	trace_id      TEXT NOT NULL,
	previous_hash TEXT NOT NULL,
	line_hash     TEXT NOT NULL,
	PRIMARY KEY (org_id, position)
);

CREATE TABLE request_records (
	org_id         TEXT COLLATE "C" NOT NULL REFERENCES organizations,
	position       BIGINT NOT NULL,
	record_id      TEXT COLLATE "C" NOT NULL UNIQUE,
	request_id     TEXT COLLATE "C" NOT NULL,
	trace_id       TEXT NOT NULL,
	upload_id      TEXT COLLATE "C" NOT NULL,
	credential_id  TEXT COLLATE "C" NOT NULL,
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
	upload_id     TEXT COLLATE "C" PRIMARY KEY REFERENCES uploads,
	org_id        TEXT COLLATE "C" NOT NULL,
	credential_id TEXT COLLATE "C" NOT NULL,
	reason        TEXT NOT NULL,
	requested_at  BIGINT NOT NULL,
	attempts      BIGINT NOT NULL DEFAULT 0
);

CREATE TABLE receipts (
	withdrawal_receipt_id TEXT COLLATE "C" PRIMARY KEY,
	upload_id             TEXT COLLATE "C" NOT NULL UNIQUE REFERENCES uploads,
	org_id                TEXT COLLATE "C" NOT NULL,
	credential_id         TEXT COLLATE "C" NOT NULL,
	reason                TEXT NOT NULL,
	requested_at          BIGINT NOT NULL,
	withdrawn_at          BIGINT NOT NULL,
	quota_bytes           BIGINT NOT NULL,
	sha256                TEXT NOT NULL,
	deletions             TEXT NOT NULL,
	signed                TEXT NOT NULL DEFAULT ''
);

CREATE TABLE withdrawal_objects (
	upload_id  TEXT COLLATE "C" NOT NULL REFERENCES uploads,
	backend    TEXT COLLATE "C" NOT NULL,
	object_key TEXT COLLATE "C" NOT NULL,
	size_bytes BIGINT NOT NULL,
	PRIMARY KEY (upload_id, backend, object_key)
);

CREATE TABLE idempotency_keys (
	credential_id   TEXT COLLATE "C" NOT NULL,
	operation       TEXT NOT NULL,
	idempotency_key TEXT COLLATE "C" NOT NULL,
	request_hash    TEXT NOT NULL,
	answer_status   BIGINT NOT NULL,
	answer_data     TEXT NOT NULL,
	created_at      BIGINT NOT NULL,
	PRIMARY KEY (credential_id, operation, idempotency_key)
);
CREATE INDEX idempotency_keys_age ON idempotency_keys (created_at);

-- What is evidence is only ever added.
-- +goose StatementBegin
CREATE FUNCTION keep_evidence() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION '% %', replace(TG_TABLE_NAME, '_', ' '),
	CASE TG_OP WHEN 'UPDATE' THEN 'never change' ELSE 'are never deleted' END; END $$;
-- +goose StatementEnd
CREATE TRIGGER status_events_keep BEFORE UPDATE ON status_events FOR EACH ROW EXECUTE FUNCTION keep_evidence();
CREATE TRIGGER status_events_stay BEFORE DELETE ON status_events FOR EACH ROW EXECUTE FUNCTION keep_evidence();
CREATE TRIGGER status_events_whole BEFORE TRUNCATE ON status_events FOR EACH STATEMENT EXECUTE FUNCTION keep_evidence();
CREATE TRIGGER request_records_keep BEFORE UPDATE ON request_records FOR EACH ROW EXECUTE FUNCTION keep_evidence();
CREATE TRIGGER request_records_stay BEFORE DELETE ON request_records FOR EACH ROW EXECUTE FUNCTION keep_evidence();
CREATE TRIGGER request_records_whole BEFORE TRUNCATE ON request_records FOR EACH STATEMENT EXECUTE FUNCTION keep_evidence();
CREATE TRIGGER audit_lines_keep BEFORE UPDATE ON audit_lines FOR EACH ROW EXECUTE FUNCTION keep_evidence();
CREATE TRIGGER audit_lines_stay BEFORE DELETE ON audit_lines FOR EACH ROW EXECUTE FUNCTION keep_evidence();
CREATE TRIGGER audit_lines_whole BEFORE TRUNCATE ON audit_lines FOR EACH STATEMENT EXECUTE FUNCTION keep_evidence();
CREATE TRIGGER receipts_keep BEFORE UPDATE ON receipts FOR EACH ROW EXECUTE FUNCTION keep_evidence();
CREATE TRIGGER receipts_stay BEFORE DELETE ON receipts FOR EACH ROW EXECUTE FUNCTION keep_evidence();
CREATE TRIGGER receipts_whole BEFORE TRUNCATE ON receipts FOR EACH STATEMENT EXECUTE FUNCTION keep_evidence();

-- Replicas hear at the commit that an upload moved on: there may be work, or somebody waits for it.
-- +goose StatementBegin
CREATE FUNCTION notify_replicas() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_notify('accession', ''); RETURN NULL; END $$;
-- +goose StatementEnd
CREATE TRIGGER status_events_notify AFTER INSERT ON status_events FOR EACH STATEMENT EXECUTE FUNCTION notify_replicas();

-- Row-level security, also for the tables' owner. Each transaction says in accession.organization what it may see: '=' and an
-- org_id, or '*' for all; where it says nothing it sees nothing. (custody.OrganizationScope.) Later migrations call these
-- two for each new table: one with an org_id, or one that belongs to an upload.
-- +goose StatementBegin
CREATE FUNCTION keep_to_organization(kept REGCLASS, belongs TEXT DEFAULT
	'org_id = (SELECT CASE WHEN left(scope, 1) = ''='' THEN substr(scope, 2) END FROM current_setting(''accession.organization'', true) AS scope)')
	RETURNS VOID LANGUAGE plpgsql AS $$ BEGIN
	EXECUTE format('ALTER TABLE %s ENABLE ROW LEVEL SECURITY', kept);
	EXECUTE format('ALTER TABLE %s FORCE ROW LEVEL SECURITY', kept);
	EXECUTE format('CREATE POLICY organizations_apart ON %s USING ((SELECT current_setting(''accession.organization'', true)) = ''*'' OR %s)', kept, belongs);
END $$;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE FUNCTION keep_to_upload(kept REGCLASS) RETURNS VOID LANGUAGE plpgsql AS $$ BEGIN
	PERFORM keep_to_organization(kept, format('EXISTS (SELECT 1 FROM uploads WHERE uploads.upload_id = %s.upload_id)', kept));
END $$;
-- +goose StatementEnd
SELECT keep_to_organization('organizations');
SELECT keep_to_organization('credentials');
SELECT keep_to_organization('revoked_tokens', 'EXISTS (SELECT 1 FROM credentials WHERE credentials.credential_id = revoked_tokens.credential_id)');
SELECT keep_to_organization('idempotency_keys', 'EXISTS (SELECT 1 FROM credentials WHERE credentials.credential_id = idempotency_keys.credential_id)');
SELECT keep_to_organization('uploads');
SELECT keep_to_upload('parts');
SELECT keep_to_upload('gates');
SELECT keep_to_upload('artifacts');
SELECT keep_to_upload('external_references');
SELECT keep_to_upload('withdrawal_objects');
SELECT keep_to_organization('status_events');
SELECT keep_to_organization('audit_lines');
SELECT keep_to_organization('request_records');
SELECT keep_to_organization('withdrawals');
SELECT keep_to_organization('receipts');
