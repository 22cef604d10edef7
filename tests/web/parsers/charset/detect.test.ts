/** Letters out of bytes, on the device. What the server makes of the same: tests/unit/engines/files/charset/test_detect.py. */

import { decode } from "../../../../web/src/parsers/charset/detect.ts";

/** A byte a letter. */
const bytes = (text: string) => Uint8Array.from(text, (letter) => letter.charCodeAt(0));

const GERMAN = "Müller, die Größe der Häuser in München";

test.each(["utf-16", "UTF-16LE", "utf-16be", "unicode", "ucs-2", "x-user-defined"])(
  "a text whose bytes name %s is not in it",
  (name) => {
    for (const said of [
      `<?xml version="1.0" encoding="${name}"?>\n<a>${GERMAN}</a>`,
      `# charset: ${name}\n${GERMAN}.`,
    ])
      expect(decode(bytes(said))).toBe(said);
  },
);

test("a name that may be true is believed, also behind one that may not", () => {
  const said = "charset=utf-16 charset=windows-1251 \xc4\xee\xe3\xee\xe2\xee\xf0";
  expect(decode(bytes(said))).toBe("charset=utf-16 charset=windows-1251 Договор");
});
