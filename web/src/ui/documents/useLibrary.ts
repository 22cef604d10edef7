import { useMemo } from "react";
import type { Progress } from "../../core/documents/documentList.ts";
import type { DocumentDoc } from "../../core/schema/rows.ts";
import { useServerEmbedding, useRows, useUploads } from "../../client/backendClient.tsx";
import { sessionTitle } from "../sessionTitle.ts";

export interface Library {
  documents: DocumentDoc[];
  /** Map ids of documents that are being embedded, on this device or the server, to the progress. */
  progress: Record<string, Progress>;
  /** Map ids of chats to their titles. */
  titles: Map<string, string>;
}

/** Return the data for the list of documents, or undefined until the data is loaded. */
export function useLibrary(): Library | undefined {
  const documents = useRows("documents");
  const sessions = useRows("sessions");
  const onServer = useServerEmbedding();
  const tasks = useUploads();
  return useMemo(() => {
    if (!documents || !sessions) return undefined;
    const local = (tasks ?? []).filter((task) => task.stage === "embedding");
    return {
      documents,
      progress: {
        ...onServer,
        ...Object.fromEntries(local.map(({ documentId, done, of }) => [documentId, { done, of }])),
      },
      titles: new Map(sessions.map((session) => [session.id, sessionTitle(session)])),
    };
  }, [documents, sessions, onServer, tasks]);
}
