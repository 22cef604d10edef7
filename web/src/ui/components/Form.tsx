/** What is written by hand: it comes trimmed, by the names of the fields. Esc leaves everything as it was. */

import { Button, Group, Stack } from "@mantine/core";
import type { FormEvent, KeyboardEvent, ReactNode } from "react";
import { t } from "../../locale/t.ts";

interface Props {
  onSave: (given: (field: string) => string) => void;
  onCancel: () => void;
  /** What the button says that stores it. */
  save?: string;
  small?: boolean;
  children: ReactNode;
}

export function Form({ onSave, onCancel, save = t("common.save"), small = false, children }: Props) {
  function submit(event: FormEvent<HTMLFormElement>) {
    event.preventDefault();
    const given = new FormData(event.currentTarget);
    onSave((field) => String(given.get(field)).trim());
  }

  // The Esc of somebody who is still composing a sign belongs to the keyboard.
  const leave = ({ key, nativeEvent }: KeyboardEvent) =>
    key === "Escape" && !nativeEvent.isComposing && onCancel();

  const size = small ? "compact-md" : "sm";
  return (
    <form onSubmit={submit} onKeyDown={leave}>
      <Stack gap={small ? "xs" : "sm"}>
        {children}
        <Group gap="xs">
          <Button size={size} type="submit">
            {save}
          </Button>
          <Button size={size} variant="default" onClick={onCancel}>
            {t("common.cancel")}
          </Button>
        </Group>
      </Stack>
    </form>
  );
}
