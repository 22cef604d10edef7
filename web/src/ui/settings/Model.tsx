import { Section } from "../Section.tsx";
import { ModelLine } from "../sync/ModelLine.tsx";
import { model as words } from "../words/model.ts";

export function Model() {
  return (
    <Section title={words.title}>
      <ModelLine />
    </Section>
  );
}
