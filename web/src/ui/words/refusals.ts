/** What the server refused, for people, by its code, where its own words are meant for who writes programs. */

export const refusals: Readonly<Record<string, string>> = {
  DUPLICATE:
    "You already have a conversation that another program knows by the same number. This one stays on this device: delete the other one and try again, or delete this one.",
};
