/** How the members of an Office file name each other. */

import type { Archive } from "./zip_container.ts";
import { Unreadable } from "../../result.ts";
import { elements } from "../../markup/xml.ts";

export interface Relation {
  id: string;
  type: string;
  place: string;
}

/**
 * What a member of the archive refers to within it, by the names that are meant. Addresses elsewhere are what somebody has
 * typed, and may be none.
 */
export function relationsOf(archive: Archive, member: string): Relation[] {
  const slash = member.lastIndexOf("/") + 1;
  const listed = archive.named(`${member.slice(0, slash)}_rels/${member.slice(slash)}.rels`);
  if (listed === undefined) return [];
  const within = elements(archive.xml(listed)).filter(
    ({ attributes }) => attributes.get("TargetMode") !== "External",
  );
  return within.map(({ attributes }) => {
    const place = new URL(attributes.get("Target") ?? "", `zip:///${member}`).pathname.slice(1);
    return {
      id: attributes.get("Id") ?? "",
      type: attributes.get("Type") ?? "",
      place: archive.named(place) ?? place,
    };
  });
}

/** Return the main member: the one that the package names, or else the usual one. Throws Unreadable. */
export function mainOf(archive: Archive, usual: string): string {
  const named = byType(relationsOf(archive, ""), "officeDocument").find((place) => archive.has(place));
  const main = named ?? archive.named(usual);
  if (main === undefined) throw new Unreadable("DAMAGED");
  return main;
}

export function byId(relations: readonly Relation[], id: string | undefined): string {
  const found = relations.find((relation) => relation.id === id);
  if (!found) throw new Unreadable("DAMAGED");
  return found.place;
}

/** `type`: the last word of the relation's address. */
export function byType(relations: readonly Relation[], type: string): string[] {
  return relations.filter((relation) => relation.type.endsWith(`/${type}`)).map(({ place }) => place);
}
