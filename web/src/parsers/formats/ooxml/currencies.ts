/** Symbols and names of currencies, as in server/vademecum/engines/files/formats/ooxml/currencies.py. */

export const SYMBOLS = "$¢-¥₠-⃀฿৳﷼"; // to be used in a character class
export const NAME = String.raw`[A-Z]{3}|[Kk]r\.?|zł|Kč|Ft|Rs\.?|TL|лв\.?|руб\.?|S/\.?`;
export const CURRENCY = String.raw`[A-Z]{0,3}[${SYMBOLS}]|${NAME}`;
