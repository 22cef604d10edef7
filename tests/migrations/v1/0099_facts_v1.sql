-- Version 1 of facts says where a fact came from. Existing facts were typed by their owner; that of a tombstone is blank.
UPDATE packs SET bodies = (
  SELECT to_json(list(json_merge_patch(body,
    CASE WHEN json_extract(body, '$._deleted') = 'true' THEN '{"origin": ""}' ELSE '{"origin": "typed"}' END)))
  FROM (SELECT unnest(json_extract(bodies, '$[*]')) AS body)
), checksum = NULL WHERE collection = 'facts';
