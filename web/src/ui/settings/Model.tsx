import { Section } from "../components/Section.tsx";
import { ModelStatus } from "../sync/ModelStatus.tsx";
import { t } from "../../locale/t.ts";

export function Model() {
  return (
    <Section title={t("model.title")}>
      <ModelStatus />
    </Section>
  );
}
