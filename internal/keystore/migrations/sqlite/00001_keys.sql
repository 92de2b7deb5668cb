-- +goose Up
CREATE TABLE data_keys (
	upload_id  TEXT PRIMARY KEY,
	wrapped    BLOB NOT NULL,
	created_at BIGINT NOT NULL
);

CREATE TABLE signing_keys (
	key_id     TEXT PRIMARY KEY,
	purpose    TEXT NOT NULL,
	wrapped    BLOB NOT NULL,
	created_at BIGINT NOT NULL,
	retired_at BIGINT NOT NULL DEFAULT 0
);
