-- Every fact once, numbered. A number is given once, also when the facts with the largest ones are gone: whoever has read up to it
-- goes on behind it.

CREATE TABLE facts (
    sequence INTEGER PRIMARY KEY AUTOINCREMENT,
    at BIGINT NOT NULL,
    run TEXT,
    task TEXT,
    fact TEXT NOT NULL
);

CREATE INDEX facts_by_run ON facts (run, sequence);
CREATE INDEX facts_by_task ON facts (task, sequence);
CREATE INDEX facts_by_time ON facts (at);
