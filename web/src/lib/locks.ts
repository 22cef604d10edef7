/**
 * Names of all Web Locks and BroadcastChannels. Tabs with different app versions share these names, so a name must not
 * change.
 */

export const lockNames = {
  /**
   * Lock of an account. Each tab that has the account open holds it in shared mode. A migration or removal of the
   * account's rows holds it in exclusive mode.
   */
  account: (userId: string) => `vademecum-account-${userId}`,
  /** Lock of the tab that is opening the account's database, so that only one tab opens it at a time. */
  opening: (userId: string) => `vademecum-opening-${userId}`,
  /** Lock of the tab that syncs the account. */
  sync: (userId: string) => `vademecum-sync-${userId}`,
  /** Lock of the tab that processes the files of closed tabs. */
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
  /** Lock of a page that runs "forget everything". The page also removes the account from this device. */
  forgetting: (userId: string) => `vademecum-forgetting-${userId}`,
  /**
   * Lock with two uses. With a model's folder URL as key, each worker that uses the model holds it in shared mode. With
   * a file's SHA-256 as key, a worker holds it while it loads the file.
   */
  model: (key: string) => `vademecum-models ${key}`,
};

export const channelNames = {
  /** Channel for the sync status, counts and requests between the tabs of an account. */
  sync: (userId: string) => `vademecum-sync-${userId}`,
  /** Channel for reload requests: by a newer version (null), or to erase deleted text. */
  reload: (userId: string) => `vademecum-asked-${userId}`,
  /** Channel for the user's decision about the download of a model, between all tabs of the device. */
  modelDownload: "vademecum-model-download",
  /** Channel for changes of drafts. */
  drafts: (userId: string) => `vademecum-drafts-${userId}`,
  /**
   * Channel for a path, which is sent after one tab has signed out or removed the account. All other tabs open this
   * path.
   */
  signOut: "vademecum-leaving",
};

/**
 * Messages on `channelNames.reload` that ask pages to reload, so that deleted text can be erased: the first message
 * asks hidden pages, the second asks all pages.
 */
export const [REQUEST_ERASURE, REQUEST_ERASURE_NOW] = ["erase", "erase now"] as const;

/** Acquire a lock and return the function that releases it. The browser releases the locks of a closed tab. */
export function acquireLock(name: string, options: LockOptions = {}): Promise<() => void> {
  return new Promise((resolve, reject) => {
    const hold = () => new Promise<void>((release) => resolve(release));
    navigator.locks.request(name, options, hold).catch(reject);
  });
}
