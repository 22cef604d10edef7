/** How far the model is that finds by meaning, and what goes on without it. */

import { Box, Button, Progress, Text } from "@mantine/core";
import { useEffect, useState } from "react";
import type { ModelState } from "../../backend/library/embeddingModel.ts";
import { useAccountApi, useModel } from "../../client/backendClient.tsx";
import { bytes } from "../../locale/format.ts";
import { t } from "../../locale/t.ts";

const LOOK_MS = 3_000;

export function ModelStatus() {
  const { api } = useAccountApi();
  const model = useModel();
  const reembedding = useReembedding();
  if (!model) return null;
  return (
    <Box>
      <Text size="sm">{told(model)}</Text>
      {model.kind === "loading" && model.total > 0 && (
        <>
          <Progress value={(model.loaded / model.total) * 100} aria-label={t("model.title")} my={4} />
          <Text size="xs" c="dimmed">
            {speed(model)}
          </Text>
        </>
      )}
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

function told(model: ModelState): string {
  if (model.kind === "loading")
    return t("model.loading", { loaded: bytes(model.loaded), total: bytes(model.total) });
  return model.kind === "ready" ? t("model.ready", { name: model.id }) : t(`model.${model.kind}`);
}

function speed({ loaded, since }: Extract<ModelState, { kind: "loading" }>): string {
  const seconds = (Date.now() - since) / 1000;
  return seconds > 1 ? t("model.speed", { size: bytes(loaded / seconds) }) : bytes(loaded);
}

/** While the server changes its model: asked again as long as somebody looks. */
function useReembedding(): { done: number; of: number } | null {
  const { api } = useAccountApi();
  const [progress, setProgress] = useState<{ done: number; of: number } | null>(null);
  useEffect(() => {
    let gone = false;
    const look = () =>
      api.profile().then(
        ({ reembedding }) => void (gone || setProgress(reembedding)),
        () => {}, // offline: what was known last stays
      );
    void look();
    const timer = setInterval(() => void look(), LOOK_MS);
    return () => {
      gone = true;
      clearInterval(timer);
    };
  }, [api]);
  return progress;
}
