/** The room: places on the left, what is open in the middle. On a phone the left is a drawer. */

import { AppShell, Burger, Group, Text } from "@mantine/core";
import { useDisclosure, useMediaQuery } from "@mantine/hooks";
import { Suspense, useEffect, useState } from "react";
import { Route, Switch, useLocation } from "wouter";
import { Conversation } from "./conversation/Conversation.tsx";
import { useKeys } from "./keys.ts";
import { AskedPrompt } from "./AskedPrompt.tsx";
import { Bounded } from "./Bounded.tsx";
import { Places } from "./Places.tsx";
import classes from "./Shell.module.css";
import { useKeptStorage } from "./storage.ts";
import { useCloseRequest } from "./useCloseRequest.ts";
import { SyncLine } from "./SyncLine.tsx";
import { newId } from "../model/ids.ts";
import { useDesk } from "./desk.tsx";
import { Undrawn } from "./Undrawn.tsx";
import { newConversation } from "./draft.ts";
import { words } from "./words.ts";
import { part } from "./part.ts";

const Documents = part(() => import("./documents/Documents.tsx"));
const Memory = part(() => import("./memory/Memory.tsx"));
const Projects = part(() => import("./projects/Projects.tsx"));
const Uploads = part(() => import("./documents/Uploads.tsx"));
const Settings = part(() => import("./settings/Settings.tsx"));
const Find = part(() => import("./find/Find.tsx"));
const Keys = part(() => import("./find/Keys.tsx"));

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
  useKeys(setSheet);
  useKeptStorage();
  return (
    <AppShell
      header={{ height: 52 }}
      navbar={{ width: 280, breakpoint: "sm", collapsed: { mobile: !opened } }}
      padding={0}
    >
      <a href="#main" className={classes["skip"]}>
        {words.places.skip}
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
              aria-label={words.places.menu}
              aria-expanded={opened}
            />
            <div className={classes["name"]}>
              <Text component="h1" fz="h4" fw={700} m={0}>
                {words.places.app}
              </Text>
            </div>
          </Group>
          <SyncLine />
        </Group>
      </AppShell.Header>
      <AppShell.Navbar
        p="sm"
        inert={isNarrow && !opened}
        style={{ overflowY: "auto" }}
        onClick={(event) => isNarrow && isLink(event.target) && closeOn(close)}
      >
        <Places onFind={() => setSheet("find")} />
      </AppShell.Navbar>
      <AppShell.Main id="main" tabIndex={-1}>
        <Bounded of={location} instead={<Undrawn />}>
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
        </Bounded>
      </AppShell.Main>
      <AskedPrompt />
      {/* One for each: what does not load hides no other. */}
      <Suspense>
        {sheet === "find" && <Find onClose={() => setSheet(leave("find"))} onKeys={() => setSheet("keys")} />}
      </Suspense>
      <Suspense>{sheet === "keys" && <Keys onClose={() => setSheet(undefined)} />}</Suspense>
      <Suspense>
        <Uploads />
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
  const { desk, account } = useDesk();
  const { userId } = account;
  useEffect(() => {
    let isHere = true;
    void newConversation(desk, userId)
      .catch(newId)
      .then((id) => isHere && go(`/s/${id}`, { replace: true }));
    return () => void (isHere = false);
  }, [desk, userId, go]);
  return null;
}
