/** Parse Office files as various programs write them. The same cases for the server: tests/unit/engines/files. */

import { strFromU8, strToU8, unzipSync, zipSync } from "fflate";
import { parse as epub } from "../../../../../web/src/parsers/formats/epub.ts";
import { relationsOf } from "../../../../../web/src/parsers/formats/ooxml/package.ts";
import { Archive } from "../../../../../web/src/parsers/formats/ooxml/zip_container.ts";
import { DOCX } from "../../../../../web/src/parsers/result.ts";
import { sniff } from "../../../../../web/src/parsers/file_type.ts";
import { parse as slides } from "../../../../../web/src/parsers/formats/ooxml/pptx.ts";
import { parse as workbook } from "../../../../../web/src/parsers/formats/ooxml/xlsx.ts";
import { parse as word } from "../../../../../web/src/parsers/formats/ooxml/docx.ts";

const FORMAT = "http://schemas.openxmlformats.org";
const RELATION = `${FORMAT}/officeDocument/2006/relationships`;

function zipped(members: Record<string, string>): Uint8Array<ArrayBuffer> {
  const bytes = Object.entries(members).map(([name, text]) => [name, strToU8(text)]);
  return new Uint8Array(zipSync(Object.fromEntries(bytes)));
}

function relations(...links: string[]): string {
  return `<Relationships xmlns="${FORMAT}/package/2006/relationships">${links.join("")}</Relationships>`;
}

const link = (address: string) =>
  `<Relationship Id="rId9" Type="${RELATION}/hyperlink" Target="${address}" TargetMode="External"/>`;

function document(...links: string[]): Uint8Array<ArrayBuffer> {
  const body = "<w:body><w:p><w:r><w:t>The lease.</w:t></w:r></w:p></w:body>";
  return zipped({
    "word/document.xml": `<w:document xmlns:w="${FORMAT}/wordprocessingml/2006/main">${body}</w:document>`,
    "word/_rels/document.xml.rels": relations(...links),
  });
}

function deck(...links: string[]): Uint8Array<ArrayBuffer> {
  const spaces = `xmlns:p="${FORMAT}/presentationml/2006/main" xmlns:a="${FORMAT}/drawingml/2006/main" xmlns:r="${RELATION}"`;
  const shape = "<p:sp><p:txBody><a:p><a:r><a:t>The lease.</a:t></a:r></a:p></p:txBody></p:sp>";
  const slide = `<Relationship Id="rId1" Type="${RELATION}/slide" Target="slides/slide1.xml"/>`;
  return zipped({
    "ppt/presentation.xml": `<p:presentation ${spaces}><p:sldIdLst><p:sldId r:id="rId1"/></p:sldIdLst></p:presentation>`,
    "ppt/_rels/presentation.xml.rels": relations(slide),
    "ppt/slides/slide1.xml": `<p:sld ${spaces}><p:cSld><p:spTree>${shape}</p:spTree></p:cSld></p:sld>`,
    "ppt/slides/_rels/slide1.xml.rels": relations(...links),
  });
}

/** Return an archive with its sizes and offsets in ZIP64 fields. */
function withZip64(archive: Uint8Array<ArrayBuffer>, lie = 0n): Uint8Array<ArrayBuffer> {
  const view = new DataView(archive.buffer);
  const end = archive.length - 22;
  const table: number[] = [];
  for (let at = view.getUint32(end + 16, true); at < end;) {
    const name = view.getUint16(at + 28, true);
    const entry = new Uint8Array(46 + name + 28);
    entry.set(archive.subarray(at, at + 46 + name));
    const longer = new DataView(entry.buffer);
    longer.setUint16(30, 28, true);
    longer.setUint16(46 + name, 1, true);
    longer.setUint16(48 + name, 24, true);
    for (const [n, offset] of [24, 20, 42].entries()) {
      const lies = offset === 24 ? lie : 0n;
      longer.setBigUint64(50 + name + 8 * n, BigInt(view.getUint32(at + offset, true)) + lies, true);
      longer.setUint32(offset, 0xffffffff, true);
    }
    table.push(...entry);
    at += 46 + name + view.getUint16(at + 30, true) + view.getUint16(at + 32, true);
  }
  const start = view.getUint32(end + 16, true);
  const all = new Uint8Array(start + table.length + 22);
  all.set(archive.subarray(0, start));
  all.set(table, start);
  all.set(archive.subarray(end), start + table.length);
  new DataView(all.buffer).setUint32(start + table.length + 12, table.length, true);
  return all;
}

test("ZIP64 sizes are read and limited", () => {
  expect(sniff(withZip64(document()), "lease.docx")).toBe(DOCX);
  expect(word(withZip64(document())).parts).toEqual([{ text: "The lease." }]);
  expect(slides(withZip64(deck())).parts).toEqual([{ text: "The lease.", page: 1 }]);
  expect(() => word(withZip64(document(), 1n))).toThrow("DAMAGED");
  for (const lie of [2n ** 24n, 2n ** 28n, 2n ** 40n, 2n ** 63n])
    expect(() => word(withZip64(document(), lie))).toThrow("TOO_EXPANSIVE");
});

test("a ZIP member is found despite other case or encoding of its name", () => {
  const named = (written: string, place: string) => {
    const members = Object.entries(unzipSync(deck()));
    return new Uint8Array(
      zipSync(
        Object.fromEntries(
          members.map(([name, bytes]) => [
            name.replace("slide1.xml", place),
            strToU8(strFromU8(bytes).replace("slides/slide1.xml", `slides/${written}`)),
          ]),
        ),
      ),
    );
  };
  for (const [written, place] of [
    ["slide 1.xml"],
    ["slide%201.xml", "slide 1.xml"],
    ["SLIDE1.xml", "Slide1.XML"],
  ])
    expect(slides(named(written!, place ?? written!)).parts).toEqual([{ text: "The lease.", page: 1 }]);
  expect(() => slides(named("slide2.xml", "slide1.xml"))).toThrow("DAMAGED");
});

test("each chapter of an EPUB is read once", () => {
  const listed = [
    "one.XHTML",
    "a.xhtml",
    "A.xhtml",
    "a.xhtml",
    "a%2520b.xhtml",
    "two%20a.xhtml",
    "100%.xhtml",
    "lost.xhtml",
    "http://[",
  ];
  const items = listed.map((href, n) => `<item id="i${n}" href="${href}"/>`).join("");
  const spine = listed.map((_, n) => `<itemref idref="i${n}"/>`).join("");
  const page = (text: string) => `<html><body><p>${text}</p></body></html>`;
  const book = zipped({
    "META-INF/container.xml": '<container><rootfile full-path="a book/book.opf"/></container>',
    "a book/book.opf": `<package><manifest>${items}</manifest><spine>${spine}</spine></package>`,
    "a book/One.xhtml": page("first"),
    "a book/a.xhtml": page("small"),
    "a book/A.xhtml": page("large"),
    "a book/a%20b.xhtml": page("as it is written"),
    "a book/two a.xhtml": page("second"),
    "a book/100%.xhtml": page("third"),
  });
  expect(epub(book).parts.map(({ text }) => text)).toEqual([
    "first",
    "small",
    "large",
    "as it is written",
    "second",
    "third",
  ]);
});

test("the text of a slide's diagram is read", () => {
  const space = `xmlns:d="${FORMAT}/drawingml/2006/diagram" xmlns:a="${FORMAT}/drawingml/2006/main"`;
  const point = (type: string, ...texts: string[]) =>
    `<d:pt type="${type}"><d:t>${texts.map((t) => `<a:p><a:r><a:t>${t}</a:t></a:r></a:p>`).join("")}</d:t></d:pt>`;
  const points =
    point("doc", "") + point("node", "Sign", "in May") + point("sibTrans", "x") + point("node", "Pay");
  const frame = `<p:graphicFrame><a:graphic><a:graphicData><d:relIds r:dm="rId5"/></a:graphicData></a:graphic></p:graphicFrame>`;
  const listed = `<Relationship Id="rId5" Type="${RELATION}/diagramData" Target="../diagrams/data1.xml"/>`;
  const members = unzipSync(deck(listed));
  const slide = strFromU8(members["ppt/slides/slide1.xml"]!);
  members["ppt/slides/slide1.xml"] = strToU8(
    slide.replace("</p:spTree>", `${frame}</p:spTree>`).replace("<p:sld ", `<p:sld ${space.split(" ")[0]} `),
  );
  members["ppt/diagrams/data1.xml"] = strToU8(
    `<d:dataModel ${space}><d:ptLst>${points}</d:ptLst></d:dataModel>`,
  );
  const { parts } = slides(new Uint8Array(zipSync(members)));
  expect(parts).toEqual([{ text: "The lease.\n\nSign\nin May\nPay", page: 1 }]);
});

test("document2.xml is recognized as a Word document", () => {
  const named = (name: string) => {
    const note = `<w:p><w:r><w:t>The lease.</w:t><w:footnoteReference w:id="2"/></w:r></w:p>`;
    const spaces = `xmlns:w="${FORMAT}/wordprocessingml/2006/main"`;
    return zipped({
      "_rels/.rels": relations(
        `<Relationship Id="a" Type="${RELATION}/officeDocument" Target="word/${name}"/>`,
      ),
      [`word/${name}`]: `<w:document ${spaces}><w:body>${note}</w:body></w:document>`,
      [`word/_rels/${name}.rels`]: relations(
        `<Relationship Id="b" Type="${RELATION}/footnotes" Target="footnotes.xml"/>`,
      ),
      "word/footnotes.xml": `<w:footnotes ${spaces}><w:footnote w:id="2"><w:p><w:r><w:t>In May.</w:t></w:r></w:p></w:footnote></w:footnotes>`,
    });
  };
  for (const name of ["document.xml", "document2.xml", "document13.xml"]) {
    expect(sniff(named(name), "lease.docx")).toBe(DOCX);
    expect(word(named(name)).parts).toEqual([{ text: "The lease.\nIn May." }]);
  }
  expect(() => sniff(named("documents.xml"), "lease.docx")).toThrow("UNSUPPORTED_TYPE");
});

test.each(["http://", "https://exa mple.org", "http://www.example.org:80a/", "http://%zz", "http://[::1"])(
  "a file with the invalid link %s loses no text",
  (address) => {
    expect(word(document(link(address))).parts).toEqual([{ text: "The lease." }]);
    expect(slides(deck(link(address))).parts).toEqual([{ text: "The lease.", page: 1 }]);
  },
);

test("relative and absolute relation targets are resolved", () => {
  const written = ["header1.xml", "./header1.xml", "/word/header1.xml", "../word/header1.xml"];
  const listed = written.map(
    (target) => `<Relationship Id="a" Type="${RELATION}/header" Target="${target}"/>`,
  );
  const found = relationsOf(new Archive(document(...listed)), "word/document.xml");
  expect(found.map(({ target }) => target)).toEqual(written.map(() => "word/header1.xml"));
});

function workbookOf(cell: string): Uint8Array<ArrayBuffer> {
  const main = `xmlns="${FORMAT}/spreadsheetml/2006/main" xmlns:r="${RELATION}"`;
  return zipped({
    "xl/workbook.xml": `<workbook ${main}><sheets><sheet name="Rent" r:id="rId1"/></sheets></workbook>`,
    "xl/_rels/workbook.xml.rels": relations(
      `<Relationship Id="rId1" Type="${RELATION}/worksheet" Target="worksheets/sheet1.xml"/>`,
    ),
    "xl/worksheets/sheet1.xml": `<worksheet ${main}><sheetData><row><c><v>${cell}</v></c></row></sheetData></worksheet>`,
  });
}

test.each([
  ["1.0000000000000001E-5", "1e-05"],
  ["1E-4", "0.0001"],
  ["-1.5E+16", "-1.5e+16"],
  ["1E15", "1000000000000000"],
  ["1e300", "1e+300"],
  ["-1.25e-300", "-1.25e-300"],
  ["-0.0", "0"],
  ["0.0", "0"],
  ["5.0", "5"],
  ["+5", "5"],
  ["0.30000000000000004", "0.3"],
  ["-1.7976931348623157E308", "-1.7976931348623157e+308"],
  ["12345678901234567890", "12345678901234567890"],
])("a cell with the number %s is read as %s", (written, meant) => {
  expect(workbook(workbookOf(written)).parts).toEqual([{ text: meant, section: "Rent" }]);
});
