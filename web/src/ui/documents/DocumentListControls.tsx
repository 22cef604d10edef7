/** Search within the list, and its order. */

import { ActionIcon, Group, NativeSelect, TextInput } from "@mantine/core";
import { IconArrowsSort, IconSearch } from "@tabler/icons-react";
import { ORDERS, type Order } from "../../core/documents/documentList.ts";
import { documents as words } from "../words/documents.ts";

interface DocumentListControlsProps {
  query: string;
  onQuery: (query: string) => void;
  order: { by: Order; backwards: boolean };
  onOrder: (order: { by: Order; backwards: boolean }) => void;
}

export function DocumentListControls({ query, onQuery, order, onOrder }: DocumentListControlsProps) {
  return (
    <Group gap="xs" align="end">
      <TextInput
        type="search"
        size="md"
        flex="1 1 14rem"
        aria-label={words.search}
        placeholder={words.searchShort}
        leftSection={<IconSearch size={16} aria-hidden />}
        value={query}
        onChange={(event) => onQuery(event.currentTarget.value)}
      />
      <Group gap={4} wrap="nowrap">
        <NativeSelect
          size="md"
          aria-label={words.sortBy}
          data={ORDERS.map((value) => ({ value, label: words.orders[value] }))}
          value={order.by}
          onChange={(event) => onOrder({ by: event.currentTarget.value as Order, backwards: false })}
        />
        <ActionIcon
          size={44}
          variant="subtle"
          color="gray"
          aria-label={words.reverse}
          aria-pressed={order.backwards}
          onClick={() => onOrder({ ...order, backwards: !order.backwards })}
        >
          <IconArrowsSort size={18} />
        </ActionIcon>
      </Group>
    </Group>
  );
}
