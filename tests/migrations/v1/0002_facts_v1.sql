-- Version 1 of facts says where a fact came from. Those that are here were typed by their owner; a tombstone's is blank.
UPDATE facts SET body = json_merge_patch(body, '{"origin": "typed"}') WHERE json_extract(head, '$[0]') = 'false';
UPDATE facts SET body = json_merge_patch(body, '{"origin": ""}') WHERE json_extract(head, '$[0]') = 'true';
