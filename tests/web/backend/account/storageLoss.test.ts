/** Report browser storage that was closed or cleared, also while the browser is still clearing it. */

import type { AccountContext } from "../../../../web/src/backend/account/accountContext.ts";
import { watchStorageLoss, type StorageLoss } from "../../../../web/src/backend/account/storageLoss.ts";

/** The state of the storage at one check. */
type State = {
  /** Whether the device database has the row of the account. */
  isKnown: boolean;
  /** Whether the rows of the account can be read. */
  reads: boolean;
  /** False: the device database is closed from this check on, until the app opens it. */
  opens?: boolean;
  /** True: the device database stays closed although the app opens it. */
  breaks?: boolean;
  /** False: reading the device database never ends. */
  answers?: boolean;
  /** False: the databases of the account are not listed. */
  there?: boolean;
};

let losses: StorageLoss[];
beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** Close the storage and run the checks, each with the next state. */
async function runChecks(...states: State[]): Promise<void> {
  losses = [];
  let current: State = states[0]!;
  let close!: () => void;
  let isDeviceClosed = false;
  const context = {
    account: { userId: "ada" },
    device: {
      watchClosed: (listener: () => void) => (close = listener),
      accounts: {
        get: async () => {
          if (current.answers === false) return new Promise(() => {});
          if (isDeviceClosed) throw new Error("not open");
          return current.isKnown ? {} : undefined;
        },
      },
      open: async () => {
        isDeviceClosed = !!current.breaks;
      },
    },
    database: {
      closed: false,
      documents: {
        storageInstance: {
          findDocumentsById: async () => {
            if (!current.reads) throw new Error("closed");
          },
        },
      },
    },
  };
  const isThere = async () => {
    current = states.shift()!;
    isDeviceClosed ||= current.opens === false;
    return current.there ?? true;
  };
  watchStorageLoss(context as unknown as AccountContext, (loss) => losses.push(loss), isThere);
  close();
  await vi.advanceTimersByTimeAsync(60_000);
}

test("storage that reopens by itself is not reported", async () => {
  await runChecks(...Array<State>(4).fill({ isKnown: true, reads: true }));
  expect(losses).toEqual([]);
});

test("storage whose rows stay unreadable is reported as closed", async () => {
  await runChecks({ isKnown: true, reads: true }, ...Array<State>(3).fill({ isKnown: true, reads: false }));
  expect([...new Set(losses)]).toEqual(["closed"]);
});

test("storage cleared after closing is reported as cleared", async () => {
  await runChecks({ isKnown: true, reads: false }, { isKnown: false, reads: false });
  expect(losses).toEqual(["closed", "cleared"]);
});

test("the check reopens a closed device database", async () => {
  await runChecks({ isKnown: false, reads: false, opens: false });
  expect(losses).toEqual(["cleared"]);
});

test("a storage check that gets no response is repeated", async () => {
  const silent = { isKnown: true, reads: false, answers: false };
  await runChecks({ isKnown: true, reads: false }, silent, silent, { isKnown: false, reads: false });
  expect(losses).toEqual(["closed", "cleared"]);
});

test("missing rows are reported as cleared although the account exists", async () => {
  await runChecks({ isKnown: true, reads: false }, { isKnown: true, reads: false, there: false });
  expect(losses).toEqual(["closed", "cleared"]);
});

test("a device database that fails again after reopening is checked again", async () => {
  const broken = { isKnown: true, reads: false, opens: false, breaks: true };
  await runChecks(broken, broken, { isKnown: false, reads: false, opens: false });
  expect(losses).toEqual(["closed", "closed", "cleared"]);
});
