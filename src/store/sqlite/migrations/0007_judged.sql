-- A review and an approval are of a plan or of a result, and named after the stage that follows.

UPDATE runs SET state = 'reviewing:preparing' WHERE state = 'reviewing';
UPDATE runs SET state = 'awaiting_approval:preparing' WHERE state = 'awaiting_approval';
UPDATE runs SET state = 'paused:reviewing:preparing' WHERE state = 'paused:reviewing';
