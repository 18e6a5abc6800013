-- The unfinished work of runs, so that a worker without it can go on with them. The parts of one upload count once its row is there.

CREATE TABLE unfinished_work (
    run TEXT PRIMARY KEY NOT NULL REFERENCES runs (id),
    upload TEXT NOT NULL,
    -- What the owner says of it.
    about TEXT NOT NULL
);

CREATE TABLE unfinished_parts (
    run TEXT NOT NULL REFERENCES runs (id),
    upload TEXT NOT NULL,
    position BIGINT NOT NULL,
    content BLOB NOT NULL,
    PRIMARY KEY (run, upload, position)
);
