import { TextInput } from "@mantine/core";
import { useRef, useState, type FormEvent } from "react";
import type { SessionDoc } from "../../core/schema/rows.ts";
import { useAccountApi } from "../../client/backendClient.tsx";
import { afterSaving } from "../notify.ts";
import { t } from "../../locale/t.ts";

const TITLE_MAX = 255;

/** Show a field to edit the title of a chat. Enter saves the title, Esc cancels. */
export function RenameSession({ session, onDone }: { session: SessionDoc; onDone: () => void }) {
  const { api } = useAccountApi();
  const [title, setTitle] = useState(session.title);
  const saving = useRef(false);

  function save(event?: FormEvent) {
    event?.preventDefault();
    const changed = title.trim();
    if (!changed || changed === session.title) return onDone();
    if (saving.current) return; // called twice: the field also loses the focus after Enter
    saving.current = true;
    void afterSaving(api.changeSession(session.id, { title: changed }), onDone).finally(
      () => (saving.current = false),
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
