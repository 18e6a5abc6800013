-- What one worker at a time does, or a few do at once: each place that is taken, by whom and until when.

CREATE TABLE turns (
    name TEXT NOT NULL,
    place BIGINT NOT NULL,
    token TEXT NOT NULL,
    worker TEXT NOT NULL,
    expires_at BIGINT NOT NULL,
    PRIMARY KEY (name, place)
);
