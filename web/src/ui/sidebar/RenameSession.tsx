/** Enter names the conversation anew, Esc leaves its name. */

import { TextInput } from "@mantine/core";
import { useRef, useState, type FormEvent } from "react";
import type { SessionDoc } from "../../core/schema/rows.ts";
import { useAccountApi } from "../../client/backendClient.tsx";
import { stored } from "../notify.ts";
import { t } from "../../locale/t.ts";

const TITLE_MAX = 255;

export function RenameSession({ session, onDone }: { session: SessionDoc; onDone: () => void }) {
  const { api } = useAccountApi();
  const [title, setTitle] = useState(session.title);
  const storing = useRef(false);

  function save(event?: FormEvent) {
    event?.preventDefault();
    const changed = title.trim();
    if (!changed || changed === session.title) return onDone();
    if (storing.current) return; // Enter, and then the field that loses the focus
    storing.current = true;
    void stored(api.changeSession(session.id, { title: changed }), onDone).finally(
      () => (storing.current = false),
    );
  }

  return (
    <form onSubmit={save}>
      <TextInput
        aria-label={t("sidebar.newTitle")}
        value={title}
        maxLength={TITLE_MAX}
        autoFocus
        onFocus={(event) => event.currentTarget.select()}
        onChange={(event) => setTitle(event.currentTarget.value)}
        onBlur={() => save()}
        onKeyDown={({ key }) => key === "Escape" && onDone()}
      />
    </form>
  );
}
