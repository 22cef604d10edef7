import { Button, Group } from "@mantine/core";
import { Link, useRoute } from "wouter";

interface Page {
  to: string;
  label: string;
}

/** Show the links to the pages of a section, in one line. */
export function SubNav({ label, pages }: { label: string; pages: readonly Page[] }) {
  return (
    <Group component="nav" aria-label={label} gap={2}>
      {pages.map((page) => (
        <PageLink key={page.to} {...page} />
      ))}
    </Group>
  );
}

function PageLink({ to, label }: Page) {
  const [isCurrent] = useRoute(to);
  return (
    <Button
      component={Link}
      href={to}
      size="sm"
      mih={{ base: 44, sm: 36 }}
      px={{ base: 8, sm: "sm" }}
      variant={isCurrent ? "light" : "subtle"}
      color={isCurrent ? "teal" : "gray"}
      {...(isCurrent ? {} : { c: "dimmed" })}
      aria-current={isCurrent ? "page" : undefined}
    >
      {label}
    </Button>
  );
}
