/**
 * Names of all Web Locks and BroadcastChannels. Tabs with different app versions share them: do not change a
 * name.
 */

export const lockNames = {
  /**
   * Lock of an account: shared by each tab that has the account open, exclusive to migrate or remove its
   * rows.
   */
  account: (userId: string) => `vademecum-account-${userId}`,
  /** Lock that is held while the rows of an account are opened. */
  opening: (userId: string) => `vademecum-opening-${userId}`,
  /** Lock of the tab that syncs the account. */
  sync: (userId: string) => `vademecum-sync-${userId}`,
  /** Lock of the tab that picks up the files of closed tabs. */
  files: (userId: string) => `vademecum-files-${userId}`,
  /** Lock of the tab that processes a file or embeds a document. */
  file: (id: string) => `vademecum-file-${id}`,
  /** Lock of the tab that answers a turn. */
  answer: (episodeId: string) => `vademecum-answer-${episodeId}`,
  /** Lock of the tab that answers deferred questions. */
  deferredQuestions: (userId: string) => `vademecum-later-${userId}`,
  /** Lock that is held while a tab adopts unanswered questions of closed tabs. */
  unansweredQuestions: (userId: string) => `vademecum-asked-${userId}`,
  /** Lock that a tab holds as long as the tab is open. */
  tab: (id: string) => `vademecum-tab-${id}`,
  /** Lock of a page that erases an account. The page also removes the account from this device. */
  forgetting: (userId: string) => `vademecum-forgetting-${userId}`,
  /**
   * Lock of a model (its folder URL), shared while a worker uses it, or of the download of a file (its
   * SHA-256).
   */
  model: (key: string) => `vademecum-models ${key}`,
};

export const channelNames = {
  /** Channel for the sync status, counts and requests between the tabs of an account. */
  sync: (userId: string) => `vademecum-sync-${userId}`,
  /** Channel for reload requests: by a newer version (null), or to erase deleted text. */
  reload: (userId: string) => `vademecum-asked-${userId}`,
  /** Channel for changes of drafts. */
  drafts: (userId: string) => `vademecum-drafts-${userId}`,
  /** Channel for the path that all tabs open when a tab signs out or removes the account. */
  signOut: "vademecum-leaving",
};

/**
 * Messages on `channelNames.reload` that ask hidden pages, or all pages, to reload for the erasure of deleted
 * text.
 */
export const [REQUEST_ERASURE, REQUEST_ERASURE_NOW] = ["erase", "erase now"] as const;

/** Acquire a lock and return the function that releases it. The browser releases the locks of a closed tab. */
export function acquireLock(name: string, options: LockOptions = {}): Promise<() => void> {
  return new Promise((resolve, reject) => {
    const hold = () => new Promise<void>((release) => resolve(release));
    navigator.locks.request(name, options, hold).catch(reject);
  });
}
