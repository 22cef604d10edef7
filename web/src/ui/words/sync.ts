/** Sentences of the line about sync. Short and concrete: what happened, what is safe, what to do. */

import { count } from "./count.ts";

const changes = (n: number) => count(n, "change", "changes");

export const sync = {
  title: "Sync",
  line: {
    starting: () => "Looking for the server…",
    "signed-out": (n: number) =>
      n ? `Signed out: sign in to sync ${changes(n)}` : "Signed out: sign in to sync",
    outdated: (n: number) => (n ? `Update available: ${changes(n)} waiting` : "Update available"),
    behind: (n: number) =>
      n ? `The server is older than this app: ${changes(n)} waiting` : "The server is older than this app",
    full: (n: number) =>
      n ? `No room left on this device: ${changes(n)} waiting` : "No room left on this device",
    offline: (n: number) =>
      n ? `Offline: everything works, ${changes(n)} waiting` : "Offline: everything works",
    busy: (n: number) =>
      n
        ? `The server is busy: everything works, ${changes(n)} waiting`
        : "The server is busy: everything works",
    denied: (n: number) =>
      n ? `Not accepted by the server: ${changes(n)} waiting` : "Not accepted by the server",
    "only-here": (n: number) => `${count(n, "document", "documents")} only on this device`,
    refused: (n: number) => `${changes(n)} only on this device`,
    lost: (n: number) => `${count(n, "text", "texts")} of yours kept here`,
    sending: (n: number) => `${changes(n)} waiting`,
    synced: (_: number, when: string) => `Synced ${when}`,
    never: () => "Not synced yet",
  },
  said: {
    starting: "The server has not answered yet. Everything works meanwhile.",
    "signed-out":
      "This device is no longer signed in. Everything here is safe and works; it is synced once you sign in again.",
    outdated: "The server needs a newer version of this app to sync. Everything here is safe.",
    behind:
      "The server is older than this app and cannot sync with it. Everything works; changes are sent once it is brought up to date.",
    full: "This browser has no room left for what comes from the server. Everything here is safe, and so is the rest on the server. Delete a document, or free space on this device; then look again.",
    offline: "The server does not answer. Everything works; changes are sent when it is back.",
    busy: "The server has too much to do and asked to wait. Everything works; changes are sent when the wait is over.",
    denied:
      "The server did not accept what this app asked. Everything here is safe and works; it is tried again by itself.",
    sending: "What was changed here is being sent.",
    synced: "Everything here is on the server, and the other way round.",
    never: "Nothing has been synced yet.",
    "only-here": "The server did not take everything. What it refused is safe on this device.",
    refused: "The server did not take everything. What it refused is safe on this device.",
    lost: "Everything is synced. What a text of yours belongs to was changed or deleted on another device; the text is kept here.",
  },
  lastSynced: (when: string) => `Last synced: ${when}`,
  now: "Look again",
  signInAgain: (email: string) => `Sign in as ${email}`,
  otherAccount: "Use another account",
  loadVersion: "Load the new version",
  noVersion: "The new version is not here yet. Try again when the server answers.",
  waitingTitle: "Waiting to be sent",
  refusedTitle: "Only on this device",
  tryAgain: "Try again",
  tryAll: "Try all again",
  chooseDelete: "Choose what to delete",
  keepHere: "Keep on this device",
  lostTitle: "Kept on this device",
  lost: (name: string) => `Your version of “${name}” gave way to another device's. It is kept here.`,
  lostTurn: (name: string) =>
    `Your question “${name}” was asked in a conversation that was deleted on another device. It is kept here.`,
  lostGone: (name: string) =>
    `“${name}” was deleted on another device. What you had written meanwhile is kept here.`,
  copy: "Copy",
  copied: "Copied",
  useMine: "Use mine",
  dismiss: "Dismiss",
} as const;
