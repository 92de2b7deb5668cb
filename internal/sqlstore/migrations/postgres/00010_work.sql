-- +goose Up
-- Workers hear at the commit that a row has become due. Every other event wakes only those who wait for an upload: most events
-- leave nothing to do, and each look costs a statement for each lane of each replica. What becomes due by the clock alone is polled for.
-- +goose StatementBegin
CREATE FUNCTION notify_workers() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_notify('accession', 'work'); RETURN NULL; END $$;
-- +goose StatementEnd
-- Nobody waits for an upload that was not there before; and notifying makes transactions commit one after the other.
DROP TRIGGER status_events_notify ON status_events;
CREATE TRIGGER status_events_notify AFTER INSERT ON status_events FOR EACH ROW WHEN (NEW.cause <> 'reserved') EXECUTE FUNCTION notify_replicas();
-- A second's grace, for the clocks of service and database.
CREATE TRIGGER uploads_due AFTER UPDATE OF status, due_at, lease ON uploads FOR EACH ROW
	WHEN (NEW.lease = '' AND NEW.due_at > 0 AND NEW.due_at <= EXTRACT(EPOCH FROM statement_timestamp()) * 1000 + 1000
		AND (OLD.lease <> '' OR OLD.due_at <> NEW.due_at OR OLD.status <> NEW.status))
	EXECUTE FUNCTION notify_workers();
CREATE TRIGGER webhook_deliveries_due AFTER INSERT ON webhook_deliveries FOR EACH ROW EXECUTE FUNCTION notify_workers();
