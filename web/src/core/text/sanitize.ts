/**
 * Text from outside, so that it cannot pass for a part of the prompt: neutral, and still readable. The twin of
 * server/vademecum/model/text/sanitize.py, which says why; shared cases: tests/conformance/sanitize.json.
 */

import { limitMarkRuns } from "./normalization.ts";
import { mapAssigned } from "./unicode14.ts";

const LINE_END = /\r\n|[\r\x0b\x0c\x1c-\x1f\x85\u2028\u2029]/gu;
const HIDDEN =
  /[\0-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\xad\u180e\u200b\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff\u{e0000}-\u{e0fff}]/gu;
const BLANK =
  " \\t\\xa0\\u1680\\u2000-\\u200f\\u202f\\u205f\\u2800\\u3000\\u034f\\u061c\\u115f\\u1160\\u17b4\\u17b5\\u180b-\\u180f\\u3164\\uffa0" +
  "\\ufe00-\\ufe0f\\u{1bca0}-\\u{1bca3}\\u{1d173}-\\u{1d17a}";
const OPEN =
  "\\[\\{<［｛＜【〔〖〘〚⟦⟨❲⁅「『《〈﹝﹛" +
  "｢\\u2329︗︷︹︻︽︿﹁﹃﹇﹤⌈⌊❬❮❰❴⟅⟪⟬⦃⦉⦋⦍⦏⦑⦗⧼⸢⸤" +
  "⹕⹗⦇⦓⦕⎡⎣⸂⸄⸉⸌⸦˂ᐸ";
const CLOSE =
  "\\]\\}>］｝＞】〕〗〙〛⟧⟩❳⁆」』》〉﹞﹜" +
  "｣\\u232a︘︸︺︼︾﹀﹂﹄﹈﹥⌉⌋❭❯❱❵⟆⟫⟭⦄⦊⦌⦎⦐⦒⦘⧽⸣⸥" +
  "⹖⹘⦈⦔⦖⎤⎦⸃⸅⸊⸍⸧˃ᐳ";
const BRACKETED = new RegExp(`(?<![${OPEN}])[${OPEN}]+([^${OPEN}${CLOSE}]*)[${CLOSE}]+`, "gu");
const UNCLOSED = new RegExp(
  `^([${BLANK}]*)[${OPEN}]+(?![${OPEN}])(?=[^${OPEN}${CLOSE}\\n]*(?:[${OPEN}]|$))([^\\n]*)`,
  "gmu",
);
const HEADER_WORDS = ["context", "system", "assistant", "instruction", "prompt", "imstart", "imend"];
const HEADERS = [
  ...["inst", "sys", "user", "human"],
  ...["toolcall", "toolcalls", "toolresponse", "toolresults", "availabletools"],
];
const ANGLE_MARK = new RegExp(
  "^(?:/?(?:s|bos|eos|sop|eop|AI|用户|role|think|start_of_turn|end_of_turn|(?:seed|minimax):[a-z_]+|sep|eoh|eoa|_bot|_end" +
    "|(?:SPECIAL_|extra_id_|reserved_|unused)[0-9]+|(?:BOS|EOS|EOP)_TOKEN)" +
    "|[|｜][a-z_]+|[a-z_]+[|｜])$",
  "u",
);
const SQUARE_MARK =
  /^(?:[|](?:tool|endofturn)[|]|[gs]MASK|unused[0-9]+|\/?THINK|ARGS|CALL_ID|TOOL_CONTENT)$/u;
const BROKEN_MARK = /(?!\[[^[\]]{2,3}\])[[\]](~!?[a-z]|!?[a-z]~)[[\]]/gu;
const BAR = "|｜";
const HEADER_LETTERS = 60;
const COLON = ":：﹕∶꞉︓˸։׃";
const LABELLED = new RegExp(`^([^\\n${COLON}]*)[${COLON}]`, "gmu");
const LABELS = ["source", "user", "human", "assistant", "system", "theusersaid", "theanswerwas"];
const HEADINGS = ["instruction", "response"];
const DASH =
  "\\-\\u2010-\\u2015\\u2212\\u2500\\u2501\\u2550\\ufe58\\ufe63\\uff0d" +
  "\\u02d7\\u058a\\u1806\\u2043\\u207b\\u208b\\u23af\\u2796\\u2e3a\\u2e3b\\ufe31\\ufe32" +
  "\\u05be\\u1400\\u2504\\u2505\\u2508\\u2509\\u254c\\u254d\\u2e40\\u2e5d\\u30fc\\u3161\\u4e00";
const RULE = new RegExp(`^[${BLANK}]*(?:[${DASH}][${BLANK}]*){3,}$`, "gmu");
const DOTS = "· · ·";
const QUOTE = /["＂“”„‟″〃]/gu;
const BREAKS = /[\n\t]+/gu;
const NO_LETTER = /[^a-z]+/gu;
const LOOKS = [
  ..."АВЕКМНОРСТУХІЅЈаекморстухіѕјΑΒΕΗΙΚΜΝΟΡΤΥΧαεικορτυχ",
  ..."ԁһԛԝүӏԌԜ",
  ..."օսոցհզՍՕՏԼ",
  ..."ⲀⲂⲤⲈⲎⲒⲔⲘⲚⲞⲢⲦⲬⲨⲁⲃⲥⲉⲏⲓⲕⲙⲛⲟⲣⲧⲭⲩ",
  ..."ꓐꓑꓓꓔꓖꓗꓙꓚꓜꓝꓟꓠꓡꓢꓣꓦꓧꓪꓫꓬꓮꓰꓲꓳꓴ",
  ..."ᎠᎡᎢᎪᎫᎬᎳᎷᎻᏀᏃᏒᏙᏚᏞᏟᏢᏦᏴᎩ",
  ..."ꭰꭱꭲꭺꭻꭼꮃꮇꮋꮐꮓꮢꮩꮪꮮꮯꮲꮶꭹ",
  ..."ᴀʙᴄᴅᴇꜰɢʜɪᴊᴋʟᴍɴᴏᴘʀꜱᴛᴜᴠᴡʏᴢ",
  ..."ıȷɑɡ",
  ..."ØøĐđĦħŁłŦŧƀƁƂƃƇƈƊƋƌƑƒƓƗƘƙƚƝƞƟƤƥƫƬƭƮƲƳƴƵƶǤǥȠȡȤȥȴȵȶȺȻȼȽȾȿɀɃɆɇɈɉɋɌɍɎɏɓɕɖɗɠɦɨɫɬɭɱɲɳɼɽɾʂʈʋʐʑʝʠᵬ",
  ..."ᵭᵮᵯᵰᵱᵲᵳᵴᵵᵶᵽᶀᶁᶂᶃᶄᶅᶆᶇᶈᶉᶊᶌᶍᶎᶏᶑᶒᶖᶙỾỿⱠⱡⱢⱣⱤⱥⱦⱧⱨⱩⱪⱫⱬⱮⱱⱲⱳⱴⱸⱺⱾⱿꝀꝁꝂꝃꝄꝅꝈꝉꝊꝋꝌꝍꝐꝑꝒꝓꝔꝕꝖꝗꝘꝙꝞꝟꞎꞐꞑꞒꞓꞔꞕꞖꞗꞘꞙꞠ",
  ..."ꞡꞢꞣꞤꞥꞦꞧꞨꞩꞪꞭꞲꞸꞹꟄꟅꟆꟇꟈꟉꟊꬴꬷꬸꬹꬺꬻꭉꭎꭒꭖꭗꭘꭙꭚƐɛєҫҪҼҽѲѳӨөҲҳҬҭҚқҰұ",
  ..."ᗩᗷᑕᗪᖴᕼᒍᒪᗰᑎᑭᑫᖇᑌᐯᗯ᙭",
];
const LATIN = [
  ..."ABEKMHOPCTYXISJaekmopctyxisjABEHIKMNOPTYXaeikoptux",
  ..."dhqwylGW",
  ..."ounghqUOSL",
  ..."ABCEHIKMNOPTXYabcehikmnoptxy",
  ..."BPDTGKJCZFMNLSRVHWXYAEIOU",
  ..."DRTAJEWMHGZRVSLCPKBY",
  ..."drtajewmhgzrvslcpky",
  ..."abcdefghijklmnoprstuvwyz",
  ..."ijag",
  ..."OoDdHhLlTtbBBbCcDDdFfGIKklNnOPptTtTVYyZzGgNdZzlntACcLTszBEeJjqRrYybcddghilllmnnrrrstvzzjqb",
  ..."dfmnprrstzpbdfgklmnprsvxzadeiuYyLlLPRatHhKkZzMvWwveoSZKkKkKkLlOoOoPpPpPpQqQqVvlNnCcchBbFfG",
  ..."gKkNnRrSsHLJUuCSZDdSselllmnruuxxxxyEeecCEeOoOoXxTtKkYy",
  ..."ABCDFHJLMNPqRUVWX",
];
const TWINS = new Map(LOOKS.map((look, at) => [look, LATIN[at] ?? look]));
for (const first of [0x1f150, 0x1f170]) {
  for (let n = 0; n < 26; n += 1) TWINS.set(String.fromCodePoint(first + n), String.fromCharCode(97 + n));
}

/** `text` without anything that could pass for a delimiter of the prompt. */
export function sanitize(text: string): string {
  return text
    .replace(LINE_END, "\n")
    .replace(HIDDEN, "")
    .replace(BRACKETED, (whole: string, inside: string) =>
      isTurnMark(whole, inside) || isHeader(inside) ? `(${inside})` : whole,
    )
    .replace(BROKEN_MARK, "($1)")
    .replace(UNCLOSED, (whole, before: string, inside: string) =>
      isHeader(inside) ? `${before}(${inside}` : whole,
    )
    .replace(LABELLED, (whole, label: string) => (isLabel(label) ? `${label} -` : whole))
    .replace(RULE, DOTS);
}

/** Neutral, and on one line: for names and for the lines of a list. */
export function sanitizeLine(text: string): string {
  const line = sanitize(text).replace(BREAKS, " ");
  let [start, end] = [0, line.length]; // a regular expression for both ends takes the square of a run of blanks
  while (line[start] === " ") start += 1;
  while (end > start && line[end - 1] === " ") end -= 1;
  return line.slice(start, end);
}

/** Neutral, in double quotes. Those within become single ones, as in print, so that none ends it. */
export function quote(text: string): string {
  return `"${sanitize(text).replace(QUOTE, "'")}"`;
}

function isTurnMark(whole: string, inside: string): boolean {
  if (whole.includes("[") && SQUARE_MARK.test(inside)) return true;
  if (!whole.includes("<")) return false;
  const letters = [...inside];
  const isFit = letters.length > 2 && letters.length <= HEADER_LETTERS;
  return (isFit && BAR.includes(letters[0]!) && BAR.includes(letters.at(-1)!)) || ANGLE_MARK.test(inside);
}

function isHeader(inside: string): boolean {
  return readings(inside).some(
    (read) =>
      HEADERS.includes(read) ||
      (read.length <= HEADER_LETTERS && HEADER_WORDS.some((word) => read.includes(word))),
  );
}

function isLabel(label: string): boolean {
  const isHeading = label.trimStart().startsWith("#");
  return readings(label).some((read) => LABELS.includes(read) || (isHeading && HEADINGS.includes(read)));
}

/** What the eye may read: a zero is a number, or an O. */
function readings(text: string): string[] {
  return text.includes("0") ? [letters(text), letters(text.replaceAll("0", "O"))] : [letters(text)];
}

/** The Latin letters that the eye sees, in lower case, and nothing between them. */
function letters(text: string): string {
  return mapAssigned(limitMarkRuns(text), latin).replace(NO_LETTER, "");
}

function latin(text: string): string {
  const seen = text.replaceAll("Ϲ", "C").replaceAll("ϲ", "c"); // which NFKD makes ordinary sigmas of
  const looks = Array.from(seen.normalize("NFKD"), (letter) => TWINS.get(letter) ?? letter);
  return looks.join("").toLowerCase();
}
