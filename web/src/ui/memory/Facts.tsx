/** Facts: what the assistant takes as given. */

import { Button, Group, Skeleton, Text } from "@mantine/core";
import { useState } from "react";
import { useDesk, useRows } from "../desk.tsx";
import { usePending } from "../pending.ts";
import { PlainList } from "../PlainList.tsx";
import { Section } from "../Section.tsx";
import { stored } from "../tell.ts";
import { memory as words } from "../words/memory.ts";
import { Fact } from "./Fact.tsx";
import { FactForm } from "./FactForm.tsx";

export function Facts() {
  const { desk } = useDesk();
  const pending = usePending();
  const facts = useRows("facts")
    ?.filter(({ id }) => !pending.has(id))
    .sort((a, b) => a.key.localeCompare(b.key));
  const documents = useRows("documents");
  const [adding, setAdding] = useState(false);
  const sources = new Map(documents?.map(({ id, filename }) => [id, filename]));

  const add = (key: string, value: string) => void stored(desk.addFact(key, value), () => setAdding(false));

  return (
    <Section title={words.facts} hint={words.factsHint}>
      {!facts && <Skeleton h={80} />}
      {facts?.length === 0 && !adding && <Text c="dimmed">{words.noFacts}</Text>}
      <PlainList>
        {facts?.map((fact) => (
          <Fact key={fact.id} fact={fact} source={sources.get(fact.sourceDocumentId ?? "")} />
        ))}
      </PlainList>
      {adding ? (
        <FactForm onSave={add} onCancel={() => setAdding(false)} />
      ) : (
        <Group>
          <Button variant="default" onClick={() => setAdding(true)}>
            {words.add}
          </Button>
        </Group>
      )}
    </Section>
  );
}
