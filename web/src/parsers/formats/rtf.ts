/** Parse RTF. The contents of most destinations, such as fonts, pictures, comments and properties, are skipped. */

import { latin1 } from "../charset/detect.ts";
import { part, RTF, type Parsed } from "../result.ts";

/** Destinations whose contents are skipped. */
const DESTINATIONS = new Set(
  (
    "aftncn aftnsep aftnsepc annotation atnauthor atndate atnicn atnid atnparent atnref atntime atrfend " +
    "atrfstart author background bkmkend bkmkstart blipuid buptim category colorschememapping colortbl " +
    "comment company creatim datafield datastore defchp defpap do doccomm docvar dptxbxtext ebcend " +
    "ebcstart factoidname falt fchars ffdeftext ffentrymcr ffexitmcr ffformat ffhelptext ffl ffname " +
    "ffstattext file filetbl fldinst fldtype fname fontemb fontfile fonttbl " +
    "formfield ftncn ftnsep ftnsepc g generator gridtbl " +
    "hl hlfr hlinkbase hlloc hlsrc hsv htmltag info keycode keywords latentstyles lchars levelnumbers " +
    "leveltext lfolevel linkval list listlevel listname listoverride listoverridetable listpicture " +
    "liststylename listtable lsdlockedexcept macc maccPr mailmerge maln malnScr manager margPr mbar " +
    "mbarPr mbaseJc mbegChr mborderBox mborderBoxPr mbox mboxPr mchr mcount mctrlPr md mdeg mdegHide mden " +
    "mdiff mdPr me mendChr meqArr meqArrPr mf mfName mfPr mfunc mfuncPr mgroupChr mgroupChrPr mgrow " +
    "mhideBot mhideLeft mhideRight mhideTop mhtmltag mlim mlimloc mlimlow mlimlowPr mlimupp mlimuppPr mm " +
    "mmaddfieldname mmath mmathPict mmathPr mmaxdist mmc mmcJc mmconnectstr mmconnectstrdata mmcPr mmcs " +
    "mmdatasource mmheadersource mmmailsubject mmodso mmodsofilter mmodsofldmpdata mmodsomappedname " +
    "mmodsoname mmodsorecipdata mmodsosort mmodsosrc mmodsotable mmodsoudl mmodsoudldata mmodsouniquetag " +
    "mmPr mmquery mmr mnary mnaryPr mnoBreak mnum mobjDist moMath moMathPara moMathParaPr mopEmu mphant " +
    "mphantPr mplcHide mpos mr mrad mradPr mrPr msepChr mshow mshp msPre msPrePr msSub msSubPr msSubSup " +
    "msSubSupPr msSup msSupPr mstrikeBLTR mstrikeH mstrikeTLBR mstrikeV msub msubHide msup msupHide " +
    "mtransp mtype mvertJc mvfmf mvfml mvtof mvtol mzeroAsc mzeroDesc mzeroWid nesttableprops nextfile " +
    "nonesttables objalias objclass objdata object objname objsect objtime oldcprops oldpprops oldsprops " +
    "oldtprops oleclsid operator panose password passwordhash pgp pgptbl picprop pict pn pnseclvl pntext " +
    "pntxta pntxtb printim private propname protend protstart protusertbl pxe result revtbl revtim " +
    "rsidtbl rxe shppict shprslt sn sp staticval stylesheet subject sv svb tc " +
    "template themedata title txe ud upr userprops wgrffmtfilter windowcaption writereservation " +
    "writereservhash xe xform xmlattrname xmlattrvalue xmlclose xmlname xmlnstbl xmlopen"
  ).split(" "),
);
/** Control words and symbols that represent text. */
const TEXT_CONTROLS: Record<string, string> = {
  par: "\n",
  sect: "\n\n",
  page: "\n\n",
  line: "\n",
  tab: "\t",
  emdash: "\u2014",
  endash: "\u2013",
  emspace: "\u2003",
  enspace: "\u2002",
  qmspace: "\u2005",
  bullet: "\u2022",
  lquote: "\u2018",
  rquote: "\u2019",
  ldblquote: "\u201c",
  rdblquote: "\u201d",
  row: "\n",
  cell: "|",
  nestcell: "|",
  "~": "\xa0",
  "\n": "\n",
  "\r": "\r",
  "{": "{",
  "}": "}",
  "\\": "\\",
  "-": "\xad",
  _: "\u2011",
};
/** Map charset numbers of Windows to encodings. */
const CHARSETS: Record<string, string> = {
  77: "macintosh",
  128: "shift_jis",
  129: "euc-kr",
  134: "gbk",
  136: "big5",
  161: "windows-1253",
  162: "windows-1254",
  163: "windows-1258",
  177: "windows-1255",
  178: "windows-1256",
  186: "windows-1257",
  204: "windows-1251",
  222: "windows-874",
  238: "windows-1250",
};
/** Map code pages to encodings. The name of any other encoding is `windows-` and the code page. */
const CODE_PAGES: Record<string, string> = {
  932: "shift_jis",
  936: "gbk",
  949: "euc-kr",
  950: "big5",
  65001: "utf-8",
  10000: "macintosh",
};
const TOKEN =
  /\\([a-z]{1,32})(-?\d{1,10})? ?|\\'([0-9a-f]{2})|\\([^a-z])|([{}])|[\r\n]+|([^\\{}\r\n]+|\\)/giu;
/** Pattern of the mark "ignorable" before destinations with visible text. It is removed, so that they are parsed. */
const VISIBLE_MARK = /\\\*(?=\\(?:footnote|shptxt|shpinst|shpgrp|shp|(?:header|footer)[lrf]?)(?![a-z]))/giu;
/** Map destinations that become separate lines to the control word without which a document does not show them. */
const LINES: Record<string, string> = { footnote: "", shptxt: "", header: "", footer: "" };
for (const kind of ["header", "footer"])
  Object.assign(LINES, { [`${kind}l`]: "\\facingp", [`${kind}r`]: "\\facingp", [`${kind}f`]: "\\titlepg" });
/** Control symbols that represent visible characters. They are skipped in hidden text. */
const VISIBLE_SYMBOLS = new Set([..."{}\\~-_"]);
const FONT = /\\f(\d{1,9})[^;{}]{0,200}?\\fcharset(\d+)/giu;

export function parse(data: Uint8Array): Parsed {
  return { mimeType: RTF, parts: [part(new Reader(latin1(data).replace(VISIBLE_MARK, "")).text())] };
}

/** The state of a group. The end of the group restores the state of the outer group. */
interface State {
  fallbackLength: number; // number of characters after \u that old programs show instead of it
  isSkipped: boolean;
  hiddenBy: ReadonlySet<string>; // control words that hide the text
  isLine: boolean; // whether a line ends at the end of the group
  font: string;
}

class Reader {
  readonly #source: string;
  readonly #lines: ReadonlyMap<string, boolean>; // maps each key of LINES to whether this document shows it
  readonly #fonts = new Map<string, string>();
  readonly #pieces: string[] = [];
  readonly #outerStates: State[] = [];
  #state: State = { fallbackLength: 1, isSkipped: false, hiddenBy: new Set(), isLine: false, font: "" };
  #encoding = "windows-1252";
  #bytes: number[] = []; // collected until a token of another kind, because a character may have several bytes
  #skipCount = 0; // number of characters of a fallback that must still be skipped

  constructor(source: string) {
    this.#source = source;
    this.#lines = new Map(
      Object.entries(LINES).map(([word, condition]) => [word, source.includes(condition)]),
    );
    for (const [, font, charset] of source.matchAll(FONT))
      if (CHARSETS[charset!]) this.#fonts.set(font!, CHARSETS[charset!]!);
  }

  text(): string {
    TOKEN.lastIndex = 0;
    for (let token; (token = TOKEN.exec(this.#source));) {
      const [, word, argument, byte, symbol, brace, text] = token;
      if (!byte) this.#flushBytes();
      if (byte) this.#addByte(byte);
      else if (brace && !this.#openOrCloseGroup(brace)) break;
      else if (word === "bin")
        TOKEN.lastIndex += Math.max(0, Number(argument ?? 0)); // skip the binary data of a picture
      else if (word ?? symbol) this.#control((word ?? symbol)!, argument);
      else if (text) this.#addText(text);
    }
    this.#flushBytes();
    return this.#pieces.join("").replace(/\p{Surrogate}/gu, "\ufffd"); // replace lone surrogates
  }

  /** Open or close a group. Return false if that ends the document. The rest of the file must be ignored. */
  #openOrCloseGroup(brace: string): boolean {
    this.#skipCount = 0;
    if (brace === "{") {
      this.#outerStates.push({ ...this.#state });
      this.#state.isLine = false;
    } else {
      if (this.#state.isLine && !this.#state.isSkipped) this.#pieces.push("\n");
      this.#state = this.#outerStates.pop() ?? this.#state;
    }
    return this.#outerStates.length > 0;
  }

  #control(word: string, argument: string | undefined): void {
    this.#skipCount = 0;
    const isLine = this.#lines.get(word);
    if (word === "*" || DESTINATIONS.has(word) || isLine === false) this.#state.isSkipped = true;
    else if (word === "v" || word === "deleted") this.#hide(word, argument);
    else if (word === "plain") this.#state.hiddenBy = new Set();
    else if (word === "ansicpg") this.#encoding = codePage(argument ?? "");
    if (this.#state.isSkipped) return;
    if (word === "uc") this.#state.fallbackLength = Number(argument ?? 1);
    else if (word === "f") this.#state.font = argument ?? "";
    else if (word === "u") this.#addUnicode(argument);
    else if (isLine) {
      this.#pieces.push("\n");
      this.#state.isLine = word !== "footnote";
    } else if (this.#state.hiddenBy.size && VISIBLE_SYMBOLS.has(word)) return;
    else this.#pieces.push(Object.hasOwn(TEXT_CONTROLS, word) ? TEXT_CONTROLS[word]! : "");
  }

  #hide(word: string, argument: string | undefined): void {
    const hiddenBy = new Set(this.#state.hiddenBy).add(word);
    if (argument === "0") hiddenBy.delete(word);
    this.#state.hiddenBy = hiddenBy;
  }

  /** Add a UTF-16 code unit. RTF writes numbers above 32,767 as negative numbers. */
  #addUnicode(argument: string | undefined): void {
    if (argument && !this.#state.hiddenBy.size)
      this.#pieces.push(String.fromCharCode(Number(argument) & 0xffff));
    this.#skipCount = this.#state.fallbackLength;
  }

  #addByte(digits: string): void {
    if (this.#skipCount > 0) this.#skipCount--;
    else if (this.#isVisible()) this.#bytes.push(Number.parseInt(digits, 16));
  }

  #flushBytes(): void {
    if (this.#bytes.length === 0) return;
    const encoding = this.#fonts.get(this.#state.font) ?? this.#encoding;
    this.#pieces.push(new TextDecoder(encoding).decode(Uint8Array.from(this.#bytes)));
    this.#bytes = [];
  }

  #addText(text: string): void {
    const skipped = Math.min(this.#skipCount, text.length);
    this.#skipCount -= skipped;
    if (this.#isVisible()) this.#pieces.push(text.slice(skipped));
  }

  #isVisible(): boolean {
    return !this.#state.isSkipped && !this.#state.hiddenBy.size;
  }
}

function codePage(number: string): string {
  const name = CODE_PAGES[number] ?? `windows-${number}`;
  try {
    return new TextDecoder(name).encoding;
  } catch (error) {
    if (error instanceof RangeError) return "windows-1252"; // the default for an unknown code page
    throw error;
  }
}
