import { Button, Group, Stack } from "@mantine/core";
import type { FormEvent, KeyboardEvent, ReactNode } from "react";
import { t } from "../../locale/t.ts";

interface Props {
  /** Callback that saves the form. `valueOf` returns the trimmed text of the field with the given name. */
  onSave: (valueOf: (field: string) => string) => void;
  onCancel: () => void;
  saveLabel?: string;
  small?: boolean;
  children: ReactNode;
}

/** Show a form with "Save" and "Cancel". Esc cancels. */
export function Form({ onSave, onCancel, saveLabel = t("common.save"), small = false, children }: Props) {
  function submit(event: FormEvent<HTMLFormElement>) {
    event.preventDefault();
    const values = new FormData(event.currentTarget);
    onSave((field) => String(values.get(field)).trim());
  }

  // While the user composes a character, Esc is meant for the input method.
  const cancelOnEscape = ({ key, nativeEvent }: KeyboardEvent) =>
    key === "Escape" && !nativeEvent.isComposing && onCancel();

  const size = small ? "compact-md" : "sm";
  return (
    <form onSubmit={submit} onKeyDown={cancelOnEscape}>
      <Stack gap={small ? "xs" : "sm"}>
        {children}
        <Group gap="xs">
          <Button size={size} type="submit">
            {saveLabel}
          </Button>
          <Button size={size} variant="default" onClick={onCancel}>
            {t("common.cancel")}
          </Button>
        </Group>
      </Stack>
    </form>
  );
}
