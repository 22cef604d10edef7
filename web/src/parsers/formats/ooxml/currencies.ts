/** Symbols and names of currencies, as in server/vademecum/engines/files/formats/ooxml/currencies.py. */

/** Symbols, for use in a character class of a regular expression. */
export const SYMBOLS = "$¢-¥₠-⃀฿৳﷼";
export const NAME = String.raw`[A-Z]{3}|[Kk]r\.?|zł|Kč|Ft|Rs\.?|TL|лв\.?|руб\.?|S/\.?`;
export const CURRENCY = String.raw`[A-Z]{0,3}[${SYMBOLS}]|${NAME}`;
