/** Sentences of the documents. Short and concrete: what happened, what is safe, what to do. */

import { ago, count } from "./count.ts";
import { kept } from "./kept.ts";
import { bytes, date, month } from "./measures.ts";
import { LOCALE } from "./locale.ts";

const documentsOf = (n: number) => count(n, "document", "documents");

export const documents = {
  title: "Documents",
  add: "Add files",
  search: "Search the documents by name",
  searchShort: "Search by name",
  nothingNamed: "No document has such a name.",
  loading: "Loading your documents",
  listed: (n: number) => documentsOf(n),
  sortBy: "Sort by",
  orders: {
    added: "Added",
    used: "Last used",
    name: "Name",
    pages: "Pages",
    size: "Size",
    missed: "Least missed",
  },
  reverse: "Reverse the order",

  select: (name: string) => `Select ${name}`,
  selectAll: "Select all",
  selected: (n: number) => `${n.toLocaleString(LOCALE)} selected`,
  selectNone: "Select none",
  remove: "Delete",
  removeThis: (name: string) => `Delete ${name}`,

  pages: (n: number) => count(n, "page", "pages"),
  size: bytes,
  added: (at: string) => `added ${date(at)}`,
  used: (at: string) => `used ${ago(at)}`,
  onServer: "On this device and the server",
  onlyHere: "On this device only",
  notYetThere: "On this device, waiting for the server",
  unborrowed: "In no conversation",
  borrowedBy: "In",
  more: (n: number) => `${n.toLocaleString(LOCALE)} more`,

  states: {
    reading: "Reading",
    failed: "Failed",
    refused: "On this device only",
    embedding: (done: number, of: number) =>
      `Preparing search: ${done.toLocaleString(LOCALE)} of ${of.toLocaleString(LOCALE)}`,
  },
  failedWithout: "Its text could not be prepared. Delete it and add the file again.",
  tryAgain: "Try again",
  tryAgainWith: (name: string) => `Try again with ${name}`,
  chooseWhat: "Choose what to delete",
  keepHere: "Keep on this device",
  keepThisHere: (name: string) => `Keep on this device: ${name}`,

  meter: {
    label: "Room",
    documents: (held: number, most: number) => `${held.toLocaleString(LOCALE)} of ${documentsOf(most)}`,
    bytes: (held: number, most: number) => `${bytes(held)} of ${bytes(most)}`,
    asOf: (at: string) => `as the server counted ${ago(at)}`,
    onlyHere: (n: number) => `${documentsOf(n)} only on this device`,
    tier: (tier: string) => `${tier} account`,
    room: (n: number) =>
      n > 0 ? `Room for ${n.toLocaleString(LOCALE)} more.` : "There is no room for another document.",
    suggested: (n: number, since: string) => {
      const these = n === 1 ? "One" : `These ${n.toLocaleString(LOCALE)}`;
      // "Not since this month" would say nothing.
      if (month(since) === month(new Date().toISOString()))
        return `${these} ${n === 1 ? "was" : "were"} used longest ago.`;
      return `${these} ${n === 1 ? "has" : "have"} not been used since ${month(since)}.`;
    },
    choose: "Choose what to delete",
  },

  deletion: {
    title: (names: readonly string[]) =>
      names.length === 1 ? `Delete ${names[0]}?` : `Delete ${documentsOf(names.length)}?`,
    titleAll: (n: number) => `Delete all ${documentsOf(n)}?`,
    goes: (n: number) =>
      n === 1
        ? "Its text goes from all your devices, and no search finds it any more."
        : "Their texts go from all your devices, and no search finds them any more.",
    facts: (n: number, many: boolean) =>
      `${count(n, "fact", "facts")} drawn from ${many ? "them" : "it"} ${n === 1 ? "stays" : "stay"}, marked “source removed”.`,
    answers: "Conversations keep their answers.",
    cancel: "Keep",
    confirm: (n: number) => (n === 1 ? "Delete" : `Delete ${documentsOf(n)}`),
  },

  empty: {
    title: "Your documents come here",
    kept,
    tries: [
      {
        title: "Add a file",
        text: "Drop it anywhere in this window, or choose it: PDF, Word, text, web pages.",
      },
      {
        title: "Ask about it",
        text: "In a conversation, ask in your own words. Every answer names where it is from.",
      },
      { title: "Go offline", text: "Reading, searching and asking go on without a network." },
    ],
    sample: "Add a sample document",
    sampleHint: "A page about tides. Delete it whenever you like.",
  },
} as const;
