/** Sentences of the frame around every page. Short and concrete: what happened, what is safe, what to do. */

import { LOCALE } from "./locale.ts";

export const places = {
  app: "Vademecum",
  menu: "Menu",
  newConversation: "New conversation",
  find: "Find",
  conversations: "Conversations",
  searchConversations: "Search conversations",
  noConversations: "Your conversations will be listed here.",
  noneFits: "No conversation has these words in its title.",
  more: "Show more",
  projects: "Projects",
  inProject: "Project",
  noProject: "No project",
  projectOf: (title: string) => `Project of “${title}”`,
  actionsOf: (title: string) => `Rename, move or delete “${title}”`,
  rename: "Rename",
  newTitle: "New title",
  cancel: "Cancel",
  delete: "Delete",
  deleted: (title: string) =>
    `“${title}” is being deleted. Its documents, and what was remembered from it, stay.`,
  undo: "Undo",
  documents: "Documents",
  documentsOf: (held: number, most: number) =>
    `${held.toLocaleString(LOCALE)} / ${most.toLocaleString(LOCALE)}`,
  memory: "Memory",
  settings: "Settings",
  loading: "Opening what is on this device…",
  failedToOpen: "This page could not open what is stored on this device. Nothing was changed.",
  noSpace:
    "There is not enough free space on this device to open your data. Nothing was lost. Make room by deleting files or apps you do not need, then reload this page. Do not clear this site's data.",
  cleared:
    "This browser removed what the app kept on this device. What was synced is safe on the server, and comes back when the app is loaded again.",
  closed: "This browser closed what the app keeps on this device. All of it is still there.",
  waits:
    "Another tab has this app open in another version. Close that tab or load it again: this page then goes on by itself. Everything is safe.",
  outdated:
    "A newer version of this app has been opened on this device, and what is kept here has its form now. Everything is safe: load the new version.",
  notCarriedOver:
    "This version of the app could not bring what is kept on this device into its form. Nothing was lost: all of it is still here as it was, and it is tried again each time that the page is loaded.",
  reload: "Load again",
  unloaded:
    "A part of this page could not be loaded. The question that you are writing is kept when you load it again.",
  undrawn:
    "This cannot be shown, which is a fault of this app. What is kept on this device is as it was: go elsewhere, or load it again.",
  undrawnApp:
    "This app cannot be shown, which is a fault of it. What is kept on this device is as it was: load it again.",
  skip: "Skip to the conversation",
  newer: "A new version is here. What you are writing is kept.",
  asked:
    "A newer version in another tab waits until this page is loaded again. Finish what you are writing here first.",
  loadVersion: "Load the new version",
  later: "Later",
  unreachable: "The server does not answer. Nothing was changed.",
} as const;
