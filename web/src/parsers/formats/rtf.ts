/** RTF: its words, and not what its destinations (fonts, pictures, notes, properties) hold. */

import { latin1 } from "../charset/detect.ts";
import { part, RTF, type Read } from "../result.ts";

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
const SIGNS: Record<string, string> = {
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
/** Windows' numbers for alphabets, and those of code pages whose name is another. */
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
/** Programs that do not know these pass over them; they are read where they stand. */
const SEEN = /\\\*(?=\\(?:footnote|shptxt|shpinst|shpgrp|shp|(?:header|footer)[lrf]?)(?![a-z]))/giu;
/** What is a line of its own, and what the document must say for it to be shown. */
const LINES: Record<string, string> = { footnote: "", shptxt: "", header: "", footer: "" };
for (const place of ["header", "footer"])
  Object.assign(LINES, {
    [`${place}l`]: "\\facingp",
    [`${place}r`]: "\\facingp",
    [`${place}f`]: "\\titlepg",
  });
const UNSHOWN = new Set([..."{}\\~-_"]); // signs of a hidden text
const FONT = /\\f(\d{1,9})[^;{}]{0,200}?\\fcharset(\d+)/giu;

export function parse(data: Uint8Array): Read {
  return { mimeType: RTF, parts: [part(new Reader(latin1(data).replace(SEEN, "")).text())] };
}

/** What holds until the group ends. */
interface State {
  skip: number; // letters after a \u that say the same for old programs
  unseen: boolean;
  hiding: ReadonlySet<string>; // why its letters are not shown
  isLine: boolean; // one that ends with it
  font: string;
}

class Reader {
  readonly #source: string;
  readonly #lines: ReadonlyMap<string, boolean>; // whether each of LINES is shown
  readonly #fonts = new Map<string, string>();
  readonly #pieces: string[] = [];
  readonly #around: State[] = [];
  #state: State = { skip: 1, unseen: false, hiding: new Set(), isLine: false, font: "" };
  #encoding = "windows-1252";
  #bytes: number[] = []; // of letters in the font's encoding, which may take two
  #left = 0; // letters that are still to be skipped

  constructor(source: string) {
    this.#source = source;
    this.#lines = new Map(Object.entries(LINES).map(([word, said]) => [word, source.includes(said)]));
    for (const [, font, charset] of source.matchAll(FONT))
      if (CHARSETS[charset!]) this.#fonts.set(font!, CHARSETS[charset!]!);
  }

  text(): string {
    TOKEN.lastIndex = 0;
    for (let found; (found = TOKEN.exec(this.#source));) {
      const [, word, argument, byte, sign, brace, letters] = found;
      if (!byte) this.#endBytes();
      if (byte) this.#byte(byte);
      else if (brace && !this.#group(brace)) break;
      else if (word === "bin")
        TOKEN.lastIndex += Math.max(0, Number(argument ?? 0)); // a picture, as it is
      else if (word ?? sign) this.#control((word ?? sign)!, argument);
      else if (letters) this.#letters(letters);
    }
    this.#endBytes();
    return this.#pieces.join("").replace(/\p{Surrogate}/gu, "\ufffd"); // halves that found no other
  }

  /** False: the document ends; what follows is no part of it. */
  #group(brace: string): boolean {
    this.#left = 0;
    if (brace === "{") {
      this.#around.push({ ...this.#state });
      this.#state.isLine = false;
    } else {
      if (this.#state.isLine && !this.#state.unseen) this.#pieces.push("\n");
      this.#state = this.#around.pop() ?? this.#state;
    }
    return this.#around.length > 0;
  }

  #control(word: string, argument: string | undefined): void {
    this.#left = 0;
    const isLine = this.#lines.get(word);
    if (word === "*" || DESTINATIONS.has(word) || isLine === false) this.#state.unseen = true;
    else if (word === "v" || word === "deleted") this.#hide(word, argument);
    else if (word === "plain") this.#state.hiding = new Set();
    else if (word === "ansicpg") this.#encoding = codePage(argument ?? "");
    if (this.#state.unseen) return;
    if (word === "uc") this.#state.skip = Number(argument ?? 1);
    else if (word === "f") this.#state.font = argument ?? "";
    else if (word === "u") this.#numbered(argument);
    else if (isLine) {
      this.#pieces.push("\n");
      this.#state.isLine = word !== "footnote";
    } else if (this.#state.hiding.size && UNSHOWN.has(word)) return;
    else this.#pieces.push(Object.hasOwn(SIGNS, word) ? SIGNS[word]! : "");
  }

  #hide(word: string, argument: string | undefined): void {
    const hiding = new Set(this.#state.hiding).add(word);
    if (argument === "0") hiding.delete(word);
    this.#state.hiding = hiding;
  }

  /** Letters beyond the first 32,767 are written as negative numbers. */
  #numbered(argument: string | undefined): void {
    if (argument && !this.#state.hiding.size)
      this.#pieces.push(String.fromCharCode(Number(argument) & 0xffff));
    this.#left = this.#state.skip;
  }

  #byte(digits: string): void {
    if (this.#left > 0) this.#left--;
    else if (this.#isSeen()) this.#bytes.push(Number.parseInt(digits, 16));
  }

  #endBytes(): void {
    if (this.#bytes.length === 0) return;
    const encoding = this.#fonts.get(this.#state.font) ?? this.#encoding;
    this.#pieces.push(new TextDecoder(encoding).decode(Uint8Array.from(this.#bytes)));
    this.#bytes = [];
  }

  #letters(letters: string): void {
    const skipped = Math.min(this.#left, letters.length);
    this.#left -= skipped;
    if (this.#isSeen()) this.#pieces.push(letters.slice(skipped));
  }

  #isSeen(): boolean {
    return !this.#state.unseen && !this.#state.hiding.size;
  }
}

function codePage(number: string): string {
  const name = CODE_PAGES[number] ?? `windows-${number}`;
  try {
    return new TextDecoder(name).encoding;
  } catch (error) {
    if (error instanceof RangeError) return "windows-1252"; // nobody knows this one
    throw error;
  }
}
