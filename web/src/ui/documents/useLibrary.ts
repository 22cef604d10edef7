import { useMemo } from "react";
import type { Progress } from "../../core/documents/documentList.ts";
import type { DocumentDoc } from "../../core/schema/rows.ts";
import { useServerEmbedding, useRows, useUploads } from "../../client/backendClient.tsx";

export interface Library {
  documents: DocumentDoc[];
  /** By document: how far its embedding is, wherever it happens. */
  progress: Record<string, Progress>;
  /** By session: its title. */
  titles: Map<string, string>;
}

/** Everything that the list draws; undefined until it is read. */
export function useLibrary(): Library | undefined {
  const documents = useRows("documents");
  const sessions = useRows("sessions");
  const onServer = useServerEmbedding();
  const tasks = useUploads();
  return useMemo(() => {
    if (!documents || !sessions) return undefined;
    const here = (tasks ?? []).filter(({ stage, documentId }) => stage === "embedding" && documentId);
    return {
      documents,
      progress: {
        ...onServer,
        ...Object.fromEntries(here.map(({ documentId, done, of }) => [documentId, { done, of }])),
      },
      titles: new Map(sessions.map(({ id, title }) => [id, title])),
    };
  }, [documents, sessions, onServer, tasks]);
}
