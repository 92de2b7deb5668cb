-- +goose Up
-- How far the requests of a credential or address reach, one each interval, in Unix microseconds. Lost with a crash of the server,
-- which gives everybody a full burst again. SQLite has one process, which counts in memory.
CREATE UNLOGGED TABLE rate_limits (
	who        TEXT COLLATE "C" PRIMARY KEY,
	reaches_to BIGINT NOT NULL,
	asked_at   BIGINT NOT NULL,
	limited    BIGINT NOT NULL
) WITH (fillfactor = 50);
