/** The numbers by which an answer cites passages: `[1]`, `[1, 3]`, `[^1]` and `【1】`. */

/** Pattern of a citation. The first group has its numbers. */
export const CITATION = /[[［【〔]\^?([0-9]{1,4}(?:[ ,;]{1,3}[0-9]{1,4}){0,20})[\]］】〕]/gu;
/** Code, in which numbers in brackets are no citations. */
const CODE = /^(`{3,}|~{3,})[^]*?(?:^\1|$(?![^]))|`[^`\n]*`/gmu;

/** Return the numbers of a citation, such as "1, 3". */
export function numbersIn(citation: string): number[] {
  return (citation.match(/[0-9]+/gu) ?? []).map(Number);
}

/** Return the numbers that an answer cites, in the order in which it first cites them. */
export function citedNumbers(answer: string): number[] {
  const found = answer.replace(CODE, " ").matchAll(CITATION);
  return [...new Set([...found].flatMap(([, numbers]) => numbersIn(numbers!)))];
}
