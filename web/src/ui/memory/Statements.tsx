/** Remembered statements of all places, by place and by words. */

import { Group, TextInput } from "@mantine/core";
import { useState } from "react";
import type { Where } from "../../backend/memory/timeline.ts";
import { ScopeSelect } from "../components/ScopeSelect.tsx";
import { memory as words } from "../words/memory.ts";
import { StatementList } from "./StatementList.tsx";

export function Statements() {
  const [query, setQuery] = useState("");
  const [where, setWhere] = useState<Where>("*");
  return (
    <StatementList
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
          <ScopeSelect label={words.where} value={where} onChange={setWhere} everywhere />
        </Group>
      }
    />
  );
}
