/** Parse EPUB. The chapters are in the order of the book's spine. */

import { Archive } from "./ooxml/zip_container.ts";
import { decode } from "../charset/detect.ts";
import { htmlParts } from "./html.ts";
import { EPUB, Unreadable, type Parsed } from "../result.ts";
import { every } from "../markup/xml.ts";

export function parse(data: Uint8Array): Parsed {
  const archive = new Archive(data);
  if (archive.mentions("META-INF/encryption.xml", "xmlenc#aes")) throw new Unreadable("ENCRYPTED");
  const [rootfile] = every(archive.xml("META-INF/container.xml"), "rootfile");
  const rootName = rootfile?.attributes.get("full-path");
  if (!rootName) throw new Unreadable("DAMAGED");
  const root = archive.xml(rootName);
  const hrefs = new Map(
    [...every(root, "item")].map(({ attributes }) => [attributes.get("id"), attributes.get("href")]),
  );
  const chapters = new Set<string>();
  for (const { attributes } of every(root, "itemref")) {
    const href = hrefs.get(attributes.get("idref"));
    const name = href ? archive.resolve(memberAddress(rootName, href)) : undefined;
    if (name !== undefined) chapters.add(name);
  }
  const parts = [...chapters].flatMap((name) => htmlParts(decode(archive.bytes(name))));
  return { mimeType: EPUB, parts };
}

/** Return the address of the member to which the link `href` in the member `from` refers, or "" for an invalid link. */
function memberAddress(from: string, href: string): string {
  const base = `zip:///${from}`;
  return URL.canParse(href, base) ? new URL(href, base).pathname.slice(1) : "";
}
