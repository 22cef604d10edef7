/** Decode character references of XML and HTML 4. */

/** Names of the consecutive characters from code point 160 on. */
const LATIN =
  "nbsp iexcl cent pound curren yen brvbar sect uml copy ordf laquo not shy reg macr deg plusmn sup2 " +
  "sup3 acute micro para middot cedil sup1 ordm raquo frac14 frac12 frac34 iquest Agrave Aacute Acirc " +
  "Atilde Auml Aring AElig Ccedil Egrave Eacute Ecirc Euml Igrave Iacute Icirc Iuml ETH Ntilde Ograve " +
  "Oacute Ocirc Otilde Ouml times Oslash Ugrave Uacute Ucirc Uuml Yacute THORN szlig agrave aacute " +
  "acirc atilde auml aring aelig ccedil egrave eacute ecirc euml igrave iacute icirc iuml eth ntilde " +
  "ograve oacute ocirc otilde ouml divide oslash ugrave uacute ucirc uuml yacute thorn yuml";
/** Names of all other characters, each followed by the character. */
const OTHERS =
  "OElig Œ oelig œ Scaron Š scaron š Yuml Ÿ fnof ƒ circ ˆ tilde ˜ Alpha Α Beta Β Gamma Γ Delta Δ " +
  "Epsilon Ε Zeta Ζ Eta Η Theta Θ Iota Ι Kappa Κ Lambda Λ Mu Μ Nu Ν Xi Ξ Omicron Ο Pi Π Rho Ρ Sigma Σ " +
  "Tau Τ Upsilon Υ Phi Φ Chi Χ Psi Ψ Omega Ω alpha α beta β gamma γ delta δ epsilon ε zeta ζ eta η " +
  "theta θ iota ι kappa κ lambda λ mu μ nu ν xi ξ omicron ο pi π rho ρ sigmaf ς sigma σ tau τ upsilon υ " +
  "phi φ chi χ psi ψ omega ω thetasym ϑ upsih ϒ piv ϖ ensp \u2002 emsp \u2003 thinsp \u2009 zwnj \u200c " +
  "zwj \u200d lrm \u200e rlm \u200f ndash – mdash — lsquo ‘ rsquo ’ sbquo ‚ ldquo “ rdquo ” bdquo „ " +
  "dagger † Dagger ‡ bull • hellip … permil ‰ prime ′ Prime ″ lsaquo ‹ rsaquo › oline ‾ frasl ⁄ euro € " +
  "image ℑ weierp ℘ real ℜ trade ™ alefsym ℵ larr ← uarr ↑ rarr → darr ↓ harr ↔ crarr ↵ lArr ⇐ uArr ⇑ " +
  "rArr ⇒ dArr ⇓ hArr ⇔ forall ∀ part ∂ exist ∃ empty ∅ nabla ∇ isin ∈ notin ∉ ni ∋ prod ∏ sum ∑ " +
  "minus − lowast ∗ radic √ prop ∝ infin ∞ ang ∠ and ∧ or ∨ cap ∩ cup ∪ int ∫ there4 ∴ sim ∼ cong ≅ " +
  "asymp ≈ ne ≠ equiv ≡ le ≤ ge ≥ sub ⊂ sup ⊃ nsub ⊄ sube ⊆ supe ⊇ oplus ⊕ otimes ⊗ perp ⊥ sdot ⋅ " +
  "lceil ⌈ rceil ⌉ lfloor ⌊ rfloor ⌋ lang 〈 rang 〉 loz ◊ spades ♠ clubs ♣ hearts ♥ diams ♦";

const XML = new Map([
  ["amp", "&"],
  ["lt", "<"],
  ["gt", ">"],
  ["quot", '"'],
  ["apos", "'"],
]);
const HTML = new Map(XML);
for (const [index, name] of LATIN.split(" ").entries()) HTML.set(name, String.fromCharCode(160 + index));
for (const [, name, character] of OTHERS.matchAll(/\b(\w+) (.)/gu)) HTML.set(name!, character!);

const REFERENCE = /&(?:#(\d{1,7}|x[0-9a-f]{1,6})|([a-z]\w*));?/giu;

/** Decode the character references of HTML. References with unknown names are left unchanged. */
export function decodeHtml(text: string): string {
  return text.replace(REFERENCE, (reference, number: string, name: string) =>
    number ? characterOf(number) : (HTML.get(name) ?? reference),
  );
}

/** Decode the character references of XML. Other names refer to entities of the document type and are removed. */
export function decodeXml(text: string): string {
  return text.replace(REFERENCE, (_, number: string, name: string) =>
    number ? characterOf(number) : (XML.get(name) ?? ""),
  );
}

/** Return the character with a number. Like browsers, treat the numbers of C1 control characters as windows-1252. */
function characterOf(number: string): string {
  const code = Number(/^x/iu.test(number) ? `0${number}` : number);
  if (code >= 0x80 && code <= 0x9f) return new TextDecoder("windows-1252").decode(Uint8Array.of(code));
  const isCharacter = code > 0 && code <= 0x10ffff && !(code >= 0xd800 && code <= 0xdfff);
  return isCharacter ? String.fromCodePoint(code) : "\ufffd";
}
