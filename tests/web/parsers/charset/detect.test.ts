/** Detect encodings. The same cases for the server: tests/unit/engines/files/charset/test_detect.py. */

import { decode } from "../../../../web/src/parsers/charset/detect.ts";

/** Return one byte per character. */
const bytes = (text: string) => Uint8Array.from(text, (character) => character.charCodeAt(0));

const GERMAN = "Müller, die Größe der Häuser in München";

test.each(["utf-16", "UTF-16LE", "utf-16be", "unicode", "ucs-2", "x-user-defined"])(
  "an encoding declaration of %s is ignored",
  (name) => {
    for (const text of [
      `<?xml version="1.0" encoding="${name}"?>\n<a>${GERMAN}</a>`,
      `# charset: ${name}\n${GERMAN}.`,
    ])
      expect(decode(bytes(text))).toBe(text);
  },
);

test("a possible declared encoding is used after an impossible one", () => {
  const text = "charset=utf-16 charset=windows-1251 \xc4\xee\xe3\xee\xe2\xee\xf0";
  expect(decode(bytes(text))).toBe("charset=utf-16 charset=windows-1251 Договор");
});
