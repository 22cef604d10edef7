/** Report browser storage that was closed or cleared, also while the browser is still clearing it. */

import type { AccountContext } from "../../../../web/src/backend/account/accountContext.ts";
import { watchStorageLoss, type StorageLoss } from "../../../../web/src/backend/account/storageLoss.ts";

/**
 * What a device shows at each look: whether it knows the account, and whether its rows can be read; and whether it can be
 * opened, if that failed before and nobody has asked for it since, or breaks again; whether it answers, and lists its
 * rows at all.
 */
type Look = {
  knows: boolean;
  reads: boolean;
  opens?: boolean;
  breaks?: boolean;
  answers?: boolean;
  there?: boolean;
};

let told: StorageLoss[];
beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

async function closed(...looks: Look[]): Promise<void> {
  told = [];
  let shown: Look = looks[0]!;
  let close!: () => void;
  let isShut = false;
  const context = {
    account: { userId: "ada" },
    device: {
      watchClosed: (listener: () => void) => (close = listener),
      accounts: {
        get: async () => {
          if (shown.answers === false) return new Promise(() => {});
          if (isShut) throw new Error("not open");
          return shown.knows ? {} : undefined;
        },
      },
      open: async () => {
        isShut = !!shown.breaks;
      },
    },
    database: {
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
  const isThere = async () => {
    shown = looks.shift()!;
    isShut ||= shown.opens === false;
    return shown.there ?? true;
  };
  watchStorageLoss(context as unknown as AccountContext, (loss) => told.push(loss), isThere);
  close();
  await vi.advanceTimersByTimeAsync(60_000);
}

test("storage that reopens by itself is not reported", async () => {
  await closed(...Array<Look>(4).fill({ knows: true, reads: true }));
  expect(told).toEqual([]);
});

test("storage whose rows stay unreadable is reported as closed", async () => {
  await closed({ knows: true, reads: true }, ...Array<Look>(3).fill({ knows: true, reads: false }));
  expect([...new Set(told)]).toEqual(["closed"]);
});

test("storage cleared after closing is reported as cleared", async () => {
  await closed({ knows: true, reads: false }, { knows: false, reads: false });
  expect(told).toEqual(["closed", "cleared"]);
});

test("the check reopens a closed device database", async () => {
  await closed({ knows: false, reads: false, opens: false });
  expect(told).toEqual(["cleared"]);
});

test("a storage check that gets no response is repeated", async () => {
  const silent = { knows: true, reads: false, answers: false };
  await closed({ knows: true, reads: false }, silent, silent, { knows: false, reads: false });
  expect(told).toEqual(["closed", "cleared"]);
});

test("missing rows are reported as cleared although the account exists", async () => {
  await closed({ knows: true, reads: false }, { knows: true, reads: false, there: false });
  expect(told).toEqual(["closed", "cleared"]);
});

test("a device database that fails again after reopening is checked again", async () => {
  const broken = { knows: true, reads: false, opens: false, breaks: true };
  await closed(broken, broken, { knows: false, reads: false, opens: false });
  expect(told).toEqual(["closed", "closed", "cleared"]);
});
