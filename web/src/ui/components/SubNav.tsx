/** The parts of a place, as links in one line. */

import { Button, Group } from "@mantine/core";
import { Link, useRoute } from "wouter";

interface Part {
  to: string;
  label: string;
}

export function SubNav({ label, parts }: { label: string; parts: readonly Part[] }) {
  return (
    <Group component="nav" aria-label={label} gap={2}>
      {parts.map((part) => (
        <PartLink key={part.to} {...part} />
      ))}
    </Group>
  );
}

function PartLink({ to, label }: Part) {
  const [here] = useRoute(to);
  return (
    <Button
      component={Link}
      href={to}
      size="sm"
      mih={{ base: 44, sm: 36 }}
      px={{ base: 8, sm: "sm" }}
      variant={here ? "light" : "subtle"}
      color={here ? "teal" : "gray"}
      {...(here ? {} : { c: "dimmed" })}
      aria-current={here ? "page" : undefined}
    >
      {label}
    </Button>
  );
}
