/** Everywhere, in no project, or in one of them. */

import { NativeSelect } from "@mantine/core";
import type { MemoryPlace } from "../../backend/memory/timeline.ts";
import { useProjects } from "../projects/useProjects.ts";
import { t } from "../../locale/t.ts";

interface Props {
  label: string;
  value: MemoryPlace;
  onChange: (where: MemoryPlace) => void;
  /** Whether everywhere can be chosen. */
  everywhere?: boolean;
}

export function ScopeSelect({ label, value, onChange, everywhere = false }: Props) {
  const projects = useProjects();
  return (
    <NativeSelect
      label={label}
      value={value ?? ""}
      onChange={(event) => onChange(event.currentTarget.value || null)}
      data={[
        ...(everywhere ? [{ value: "*", label: t("memory.everywhere") }] : []),
        { value: "", label: t("memory.inNoProject") },
        ...(projects ?? []).map(({ id, name }) => ({ value: id, label: t("memory.inProject", { name }) })),
      ]}
    />
  );
}
