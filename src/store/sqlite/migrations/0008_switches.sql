-- What holds for the whole installation while its row is there.

CREATE TABLE switches (
    name TEXT PRIMARY KEY NOT NULL
);
