/** For the curious: what went into the prompt of an answer, against its budgets, and what was left out. */

import { Blockquote, Progress, Stack, Text } from "@mantine/core";
import { useEffect, useState } from "react";
import { readableOf } from "../../model/readable.ts";
import type { Told } from "../../services/assistant.ts";
import { Beside } from "../Beside.tsx";
import { useDesk } from "../desk.tsx";
import { words } from "../words.ts";
import { prompt } from "../words/prompt.ts";

const PARTS = ["system", "state", "volatile", "rag"] as const;

export default function Prompt({ episodeId, onClose }: { episodeId: string; onClose(): void }) {
  const { desk } = useDesk();
  const [told, setTold] = useState<Told | null>();
  useEffect(() => void desk.told(episodeId).then(setTold), [desk, episodeId]);
  return (
    <Beside title={prompt.title} close={prompt.close} onClose={onClose}>
      {told === null && <Text>{prompt.gone}</Text>}
      {told && <Bars told={told} />}
    </Beside>
  );
}

function Bars({ told }: { told: Told }) {
  const { source } = words.conversation;
  return (
    <Stack>
      {PARTS.map((part) => {
        const [used, budget] = [told.tokens[part], told.budget[part]];
        const label = `${prompt[part]}: ${prompt.used(used, budget)}`;
        return (
          <div key={part}>
            <Text size="sm">{label}</Text>
            <Progress value={budget ? (100 * used) / budget : 0} aria-label={label} />
          </div>
        );
      })}
      <Text size="sm" c="dimmed">
        {prompt.dropped(told.dropped)} {prompt.hint}
      </Text>
      {told.citations.length > 0 && <Text fw={600}>{prompt.passages}</Text>}
      {told.citations.map((given) => (
        <Blockquote
          key={`${given.documentId}.${given.block}/${given.chunkIndex}`}
          p="sm"
          cite={source(given)}
          styles={{ root: { fontSize: "var(--mantine-font-size-sm)" } }}
        >
          {readableOf(given.filename, given.text)}
        </Blockquote>
      ))}
    </Stack>
  );
}
