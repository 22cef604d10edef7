"""How amounts name their currency. Its twin is web/src/parsers/formats/ooxml/currencies.ts."""

SYMBOLS = "$¢-¥₠-⃀฿৳﷼"  # of a set of letters
NAME = r"[A-Z]{3}|[Kk]r\.?|zł|Kč|Ft|Rs\.?|TL|лв\.?|руб\.?|S/\.?"
CURRENCY = rf"[A-Z]{{0,3}}[{SYMBOLS}]|{NAME}"
