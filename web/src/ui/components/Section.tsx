import { Stack, Text, Title } from "@mantine/core";
import { useId, type ReactNode } from "react";

interface Props {
  title: string;
  hint?: string;
  children: ReactNode;
}

/** Show a part of a page with its heading. */
export function Section({ title, hint, children }: Props) {
  const id = useId();
  return (
    <Stack component="section" gap="sm" aria-labelledby={id}>
      <div>
        <Title order={3} size="h4" id={id}>
          {title}
        </Title>
        {hint && (
          <Text size="sm" c="dimmed">
            {hint}
          </Text>
        )}
      </div>
      {children}
    </Stack>
  );
}
