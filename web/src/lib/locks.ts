/**
 * Names of all Web Locks and BroadcastChannels. Tabs with different app versions share them: do not change a
 * name.
 */

export const lockNames = {
  /** Shared by each tab that has the account open; exclusive to migrate or remove its rows. */
  account: (userId: string) => `vademecum-account-${userId}`,
  /** Held while the rows of an account are opened. */
  opening: (userId: string) => `vademecum-opening-${userId}`,
  /** Held by the tab that syncs the account. */
  sync: (userId: string) => `vademecum-sync-${userId}`,
  /** Held by the tab that picks up the files of closed tabs. */
  files: (userId: string) => `vademecum-files-${userId}`,
  /** Held by the tab that processes a file or embeds a document. */
  file: (id: string) => `vademecum-file-${id}`,
  /** Held by the tab that answers a turn. */
  answer: (episodeId: string) => `vademecum-answer-${episodeId}`,
  /** Held by the tab that answers deferred questions. */
  deferredQuestions: (userId: string) => `vademecum-later-${userId}`,
  /** Held while a tab adopts unanswered questions of closed tabs. */
  unansweredQuestions: (userId: string) => `vademecum-asked-${userId}`,
  /** Held by a tab for as long as it is open. */
  tab: (id: string) => `vademecum-tab-${id}`,
  /** Held by a page that erases an account. The page also removes the account from this device. */
  forgetting: (userId: string) => `vademecum-forgetting-${userId}`,
  /** Shared while a worker uses a model (its folder URL); exclusive to download a file (its SHA-256). */
  model: (key: string) => `vademecum-models ${key}`,
};

export const channelNames = {
  /** Sync status, counts and requests between the tabs of an account. */
  sync: (userId: string) => `vademecum-sync-${userId}`,
  /** Requests to reload: by a newer version (null), or to erase deleted text. */
  reload: (userId: string) => `vademecum-asked-${userId}`,
  /** Changes of drafts. */
  drafts: (userId: string) => `vademecum-drafts-${userId}`,
  /** The path that all tabs open when one signs out or removes the account. */
  signOut: "vademecum-leaving",
};

/** Messages on `channelNames.reload`: hidden pages, or all pages, reload so that deleted text can be erased. */
export const [REQUEST_ERASURE, REQUEST_ERASURE_NOW] = ["erase", "erase now"] as const;

/** Acquire a lock and return the function that releases it. The browser releases the locks of a closed tab. */
export function acquireLock(name: string, options: LockOptions = {}): Promise<() => void> {
  return new Promise((resolve, reject) => {
    const hold = () => new Promise<void>((release) => resolve(release));
    navigator.locks.request(name, options, hold).catch(reject);
  });
}
