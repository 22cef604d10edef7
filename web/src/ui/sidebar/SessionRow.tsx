import { ActionIcon, Group, NavLink } from "@mantine/core";
import { IconDots } from "@tabler/icons-react";
import { Suspense, useState, type KeyboardEvent } from "react";
import { Link, useRoute } from "wouter";
import type { SessionDoc } from "../../core/schema/rows.ts";
import classes from "./SessionRow.module.css";
import { useDeleteSession } from "./useDeleteSession.ts";
import { lazyComponent } from "../lazyComponent.ts";
import { t } from "../../locale/t.ts";
import { sessionTitle } from "../sessionTitle.ts";

const SessionActions = lazyComponent(() => import("./SessionActions.tsx"));

/** Show a chat in the sidebar, with a menu to rename, move or delete it. */
export function SessionRow({ session }: { session: SessionDoc }) {
  const { id } = session;
  const title = sessionTitle(session);
  const [isOpen] = useRoute(`/s/${id}`);
  const [mode, setMode] = useState<"link" | "menu" | "renaming">("link");
  const remove = useDeleteSession(session);

  function onKey(event: KeyboardEvent) {
    if (event.key === "F2") setMode("renaming");
    else if (event.key === "Delete") remove();
    else if (event.key === "Escape") setMode("link");
  }

  const actions = mode !== "link" && (
    <Suspense>
      <SessionActions
        session={session}
        mode={mode}
        onRename={() => setMode("renaming")}
        onDelete={remove}
        onDone={() => setMode("link")}
      />
    </Suspense>
  );
  return (
    <li>
      <Group
        className={classes["row"]!}
        gap={0}
        wrap="nowrap"
        display={mode === "renaming" ? "none" : "flex"} // hidden and not removed, so that it can get the focus back
      >
        <NavLink
          component={Link}
          href={`/s/${id}`}
          label={title}
          active={isOpen}
          color="gray"
          aria-current={isOpen ? "page" : undefined}
          onKeyDown={onKey}
          noWrap
          miw={0} // lets a long title shrink, so that the menu button fits
        />
        <ActionIcon
          className={classes["more"]!}
          variant="subtle"
          color="gray"
          size="lg"
          aria-label={t("sidebar.chatActions", { title })}
          aria-expanded={mode === "menu"}
          onClick={() => setMode(mode === "menu" ? "link" : "menu")}
        >
          <IconDots size={16} />
        </ActionIcon>
      </Group>
      {actions}
    </li>
  );
}
