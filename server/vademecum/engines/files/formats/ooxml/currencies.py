"""Define patterns of currency symbols and names. web/src/parsers/formats/ooxml/currencies.ts has the same patterns."""

SYMBOLS = "$¢-¥₠-⃀฿৳﷼"  # for use inside a character class
NAME = r"[A-Z]{3}|[Kk]r\.?|zł|Kč|Ft|Rs\.?|TL|лв\.?|руб\.?|S/\.?"
CURRENCY = rf"[A-Z]{{0,3}}[{SYMBOLS}]|{NAME}"
