-- Which events of coding agents have been taken up, so that none is counted twice: see services/observe.py. id: the event's
-- own; moment: when it was taken up (ISO 8601). Ids alone: what they said is in the rows. Without an index, as `jobs` is.
CREATE TABLE taken (id VARCHAR, moment VARCHAR);
