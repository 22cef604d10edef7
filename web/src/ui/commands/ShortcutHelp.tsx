/** All keys, on one sheet. */

import { Kbd, Modal, Table } from "@mantine/core";
import { MOD } from "../shortcuts.ts";
import { words } from "../words.ts";
import { find } from "../words/find.ts";

export default function ShortcutHelp({ onClose }: { onClose: () => void }) {
  return (
    <Modal
      opened
      onClose={onClose}
      attributes={{ header: { role: "none" } }} // no second banner on the page
      title={find.keysTitle}
      closeButtonProps={{ "aria-label": words.places.cancel }}
    >
      <Table>
        <Table.Thead>
          <Table.Tr>
            <Table.Th>{find.key}</Table.Th>
            <Table.Th>{find.does}</Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {find.keys.map(([keys, does]) => (
            <Table.Tr key={keys}>
              <Table.Td>
                {keys.split(" ").map((key) => (
                  <Kbd key={key} me={4}>
                    {key === "Mod" ? MOD : key}
                  </Kbd>
                ))}
              </Table.Td>
              <Table.Td>{does}</Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </Modal>
  );
}
