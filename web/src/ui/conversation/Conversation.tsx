/** One conversation: what was said, and the place to say more. */

import { Button, Stack } from "@mantine/core";
import { Suspense, useCallback, useEffect, useRef, useState } from "react";
import { flushSync } from "react-dom";
import { useSearch } from "wouter";
import type { Citation } from "../../core/chat/citation.ts";
import {
  useAssistant,
  useAccountApi,
  useRows,
  useSync,
  useAnswerDrafts,
} from "../../client/backendClient.tsx";
import { Composer } from "./Composer.tsx";
import { DeletedConversation, useDeleted } from "./DeletedConversation.tsx";
import { EmptyConversation } from "./EmptyConversation.tsx";
import { ConversationHeader } from "./ConversationHeader.tsx";
import { MemoryLimitNotice } from "./MemoryLimitNotice.tsx";
import { IncludeOffer } from "./IncludeOffer.tsx";
import { Turn } from "./Turn.tsx";
import style from "./Conversation.module.css";
import { part } from "../lazyComponent.ts";
import { t } from "../../locale/t.ts";

const CitationPanel = part(() => import("../documents/CitationPanel.tsx"));
const PromptPanel = part(() => import("./PromptPanel.tsx"));

/** So many turns are drawn at first, and as many more at each asking: a page that drew hundreds would be slow and large. */
const DRAWN = 50;

/** What is open beside the conversation. */
type Beside = { kind: "passage"; citation: Citation } | { kind: "prompt"; episodeId: string } | null;

/** Another place opens anew, so that the focus goes there and comes back to its citation. */
const placeOf = ({ documentId, block, chunkIndex }: Citation) => [documentId, block, chunkIndex].join();

export function Conversation({ sessionId }: { sessionId: string }) {
  const { api } = useAccountApi();
  const turns = useRows("episodes", { selector: { sessionId }, sort: [{ createdAt: "asc" }] });
  const isDeleted = useDeleted(sessionId);
  const writing = useAnswerDrafts() ?? {};
  const assistant = useAssistant();
  const kind = useSync()?.kind; // once for all turns: each that is watched takes memory
  const [beside, setBeside] = useState<Beside>(null);
  const [offered, setOffered] = useState<string | null>(null);
  const [drawn, setDrawn] = useState(DRAWN);
  const asked = new URLSearchParams(useSearch());
  const [project, looked] = [asked.get("project"), asked.get("turn")];
  useEffect(() => void api.prepareSearch(sessionId, project), [api, sessionId, project]);
  const log = useRef<HTMLDivElement>(null);
  const earlier = notDrawn(turns ?? [], drawn, looked);
  // A question stands at the top, and its answer grows below it: nobody is scrolled away from where they read.
  useEffect(() => {
    const [turn] = looked ? [document.getElementById(looked)] : [];
    (turn ?? log.current?.querySelector("article:last-of-type"))?.scrollIntoView({ block: "start" });
  }, [turns?.length, looked]);

  const onCitation = useCallback((citation: Citation) => setBeside({ kind: "passage", citation }), []);
  const onPrompt = useCallback((episodeId: string) => setBeside({ kind: "prompt", episodeId }), []);
  const close = useCallback(() => setBeside(null), []);
  const answering = turns?.find(({ id }) => writing[id]);

  /** What is read stays where it is. */
  function drawEarlier() {
    const box = log.current!;
    const below = box.scrollHeight - box.scrollTop;
    flushSync(() => setDrawn(turns!.length - earlier + DRAWN));
    box.scrollTop = box.scrollHeight - below;
    box.focus({ preventScroll: true });
  }

  async function ask(message: string) {
    await api.ask(sessionId, message);
    setOffered(message);
  }

  return (
    <div className={style["page"]}>
      <Stack flex={1} miw={0} gap={0}>
        <ConversationHeader sessionId={sessionId} project={project} isDeleted={isDeleted} />
        <div
          ref={log}
          role="log"
          tabIndex={-1}
          onKeyDown={({ key }) => key === "Escape" && close()}
          className={style["log"]}
        >
          <Stack maw="var(--reading-width)" mx="auto" gap="xl" pb="md">
            {isDeleted && <DeletedConversation sessionId={sessionId} />}
            {!isDeleted && turns?.length === 0 && <EmptyConversation sessionId={sessionId} />}
            {earlier > 0 && (
              <Button variant="subtle" onClick={drawEarlier}>
                {t("chat.showEarlier", { n: earlier })}
              </Button>
            )}
            {turns?.slice(earlier).map((turn, at, some) => (
              <Turn
                key={turn.id}
                turn={turn}
                writing={writing[turn.id]}
                assistant={assistant}
                kind={kind}
                isLast={at === some.length - 1}
                onCitation={onCitation}
                onPrompt={onPrompt}
              />
            ))}
            <MemoryLimitNotice sessionId={sessionId} />
          </Stack>
        </div>
        {!isDeleted && (
          <div className={style["foot"]}>
            {offered && (
              <IncludeOffer
                message={offered}
                sessionId={sessionId}
                episodeId={turns?.at(-1)?.id}
                onDone={() => setOffered(null)}
              />
            )}
            <Composer sessionId={sessionId} answering={answering?.id} last={turns?.at(-1)} onAsk={ask} />
          </div>
        )}
      </Stack>
      <Suspense>
        {beside?.kind === "passage" && (
          <CitationPanel key={placeOf(beside.citation)} citation={beside.citation} onClose={close} />
        )}
        {beside?.kind === "prompt" && <PromptPanel episodeId={beside.episodeId} onClose={close} />}
      </Suspense>
    </div>
  );
}

/** How many of the first turns are not drawn; one that is looked for is. */
function notDrawn(turns: readonly { id: string }[], drawn: number, looked: string | null): number {
  const at = looked ? turns.findIndex(({ id }) => id === looked) : -1;
  const hidden = Math.max(0, turns.length - drawn);
  return at < 0 ? hidden : Math.min(hidden, at);
}
