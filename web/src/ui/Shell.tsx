/** The room: places on the left, what is open in the middle. On a phone the left is a drawer. */

import { AppShell, Burger, Group, Text } from "@mantine/core";
import { useDisclosure, useMediaQuery } from "@mantine/hooks";
import { Suspense, useEffect, useState } from "react";
import { Route, Switch, useLocation } from "wouter";
import { Conversation } from "./conversation/Conversation.tsx";
import { useShortcuts } from "./shortcuts.ts";
import { ReloadRequestPrompt } from "./ReloadRequestPrompt.tsx";
import { ErrorBoundary } from "./components/ErrorBoundary.tsx";
import { Sidebar } from "./sidebar/Sidebar.tsx";
import classes from "./Shell.module.css";
import { useKeptStorage } from "./browserStorage.ts";
import { useCloseRequest } from "./useCloseRequest.ts";
import { SyncStatusLine } from "./sync/SyncStatusLine.tsx";
import { newId } from "../core/schema/uuid7.ts";
import { useAccountApi } from "../client/backendClient.tsx";
import { ErrorFallback } from "./components/ErrorFallback.tsx";
import { newConversation } from "./drafts.ts";
import { part } from "./lazyComponent.ts";
import { t } from "../locale/t.ts";

const Documents = part(() => import("./documents/Documents.tsx"));
const Memory = part(() => import("./memory/Memory.tsx"));
const Projects = part(() => import("./projects/Projects.tsx"));
const DropZone = part(() => import("./documents/DropZone.tsx"));
const Settings = part(() => import("./settings/Settings.tsx"));
const CommandPalette = part(() => import("./commands/CommandPalette.tsx"));
const ShortcutHelp = part(() => import("./commands/ShortcutHelp.tsx"));

/** There the navigation is a drawer: below the library's "sm". */
const NARROW = "(max-width: 47.99em)";

type Sheet = "find" | "keys";

export function Shell() {
  const [opened, { toggle, close }] = useDisclosure();
  const [sheet, setSheet] = useState<Sheet>();
  const [location] = useLocation();
  useEffect(close, [location, close]);
  const isNarrow = useMediaQuery(NARROW);
  useCloseRequest(opened, close);
  useShortcuts(setSheet);
  useKeptStorage();
  return (
    <AppShell
      header={{ height: 52 }}
      navbar={{ width: 280, breakpoint: "sm", collapsed: { mobile: !opened } }}
      padding={0}
    >
      <a href="#main" className={classes["skip"]}>
        {t("app.skip")}
      </a>
      <AppShell.Header px="md">
        <Group h="100%" wrap="nowrap">
          {/* Where both do not fit, the name gives way to the line about sync, as a whole. */}
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
      </AppShell.Header>
      <AppShell.Navbar
        p="sm"
        inert={isNarrow && !opened}
        style={{ overflowY: "auto" }}
        onClick={(event) => isNarrow && isLink(event.target) && closeOn(close)}
      >
        <Sidebar onFind={() => setSheet("find")} />
      </AppShell.Navbar>
      <AppShell.Main id="main" tabIndex={-1}>
        <ErrorBoundary of={location} instead={<ErrorFallback />}>
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
      </AppShell.Main>
      <ReloadRequestPrompt />
      {/* One for each: what does not load hides no other. */}
      <Suspense>
        {sheet === "find" && (
          <CommandPalette onClose={() => setSheet(leave("find"))} onKeys={() => setSheet("keys")} />
        )}
      </Suspense>
      <Suspense>{sheet === "keys" && <ShortcutHelp onClose={() => setSheet(undefined)} />}</Suspense>
      <Suspense>
        <DropZone />
      </Suspense>
    </AppShell>
  );
}

/** The focus goes where one went. */
function closeOn(close: () => void): void {
  close();
  document.getElementById("main")?.focus({ preventScroll: true });
}

/** Where one is already can be chosen too: the drawer closes all the same. */
function isLink(target: EventTarget): boolean {
  return target instanceof Element && target.closest("a") !== null;
}

/** Closes this sheet; another that was opened from it stays. */
function leave(closing: Sheet) {
  return (open: Sheet | undefined) => (open === closing ? undefined : open);
}

/** A conversation has an address from the start and a row from its first message on. */
function NewConversation() {
  const [, go] = useLocation();
  const { api, account } = useAccountApi();
  const { userId } = account;
  useEffect(() => {
    let isHere = true;
    void newConversation(api, userId)
      .catch(newId)
      .then((id) => isHere && go(`/s/${id}`, { replace: true }));
    return () => void (isHere = false);
  }, [api, userId, go]);
  return null;
}
