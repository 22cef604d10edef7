import { Section } from "../components/Section.tsx";
import { ModelStatus } from "../sync/ModelStatus.tsx";
import { model as words } from "../words/model.ts";

export function Model() {
  return (
    <Section title={words.title}>
      <ModelStatus />
    </Section>
  );
}
