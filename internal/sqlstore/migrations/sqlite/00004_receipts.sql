-- +goose Up
-- Receipts are signed documents, and say what all attempts of a withdrawal deleted together.
ALTER TABLE receipts ADD COLUMN signed TEXT NOT NULL DEFAULT '';

-- What a withdrawal found before it deleted it; gone once its receipt says how much there was.
CREATE TABLE withdrawal_objects (
	upload_id  TEXT NOT NULL REFERENCES uploads,
	backend    TEXT NOT NULL,
	object_key TEXT NOT NULL,
	size_bytes BIGINT NOT NULL,
	PRIMARY KEY (upload_id, backend, object_key)
);
