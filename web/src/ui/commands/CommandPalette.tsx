import { createSpotlight, Spotlight } from "@mantine/spotlight";
import "@mantine/spotlight/styles.css";
import {
  IconBrain,
  IconChevronRight,
  IconFile,
  IconFolder,
  IconMessage,
  IconSearch,
} from "@tabler/icons-react";
import { useEffect, useState } from "react";
import { useLocation } from "wouter";
import { truncate } from "../../lib/truncate.ts";
import { createMatcher } from "../../core/text/wordMatch.ts";
import type { QuickSearchHit } from "../../backend/api.ts";
import { useAccountApi } from "../../client/backendClient.tsx";
import { useCloseRequest } from "../useCloseRequest.ts";
import { useCommands } from "./useCommands.ts";
import { t } from "../../locale/t.ts";

const [store, spotlight] = createSpotlight();
/** Maximum length in characters of the text below a result, because a fact may be very long. */
const DETAIL_MAX = 200;
const GROUPS = [
  {
    kind: "session",
    label: "commands.chats",
    icon: <IconMessage size={18} />,
    to: (id: string) => `/s/${id}`,
  },
  {
    kind: "document",
    label: "commands.documents",
    icon: <IconFile size={18} />,
    to: (id: string) => `/documents/${id}`,
  },
  {
    kind: "project",
    label: "commands.projects",
    icon: <IconFolder size={18} />,
    to: (id: string) => `/projects/${id}`,
  },
  { kind: "fact", label: "commands.facts", icon: <IconBrain size={18} />, to: () => "/memory" },
  { kind: "memory", label: "commands.memories", icon: <IconBrain size={18} />, to: () => "/memory" },
] as const;

interface Props {
  onClose: () => void;
  onShortcuts: () => void;
}

/** Show a dialog that searches chats, documents, projects, facts, memories and commands. */
export default function CommandPalette({ onClose, onShortcuts }: Props) {
  const [, navigate] = useLocation();
  useCloseRequest(true, spotlight.close);
  const [query, setQuery] = useState("");
  const hits = useHits(query);
  const commands = useCommands(onShortcuts).filter(({ label }) => createMatcher(query)(label));
  useEffect(() => spotlight.open(), []);
  useEffect(selectFirst, [hits]);
  return (
    <Spotlight.Root
      store={store}
      query={query}
      onQueryChange={setQuery}
      onSpotlightClose={onClose}
      shortcut={null}
      attributes={{ content: { "aria-label": t("commands.placeholder") } }}
      scrollable
    >
      <Spotlight.Search
        placeholder={t("commands.placeholder")}
        aria-label={t("commands.placeholder")}
        leftSection={<IconSearch size={20} />}
      />
      <Spotlight.ActionsList>
        {GROUPS.map(({ kind, label, icon, to }) => {
          const matches = hits.filter((hit) => hit.kind === kind);
          return (
            matches.length > 0 && (
              <Spotlight.ActionsGroup key={kind} label={t(label)}>
                {matches.map(({ id, title, detail }) => (
                  <Spotlight.Action
                    key={id}
                    label={title || t("chat.untitled")}
                    description={truncate(detail, DETAIL_MAX)}
                    leftSection={icon}
                    onClick={() => navigate(to(id))}
                  />
                ))}
              </Spotlight.ActionsGroup>
            )
          );
        })}
        {commands.length > 0 && (
          <Spotlight.ActionsGroup label={t("commands.commands")}>
            {commands.map(({ label, run }) => (
              <Spotlight.Action
                key={label}
                label={label}
                leftSection={<IconChevronRight size={18} />}
                onClick={run}
              />
            ))}
          </Spotlight.ActionsGroup>
        )}
        {hits.length + commands.length === 0 && <Spotlight.Empty>{t("commands.none")}</Spotlight.Empty>}
      </Spotlight.ActionsList>
    </Spotlight.Root>
  );
}

/**
 * Select the first result, so that Enter opens it. The library selects a result when the query changes, which is before
 * the results arrive.
 */
function selectFirst(): void {
  const { listId } = store.getState();
  const actions = listId ? [...document.querySelectorAll(`#${listId} [data-action]`)] : [];
  actions.forEach((action, index) => action.toggleAttribute("data-selected", index === 0));
  store.updateState((state) => ({ ...state, selected: 0 }));
}

/** Return the matches on this device. Results that arrive after the query has changed are ignored. */
function useHits(query: string): QuickSearchHit[] {
  const { api } = useAccountApi();
  const [hits, setHits] = useState<QuickSearchHit[]>([]);
  useEffect(() => {
    let isStale = false;
    void api.quickSearch(query).then((hits) => isStale || setHits(hits));
    return () => void (isStale = true);
  }, [api, query]);
  return hits;
}
