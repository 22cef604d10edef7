import { NativeSelect } from "@mantine/core";
import type { MemoryPlace } from "../../backend/api.ts";
import { useProjects } from "../projects/useProjects.ts";
import { t } from "../../locale/t.ts";

interface Props {
  label: string;
  value: MemoryPlace;
  onChange: (where: MemoryPlace) => void;
  /** Whether "Everywhere" is an option. */
  everywhere?: boolean;
}

/** Show a choice between no project, each project and, if `everywhere` is true, "Everywhere". */
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
