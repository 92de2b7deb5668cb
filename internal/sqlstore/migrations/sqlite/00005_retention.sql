-- +goose Up
-- Retention: days from an upload's creation until it is withdrawn by itself; 0: never.
ALTER TABLE organizations ADD COLUMN retention_days BIGINT NOT NULL DEFAULT 0 CHECK (retention_days BETWEEN 0 AND 36500);
CREATE INDEX uploads_retained ON uploads (org_id, created_at) WHERE status NOT IN ('WITHDRAWING', 'WITHDRAWN');

-- A withdrawal says which retention ended, and which backends have not confirmed yet.
ALTER TABLE withdrawals ADD COLUMN retained_until BIGINT NOT NULL DEFAULT 0;
ALTER TABLE withdrawals ADD COLUMN unconfirmed TEXT NOT NULL DEFAULT '';
ALTER TABLE withdrawals ADD COLUMN unconfirmed_since BIGINT NOT NULL DEFAULT 0;

-- The upload whose file name an answer shows: its withdrawal takes the name out.
ALTER TABLE idempotency_keys ADD COLUMN upload_id TEXT NOT NULL DEFAULT '';
UPDATE idempotency_keys SET upload_id = COALESCE(json_extract(answer_data, '$.upload_id'), '')
	WHERE operation IN ('createCustomerUpload', 'createCorrection') AND json_valid(answer_data);
CREATE INDEX idempotency_keys_upload ON idempotency_keys (upload_id) WHERE upload_id <> '';
