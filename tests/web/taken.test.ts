/** What the browser took from under the app is told as what it is, although it may look otherwise for a moment. */

import type { House } from "../../web/src/services/house.ts";
import { watchTaken, type Loss } from "../../web/src/services/taken.ts";

/**
 * What a device shows at each look: whether it knows the account, and whether its rows can be read; and whether it can be
 * opened, if that failed before and nobody has asked for it since.
 */
type Look = { knows: boolean; reads: boolean; opens?: boolean };

let told: Loss[];
beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

async function closed(...looks: Look[]): Promise<void> {
  told = [];
  let shown: Look;
  let close!: () => void;
  let isShut = false;
  const house = {
    account: { userId: "ada" },
    device: {
      watchClosed: (listener: () => void) => (close = listener),
      accounts: {
        get: async () => {
          if (!isShut) shown = looks.shift()!;
          if ((isShut ||= shown.opens === false)) throw new Error("not open");
          return shown.knows ? {} : undefined;
        },
      },
      open: async () => void (isShut = false),
    },
    records: {
      closed: false,
      documents: {
        storageInstance: {
          findDocumentsById: async () => {
            if (!shown.reads) throw new Error("closed");
          },
        },
      },
    },
  };
  watchTaken(house as unknown as House, (loss) => told.push(loss));
  close();
  await vi.advanceTimersByTimeAsync(60_000);
}

test("what opens again by itself is no loss", async () => {
  await closed(...Array<Look>(3).fill({ knows: true, reads: true }));
  expect(told).toEqual([]);
});

test("rows that stay closed are called closed", async () => {
  await closed({ knows: true, reads: true }, ...Array<Look>(2).fill({ knows: true, reads: false }));
  expect([...new Set(told)]).toEqual(["closed"]);
});

test("what a browser still shows while it clears is called cleared when it is gone", async () => {
  await closed({ knows: true, reads: false }, { knows: false, reads: false });
  expect(told).toEqual(["closed", "cleared"]);
});

test("what cannot be opened while a browser clears it is opened anew to be looked at", async () => {
  await closed({ knows: true, reads: false, opens: false }, { knows: false, reads: false });
  expect(told).toEqual(["cleared"]);
});
