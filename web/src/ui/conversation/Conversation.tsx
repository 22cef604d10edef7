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
import { lazyComponent } from "../lazyComponent.ts";
import { t } from "../../locale/t.ts";

const CitationPanel = lazyComponent(() => import("../documents/CitationPanel.tsx"));
const PromptPanel = lazyComponent(() => import("./PromptPanel.tsx"));

/** Number of turns that are shown at first, and that each click on "Show earlier" adds. Hundreds would be slow. */
const PAGE = 50;

/** Content of the side panel. */
type Panel = { kind: "passage"; citation: Citation } | { kind: "prompt"; episodeId: string } | null;

/**
 * Return the React key of a passage. With a new key, React mounts a new panel, which takes the focus and returns it to
 * the citation when the panel closes.
 */
const passageKey = ({ documentId, block, chunkIndex }: Citation) => [documentId, block, chunkIndex].join();

export function Conversation({ sessionId }: { sessionId: string }) {
  const { api } = useAccountApi();
  const turns = useRows("episodes", { selector: { sessionId }, sort: [{ createdAt: "asc" }] });
  const isDeleted = useDeleted(sessionId);
  const writing = useAnswerDrafts() ?? {};
  const assistant = useAssistant();
  const kind = useSync()?.kind; // subscribed to here and not in each turn, because each subscription takes memory
  const [panel, setPanel] = useState<Panel>(null);
  const [sentMessage, setSentMessage] = useState<string | null>(null);
  const [shown, setShown] = useState(PAGE);
  const params = new URLSearchParams(useSearch());
  const [project, linkedTurn] = [params.get("project"), params.get("turn")];
  useEffect(() => void api.prepareSearch(sessionId, project), [api, sessionId, project]);
  const log = useRef<HTMLDivElement>(null);
  const earlier = hiddenTurns(turns ?? [], shown, linkedTurn);
  // Scroll a new question to the top, so that its answer can grow below it without moving the text that the user reads.
  useEffect(() => {
    const turn = linkedTurn ? document.getElementById(linkedTurn) : null;
    (turn ?? log.current?.querySelector("article:last-of-type"))?.scrollIntoView({ block: "start" });
  }, [turns?.length, linkedTurn]);

  const onCitation = useCallback((citation: Citation) => setPanel({ kind: "passage", citation }), []);
  const onPrompt = useCallback((episodeId: string) => setPanel({ kind: "prompt", episodeId }), []);
  const closePanel = useCallback(() => setPanel(null), []);
  const answering = turns?.find(({ id }) => writing[id]);

  /** Show more of the earlier turns. Adjust the scroll position so that the visible turns do not move. */
  function showEarlier() {
    const box = log.current!;
    const below = box.scrollHeight - box.scrollTop;
    flushSync(() => setShown(turns!.length - earlier + PAGE));
    box.scrollTop = box.scrollHeight - below;
    box.focus({ preventScroll: true });
  }

  async function ask(message: string) {
    await api.ask(sessionId, message);
    setSentMessage(message);
  }

  return (
    <div className={style["page"]}>
      <Stack flex={1} miw={0} gap={0}>
        <ConversationHeader sessionId={sessionId} project={project} isDeleted={isDeleted} />
        <div
          ref={log}
          role="log"
          tabIndex={-1}
          onKeyDown={({ key }) => key === "Escape" && closePanel()}
          className={style["log"]}
        >
          <Stack maw="var(--reading-width)" mx="auto" gap="xl" pb="md">
            {isDeleted && <DeletedConversation sessionId={sessionId} />}
            {!isDeleted && turns?.length === 0 && <EmptyConversation sessionId={sessionId} />}
            {earlier > 0 && (
              <Button variant="subtle" onClick={showEarlier}>
                {t("chat.showEarlier", { n: earlier })}
              </Button>
            )}
            {turns?.slice(earlier).map((turn, index, visible) => (
              <Turn
                key={turn.id}
                turn={turn}
                writing={writing[turn.id]}
                assistant={assistant}
                kind={kind}
                isLast={index === visible.length - 1}
                onCitation={onCitation}
                onPrompt={onPrompt}
              />
            ))}
            <MemoryLimitNotice sessionId={sessionId} />
          </Stack>
        </div>
        {!isDeleted && (
          <div className={style["footer"]}>
            {sentMessage && (
              <IncludeOffer
                message={sentMessage}
                sessionId={sessionId}
                episodeId={turns?.at(-1)?.id}
                onDone={() => setSentMessage(null)}
              />
            )}
            <Composer sessionId={sessionId} answering={answering?.id} last={turns?.at(-1)} onAsk={ask} />
          </div>
        )}
      </Stack>
      <Suspense>
        {panel?.kind === "passage" && (
          <CitationPanel key={passageKey(panel.citation)} citation={panel.citation} onClose={closePanel} />
        )}
        {panel?.kind === "prompt" && <PromptPanel episodeId={panel.episodeId} onClose={closePanel} />}
      </Suspense>
    </div>
  );
}

/** Return the number of earlier turns to hide: all but the last `shown`, or fewer if the linked turn is earlier. */
function hiddenTurns(turns: readonly { id: string }[], shown: number, linkedTurn: string | null): number {
  const linkedIndex = turns.findIndex(({ id }) => id === linkedTurn);
  const hidden = Math.max(0, turns.length - shown);
  return linkedIndex < 0 ? hidden : Math.min(hidden, linkedIndex);
}
