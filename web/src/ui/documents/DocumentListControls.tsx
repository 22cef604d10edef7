import { ActionIcon, Group, NativeSelect, TextInput } from "@mantine/core";
import { IconArrowsSort, IconSearch } from "@tabler/icons-react";
import { ORDERS, type Order } from "../../core/documents/documentList.ts";
import { t } from "../../locale/t.ts";

interface DocumentListControlsProps {
  query: string;
  onQuery: (query: string) => void;
  order: { by: Order; backwards: boolean };
  onOrder: (order: { by: Order; backwards: boolean }) => void;
}

/** Show the search field and the sort order of the document list. */
export function DocumentListControls({ query, onQuery, order, onOrder }: DocumentListControlsProps) {
  return (
    <Group gap="xs" align="end">
      <TextInput
        type="search"
        size="md"
        flex="1 1 14rem"
        aria-label={t("documents.search")}
        placeholder={t("documents.searchShort")}
        leftSection={<IconSearch size={16} aria-hidden />}
        value={query}
        onChange={(event) => onQuery(event.currentTarget.value)}
      />
      <Group gap={4} wrap="nowrap">
        <NativeSelect
          size="md"
          aria-label={t("documents.sortBy")}
          data={ORDERS.map((value) => ({ value, label: t(`documents.order.${value}`) }))}
          value={order.by}
          onChange={(event) => onOrder({ by: event.currentTarget.value as Order, backwards: false })}
        />
        <ActionIcon
          size={44}
          variant="subtle"
          color="gray"
          aria-label={t("documents.reverse")}
          aria-pressed={order.backwards}
          onClick={() => onOrder({ ...order, backwards: !order.backwards })}
        >
          <IconArrowsSort size={18} />
        </ActionIcon>
      </Group>
    </Group>
  );
}
