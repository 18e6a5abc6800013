-- Which programs understand a run's record: those that write records of this format or a later one. Machines that share a store are
-- updated one by one, and an older program must not take up what a newer one has written.
ALTER TABLE runs ADD COLUMN format BIGINT NOT NULL DEFAULT 0;
