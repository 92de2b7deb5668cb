-- +goose Up
-- What an operator searches the audit logs by, newest first, over all organizations.
CREATE INDEX audit_lines_at ON audit_lines (at, audit_id);
CREATE INDEX audit_lines_organization ON audit_lines (org_id, at, audit_id);
CREATE INDEX audit_lines_upload ON audit_lines (upload_id, at, audit_id) WHERE upload_id <> '';
CREATE INDEX audit_lines_credential ON audit_lines (credential_id, at, audit_id);
CREATE INDEX audit_lines_action ON audit_lines (action, at, audit_id);

-- Uploads that wait to be resumed.
CREATE INDEX uploads_failed ON uploads (updated_at, upload_id) WHERE status = 'FAILED';
