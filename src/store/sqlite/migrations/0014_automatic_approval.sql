-- Automatic approval while it is switched on: one row at most.

CREATE TABLE automatic_approval (
    id INTEGER PRIMARY KEY NOT NULL CHECK (id = 1),
    started_by TEXT NOT NULL,
    until BIGINT NOT NULL
);
