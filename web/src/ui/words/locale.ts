/**
 * The locale of dates and numbers: the app is in English, so they are too. Of a person's languages their own kind of
 * English counts, because of the order of day and month.
 */
export const LOCALE = globalThis.navigator?.languages?.find((language) => /^en\b/iu.test(language)) ?? "en";
