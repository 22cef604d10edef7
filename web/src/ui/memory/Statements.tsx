import { Group, TextInput } from "@mantine/core";
import { useState } from "react";
import type { MemoryPlace } from "../../backend/api.ts";
import { ScopeSelect } from "../components/ScopeSelect.tsx";
import { StatementList } from "./StatementList.tsx";
import { t } from "../../locale/t.ts";

/** Show all memories. The user can search them and filter them by project. */
export function Statements() {
  const [query, setQuery] = useState("");
  const [where, setWhere] = useState<MemoryPlace>("*");
  return (
    <StatementList
      query={query}
      {...(where === "*" ? {} : { projectId: where })}
      filter={
        <Group grow align="end" gap="xs" preventGrowOverflow={false}>
          <TextInput
            type="search"
            label={t("memory.search")}
            value={query}
            onChange={(event) => setQuery(event.currentTarget.value)}
          />
          <ScopeSelect label={t("memory.where")} value={where} onChange={setWhere} everywhere />
        </Group>
      }
    />
  );
}
