import { Kbd, Modal, Table } from "@mantine/core";
import { MOD } from "../shortcuts.ts";
import { t } from "../../locale/t.ts";

const SHORTCUTS = [
  ["Enter", "shortcuts.send"],
  ["Shift Enter", "shortcuts.newLine"],
  ["Esc", "shortcuts.stop"],
  ["↑", "shortcuts.editLast"],
  ["Mod K", "shortcuts.search"],
  ["Mod N", "shortcuts.newChat"],
  ["Mod J", "shortcuts.documents"],
  ["F2", "shortcuts.renameChat"],
  ["Delete", "shortcuts.deleteChat"],
  ["?", "shortcuts.show"],
] as const;

/** Show a table of all keyboard shortcuts. */
export default function ShortcutHelp({ onClose }: { onClose: () => void }) {
  return (
    <Modal
      opened
      onClose={onClose}
      attributes={{ header: { role: "none" } }} // a `header` element would be a second banner of the page
      title={t("shortcuts.title")}
      closeButtonProps={{ "aria-label": t("common.close") }}
    >
      <Table>
        <Table.Thead>
          <Table.Tr>
            <Table.Th>{t("shortcuts.key")}</Table.Th>
            <Table.Th>{t("shortcuts.action")}</Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {SHORTCUTS.map(([keys, action]) => (
            <Table.Tr key={keys}>
              <Table.Td>
                {keys.split(" ").map((key) => (
                  <Kbd key={key} me={4}>
                    {key === "Mod" ? MOD : key}
                  </Kbd>
                ))}
              </Table.Td>
              <Table.Td>{t(action)}</Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </Modal>
  );
}
