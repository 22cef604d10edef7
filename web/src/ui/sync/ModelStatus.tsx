import { Box, Button, Progress, Text } from "@mantine/core";
import { useEffect, useState } from "react";
import type { ModelState } from "../../backend/api.ts";
import { useAccountApi, useModel } from "../../client/backendClient.tsx";
import { ModelChoice } from "./ModelOffer.tsx";
import { bytes } from "../../locale/format.ts";
import { t } from "../../locale/t.ts";

const POLL_MS = 3_000;

/** Show the state of the embedding model on this device, and the progress of a model change on the server. */
export function ModelStatus() {
  const { api } = useAccountApi();
  const model = useModel();
  const reembedding = useReembedding();
  if (!model) return null;
  return (
    <Box>
      <Text size="sm">{stateText(model)}</Text>
      {model.kind === "loading" && model.total > 0 && (
        <>
          <Progress value={(model.loaded / model.total) * 100} aria-label={t("model.title")} my={4} />
          <Text size="xs" c="dimmed">
            {speedText(model)}
          </Text>
        </>
      )}
      {model.kind === "offered" && <ModelChoice canDecline={!model.isDeclined} />}
      {model.kind === "failed" && (
        <Button size="compact-sm" variant="light" onClick={() => void api.downloadModel()}>
          {t("model.resume")}
        </Button>
      )}
      {reembedding && (
        <Text size="sm" c="dimmed">
          {t("model.reembedding", { done: reembedding.done, total: reembedding.of })}
        </Text>
      )}
    </Box>
  );
}

function stateText(model: ModelState): string {
  if (model.kind === "loading")
    return t("model.loading", { loaded: bytes(model.loaded), total: bytes(model.total) });
  if (model.kind === "offered")
    return t(model.isDeclined ? "model.declined" : "model.offered", { size: bytes(model.bytes) });
  return model.kind === "ready" ? t("model.ready", { name: model.id }) : t(`model.${model.kind}`);
}

function speedText({ loaded, since }: Extract<ModelState, { kind: "loading" }>): string {
  const seconds = (Date.now() - since) / 1000;
  return seconds > 1 ? t("model.speed", { size: bytes(loaded / seconds) }) : bytes(loaded);
}

/** Poll the progress of a model change on the server. Return null if none is in progress. */
function useReembedding(): { done: number; of: number } | null {
  const { api } = useAccountApi();
  const [progress, setProgress] = useState<{ done: number; of: number } | null>(null);
  useEffect(() => {
    let isStale = false;
    const poll = () =>
      api.profile().then(
        ({ reembedding }) => void (isStale || setProgress(reembedding)),
        () => {}, // ignored: without the server, keep showing the last progress
      );
    void poll();
    const timer = setInterval(() => void poll(), POLL_MS);
    return () => {
      isStale = true;
      clearInterval(timer);
    };
  }, [api]);
  return progress;
}
