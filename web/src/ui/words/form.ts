/** On the buttons of what is written by hand. */
export const form = { save: "Save", cancel: "Cancel" } as const;
