/** Remembered statements of all places, by place and by words. */

import { Group, TextInput } from "@mantine/core";
import { useState } from "react";
import type { Where } from "../../services/timeline.ts";
import { WhereSelect } from "../WhereSelect.tsx";
import { memory as words } from "../words/memory.ts";
import { StatementsOf } from "./StatementsOf.tsx";

export function Statements() {
  const [query, setQuery] = useState("");
  const [where, setWhere] = useState<Where>("*");
  return (
    <StatementsOf
      query={query}
      {...(where === "*" ? {} : { projectId: where })}
      filter={
        <Group grow align="end" gap="xs" preventGrowOverflow={false}>
          <TextInput
            type="search"
            label={words.search}
            value={query}
            onChange={(event) => setQuery(event.currentTarget.value)}
          />
          <WhereSelect label={words.where} value={where} onChange={setWhere} everywhere />
        </Group>
      }
    />
  );
}
