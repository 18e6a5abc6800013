-- What must take effect once, by its name: deliveries of webhooks, tasks that were asked for with a key, sessions that were ended.

CREATE TABLE once (
    name TEXT PRIMARY KEY NOT NULL,
    at BIGINT NOT NULL,
    value TEXT NOT NULL
);

CREATE INDEX once_by_time ON once (at);

-- Who asked, by the name that people are shown; those at the command line have none.

ALTER TABLE requests ADD COLUMN asked_by TEXT;
