import { Button, Group, Skeleton, Text } from "@mantine/core";
import { useAccountApi, useRows } from "../../client/backendClient.tsx";
import { usePendingDeletes } from "../pendingDeletes.ts";
import { PlainList } from "../components/PlainList.tsx";
import { Section } from "../components/Section.tsx";
import { afterSaving } from "../notify.ts";
import { Fact } from "./Fact.tsx";
import { FactForm } from "./FactForm.tsx";
import { useFactForm } from "./useFactForm.ts";
import { t } from "../../locale/t.ts";

/** Show all facts, and a form to add one. */
export function Facts() {
  const { api } = useAccountApi();
  const pending = usePendingDeletes();
  const facts = useRows("facts")
    ?.filter(({ id }) => !pending.has(id))
    .sort((a, b) => a.key.localeCompare(b.key));
  const documents = useRows("documents");
  const adding = useFactForm();
  const sources = new Map(documents?.map(({ id, filename }) => [id, filename]));

  const add = (key: string, value: string) => void afterSaving(api.addFact(key, value), adding.close);

  return (
    <Section title={t("memory.facts")} hint={t("memory.factsHint")}>
      {!facts && <Skeleton h={80} />}
      {facts?.length === 0 && !adding.isOpen && <Text c="dimmed">{t("memory.noFacts")}</Text>}
      <PlainList>
        {facts?.map((fact) => (
          <Fact key={fact.id} fact={fact} source={sources.get(fact.sourceDocumentId ?? "")} />
        ))}
      </PlainList>
      {adding.isOpen ? (
        <FactForm onSave={add} onCancel={adding.close} />
      ) : (
        <Group>
          <Button variant="default" onClick={adding.open}>
            {t("memory.addFact")}
          </Button>
        </Group>
      )}
    </Section>
  );
}
