-- +goose Up
CREATE TABLE data_keys (
	upload_id  TEXT COLLATE "C" PRIMARY KEY,
	wrapped    BYTEA NOT NULL,
	created_at BIGINT NOT NULL
);

CREATE TABLE signing_keys (
	key_id     TEXT COLLATE "C" PRIMARY KEY,
	purpose    TEXT NOT NULL,
	wrapped    BYTEA NOT NULL,
	created_at BIGINT NOT NULL,
	retired_at BIGINT NOT NULL DEFAULT 0
);
