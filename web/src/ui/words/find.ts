/** Sentences of finding, and of the keys. */

export const find = {
  placeholder: "Find conversations, documents, memories, commands",
  nothing: "Nothing has these words.",
  sessions: "Conversations",
  documents: "Documents",
  facts: "Facts",
  projects: "Projects",
  memories: "Remembered",
  commands: "Commands",
  syncNow: "Look for changes now",
  theme: "Light or dark",
  keysTitle: "Keys",
  key: "Key",
  does: "What it does",
  keys: [
    ["Enter", "Send"],
    ["Shift Enter", "Break the line"],
    ["Esc", "Stop an answer, or close what is open"],
    ["↑", "Edit the last message, from an empty line"],
    ["Mod K", "Find"],
    ["Mod N", "New conversation (in the installed app)"],
    ["Mod J", "Documents"],
    ["F2", "Rename the conversation in the list"],
    ["Delete", "Delete the conversation in the list"],
    ["?", "Show these keys"],
  ],
} as const;
