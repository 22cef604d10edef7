/** One conversation in the list: go there, rename it, move it, delete it. */

import { ActionIcon, Group, NavLink } from "@mantine/core";
import { IconDots } from "@tabler/icons-react";
import { Suspense, useState, type KeyboardEvent } from "react";
import { Link, useRoute } from "wouter";
import type { SessionDoc } from "../../core/schema/rows.ts";
import classes from "./SessionRow.module.css";
import { useDeleteSession } from "./useDeleteSession.ts";
import { part } from "../lazyComponent.ts";
import { t } from "../../locale/t.ts";

const SessionActions = part(() => import("./SessionActions.tsx"));

export function SessionRow({ session }: { session: SessionDoc }) {
  const { id, title } = session;
  const [here] = useRoute(`/s/${id}`);
  const [doing, setDoing] = useState<"nothing" | "choosing" | "renaming">("nothing");
  const remove = useDeleteSession(session);

  function onKey(event: KeyboardEvent) {
    if (event.key === "F2") setDoing("renaming");
    else if (event.key === "Delete") remove();
    else if (event.key === "Escape") setDoing("nothing");
  }

  const actions = doing !== "nothing" && (
    <Suspense>
      <SessionActions
        session={session}
        doing={doing}
        onRename={() => setDoing("renaming")}
        onDelete={remove}
        onDone={() => setDoing("nothing")}
      />
    </Suspense>
  );
  return (
    <li>
      <Group
        className={classes["row"]!}
        gap={0}
        wrap="nowrap"
        display={doing === "renaming" ? "none" : "flex"} // it gets the focus back
      >
        <NavLink
          component={Link}
          href={`/s/${id}`}
          label={title}
          active={here}
          color="gray"
          aria-current={here ? "page" : undefined}
          onKeyDown={onKey}
          noWrap
          miw={0} // a long title leaves room for what can be done with it
        />
        <ActionIcon
          className={classes["more"]!}
          variant="subtle"
          color="gray"
          size="lg"
          aria-label={t("sidebar.chatActions", { title })}
          aria-expanded={doing === "choosing"}
          onClick={() => setDoing(doing === "choosing" ? "nothing" : "choosing")}
        >
          <IconDots size={16} />
        </ActionIcon>
      </Group>
      {actions}
    </li>
  );
}
