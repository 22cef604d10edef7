/** EPUB, in the order of its spine. */

import { Archive } from "./ooxml/zip_container.ts";
import { decode } from "../charset/detect.ts";
import { htmlParts } from "./html.ts";
import { EPUB, Unreadable, type Read } from "../result.ts";
import { every } from "../markup/xml.ts";

export function parse(data: Uint8Array): Read {
  const archive = new Archive(data);
  if (archive.mentions("META-INF/encryption.xml", "xmlenc#aes")) throw new Unreadable("ENCRYPTED");
  const [rootfile] = every(archive.xml("META-INF/container.xml"), "rootfile");
  const place = rootfile?.attributes.get("full-path");
  if (!place) throw new Unreadable("DAMAGED");
  const root = archive.xml(place);
  const hrefs = new Map(
    [...every(root, "item")].map(({ attributes }) => [attributes.get("id"), attributes.get("href")]),
  );
  const chapters = new Set<string>();
  for (const { attributes } of every(root, "itemref")) {
    const href = hrefs.get(attributes.get("idref"));
    const name = href ? archive.named(resolved(place, href)) : undefined;
    if (name !== undefined) chapters.add(name);
  }
  const parts = [...chapters].flatMap((name) => htmlParts(decode(archive.bytes(name))));
  return { mimeType: EPUB, parts };
}

/** The member that a link in another one means, as an address; none if it is no link. */
function resolved(from: string, href: string): string {
  const base = `zip:///${from}`;
  return URL.canParse(href, base) ? new URL(href, base).pathname.slice(1) : "";
}
