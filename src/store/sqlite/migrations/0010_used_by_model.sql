-- Tokens by day and model, since models have prices of their own. What was booked before was of the only model there was.

CREATE TABLE used_by_model (
    day TEXT NOT NULL,
    model TEXT NOT NULL,
    input BIGINT NOT NULL,
    output BIGINT NOT NULL,
    cached BIGINT NOT NULL,
    PRIMARY KEY (day, model)
);

INSERT INTO used_by_model (day, model, input, output, cached) SELECT day, 'llm', input, output, cached FROM used;

DROP TABLE used;
