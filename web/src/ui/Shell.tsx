/** The frame of the app: the header, the sidebar (a drawer on narrow screens) and the open page. */

import { Burger, Group, Text } from "@mantine/core";
import { useDisclosure, useMediaQuery } from "@mantine/hooks";
import { Suspense, useEffect, useState } from "react";
import { Route, Switch, useLocation } from "wouter";
import { Conversation } from "./conversation/Conversation.tsx";
import { useShortcuts } from "./shortcuts.ts";
import { ReloadRequestPrompt } from "./ReloadRequestPrompt.tsx";
import { ErrorBoundary } from "./components/ErrorBoundary.tsx";
import { Sidebar } from "./sidebar/Sidebar.tsx";
import classes from "./Shell.module.css";
import { usePersistentStorage } from "./browserStorage.ts";
import { useCloseRequest } from "./useCloseRequest.ts";
import { SyncStatusLine } from "./sync/SyncStatusLine.tsx";
import { newId } from "../core/schema/uuid7.ts";
import { useAccountApi } from "../client/backendClient.tsx";
import { ErrorFallback } from "./components/ErrorFallback.tsx";
import { newConversationId } from "./drafts.ts";
import { lazyComponent } from "./lazyComponent.ts";
import { t } from "../locale/t.ts";

const Documents = lazyComponent(() => import("./documents/Documents.tsx"));
const Memory = lazyComponent(() => import("./memory/Memory.tsx"));
const Projects = lazyComponent(() => import("./projects/Projects.tsx"));
const DropZone = lazyComponent(() => import("./documents/DropZone.tsx"));
const Settings = lazyComponent(() => import("./settings/Settings.tsx"));
const CommandPalette = lazyComponent(() => import("./commands/CommandPalette.tsx"));
const ShortcutHelp = lazyComponent(() => import("./commands/ShortcutHelp.tsx"));

/** Media query for screens on which the sidebar is a drawer: those below the component library's breakpoint "sm". */
const NARROW = "(max-width: 47.99em)";

type Overlay = "search" | "shortcuts";

export function Shell() {
  const [opened, { toggle, close }] = useDisclosure();
  const [overlay, setOverlay] = useState<Overlay>();
  const [location] = useLocation();
  useEffect(close, [location, close]);
  const isNarrow = useMediaQuery(NARROW);
  useCloseRequest(opened, close);
  useShortcuts(setOverlay);
  usePersistentStorage();
  return (
    <>
      <a href="#main" className={classes["skip"]}>
        {t("app.skip")}
      </a>
      <header className={classes["header"]}>
        <Group h="100%" wrap="nowrap">
          {/* If the name and the sync status do not both fit, the name is hidden. */}
          <Group wrap="nowrap" miw={34} flex={1}>
            <Burger
              opened={opened}
              onClick={toggle}
              hiddenFrom="sm"
              size="sm"
              flex="none"
              aria-label={t("app.menu")}
              aria-expanded={opened}
            />
            <div className={classes["name"]}>
              <Text component="h1" fz="h4" fw={700} m={0}>
                {t("app.name")}
              </Text>
            </div>
          </Group>
          <SyncStatusLine />
        </Group>
      </header>
      <nav
        className={classes["navbar"]}
        data-opened={opened || undefined}
        inert={isNarrow && !opened}
        onClick={(event) => isNarrow && isLink(event.target) && closeDrawer(close)}
      >
        <Sidebar onSearch={() => setOverlay("search")} />
      </nav>
      <main id="main" className={classes["main"]} tabIndex={-1}>
        <ErrorBoundary resetKey={location} fallback={<ErrorFallback />}>
          <Suspense>
            <Switch>
              <Route path="/documents/:id?" component={Documents} />
              <Route path="/projects/:id?/:part?" component={Projects} />
              <Route path="/memory/:part?" component={Memory} />
              <Route path="/settings" component={Settings} />
              <Route path="/s/:id">{({ id }) => <Conversation key={id} sessionId={id} />}</Route>
              <Route component={NewConversation} />
            </Switch>
          </Suspense>
        </ErrorBoundary>
      </main>
      <ReloadRequestPrompt />
      {/* Each overlay has its own Suspense: an overlay that fails to load stays suspended and must not hide others. */}
      <Suspense>
        {overlay === "search" && (
          <CommandPalette
            // The command "Keyboard shortcuts" opens its overlay before the palette closes: keep that overlay open.
            onClose={() => setOverlay((open) => (open === "search" ? undefined : open))}
            onShortcuts={() => setOverlay("shortcuts")}
          />
        )}
      </Suspense>
      <Suspense>{overlay === "shortcuts" && <ShortcutHelp onClose={() => setOverlay(undefined)} />}</Suspense>
      <Suspense>
        <DropZone />
      </Suspense>
    </>
  );
}

/** Close the drawer after a click on one of its links and focus the page, even if the link leads to the open page. */
function closeDrawer(close: () => void): void {
  close();
  document.getElementById("main")?.focus({ preventScroll: true });
}

function isLink(target: EventTarget): boolean {
  return target instanceof Element && target.closest("a") !== null;
}

/** Redirect to the address of a new chat. The row of the chat is created with its first message. */
function NewConversation() {
  const [, navigate] = useLocation();
  const { api, drafts } = useAccountApi();
  useEffect(() => {
    let isMounted = true;
    void newConversationId(api, drafts)
      .catch(newId)
      .then((id) => isMounted && navigate(`/s/${id}`, { replace: true }));
    return () => void (isMounted = false);
  }, [api, drafts, navigate]);
  return null;
}
