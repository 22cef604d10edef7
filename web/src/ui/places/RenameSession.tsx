/** Enter names the conversation anew, Esc leaves its name. */

import { TextInput } from "@mantine/core";
import { useState, type FormEvent } from "react";
import type { SessionDoc } from "../../model/rows.ts";
import { useDesk } from "../desk.tsx";
import { words } from "../words.ts";

const TITLE_MAX = 255;

export function RenameSession({ session, onDone }: { session: SessionDoc; onDone: () => void }) {
  const { desk } = useDesk();
  const [title, setTitle] = useState(session.title);

  function save(event?: FormEvent) {
    event?.preventDefault();
    const changed = title.trim();
    if (changed && changed !== session.title) void desk.changeSession(session.id, { title: changed });
    onDone();
  }

  return (
    <form onSubmit={save}>
      <TextInput
        aria-label={words.places.newTitle}
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
