/** Sentences of the settings. Short and concrete: what happened, what is safe, what to do. */

import type { ExportCode } from "../../core/errors.ts";
import { count } from "./count.ts";
import { bytes, date } from "./measures.ts";
import { LOCALE } from "./locale.ts";

export const settings = {
  title: "Settings",
  cancel: "Cancel",
  account: "Account",
  documents: "Documents",
  serverStorage: "Storage on the server",
  countOf: (held: number, most: number) => `${held.toLocaleString(LOCALE)} of ${most.toLocaleString(LOCALE)}`,
  bytesOf: (held: number, most: number) => `${bytes(held)} of ${bytes(most)}`,
  fileMost: "Largest file",
  bytes,
  usageOffline: "How much is used is known when the server answers.",
  password: "Password",
  passwordHint:
    "With it and your email you sign in on other devices. To set it signs every other browser of this account out.",
  current: "Current password",
  currentHint: "Leave it empty if there is none yet.",
  new: "New password",
  newHint: "At least 10 characters.",
  change: "Set the password",
  changed: "The password is set. Other browsers are signed out.",
  signOut: "Sign out",
  signOutTitle: "Sign out of this browser?",
  signOutKeep: "Keep what is on this device",
  signOutKeepHint: "Whoever uses this device can read it, and it opens without a network.",
  signOutWipe: "Wipe this device",
  signOutWipeHint: "The server keeps what it has.",
  /** Empty: nothing. */
  wouldLose(changes: number, files: number, texts: number): string {
    const lost = [
      changes && count(changes, "change", "changes"),
      files && count(files, "file", "files"),
      texts && `${count(texts, "text", "texts")} of yours kept here`,
    ].filter(Boolean);
    return lost.length ? `On this device alone, and would be lost: ${lost.join(", ")}.` : "";
  },
  mayLose:
    "The server has not answered yet: whether it has everything is not known. What it lacks would be lost.",
  devices: "Accounts on this device",
  thisOne: "In use",
  remove: "Remove from this device",
  removeOf: (email: string) => `Remove ${email} from this device`,
  removeSure: (email: string) =>
    `Remove ${email} from this device? The server keeps what it has. What was never synced is lost.`,
  switch: "To switch, sign out and sign in as the other account. Accounts never mix.",
  appearance: "Appearance",
  theme: "Theme",
  light: "Light",
  dark: "Dark",
  auto: "As the system",
  storage: "Storage on this device",
  used: (held: number, most: number) => `${bytes(held)} used; the browser allows ${bytes(most)}.`,
  persistent: "The browser has promised to keep what is stored here.",
  fleeting:
    "The browser may clear what is stored here when space runs low. What is synced is safe on the server.",
  leftover: (since: string, hasRoom: boolean) =>
    `Text that was deleted since ${date(since)} can still be in this browser's files. It is erased ` +
    (hasRoom ? "within a day." : "when this device has as much free space as the app takes."),
  persist: "Ask the browser to keep it",
  refusedToPersist: "The browser did not promise it. Installing the app often helps.",
  takeout: "Take everything along",
  takeoutHint: "One ZIP in open formats, made on this device: it needs no network.",
  export: "Export everything",
  import: "Bring in an export",
  importHint: "What is here already is left alone.",
  working: "Working…",
  imported: (added: number, existing: number, leftOut: number) =>
    [
      `${count(added, "entry", "entries")} added`,
      existing ? `${existing.toLocaleString(LOCALE)} here already` : "",
      leftOut ? `${leftOut.toLocaleString(LOCALE)} left out, because they are not of this app` : "",
    ]
      .filter(Boolean)
      .join(", ") + ".",
  refused: {
    ZIP_TOO_LARGE: "This file is too large. Nothing was changed.",
    ZIP_TOO_MANY_FILES: "There are too many files in this ZIP. Nothing was changed.",
    ZIP_INFLATES: "What is in this ZIP is too large. Nothing was changed.",
    ZIP_DAMAGED:
      "This ZIP is damaged. Nothing was changed: copy it again, or export again, and bring in that one.",
    ZIP_CUT_OFF:
      "The end of this ZIP is missing, for it was not copied whole. Nothing was changed: copy it again, or export again, and bring in that one.",
    NOT_AN_EXPORT: "This is not an export of Vademecum. Nothing was changed.",
  } satisfies Record<ExportCode, string>,
  install: "Install the app",
  installHint: "It then opens in a window of its own, also without a network.",
  installed: "The app is installed.",
  installByMenu: "Use “Install” or “Add to home screen” in the browser's menu.",
  about: "About",
  aboutText:
    "Your documents, your conversations, on your devices and your server. No request goes anywhere else.",
  api: "The server's API",
  licence: "Apache License 2.0",
} as const;
