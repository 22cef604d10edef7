/**
 * Select the facts that are relevant to a question. This module mirrors server/vademecum/model/chat/fact_relevance.py,
 * which explains the rules; both are tested with tests/conformance/prompt.json.
 */

import { compareStrings } from "../../lib/compareStrings.ts";
import type { FactDoc } from "../schema/rows.ts";

type Tokenize = (text: string) => readonly string[];
export type Fact = Pick<
  FactDoc,
  "id" | "key" | "value" | "updatedAt" | "confirmed" | "confidence" | "sourceRemoved"
>;

const COMMON_WORDS = new Set(
  (
    "a about after all also am an and any are as at be been before but by can could did do does for from " +
    "give had has have he her him his how i if in is it its me my no not of on or our she should so tell " +
    "than that the their them then there these they this those to us was we were what when where which " +
    "who whom whose why will with would you your aber auch auf aus bei bin bist das dass dem den der des " +
    "die dir ein eine einem einen einer es fur habe ich ihr im ist kann man mein meine mir mit nach nicht " +
    "oder sich sie sind und uns von vom wann warum welche wem wen wer wie wir wo zu zum zur au aux avec " +
    "ce ces dans de du elle en est et il je la le les leur lui ma mes mon ne nous ou par pas pour " +
    "pourquoi quand que quel quelle qui sa se ses sont sur te tu un une vous al como con cual cuando del " +
    "donde el ella eres esta este las lo los mas mi para pero por porque quien ser si su sus una uno yo " +
    "che chi come da di dove e gli ho non nel per piu quale quando sei sono com em eu meu minha na nao o " +
    "os quem sao tem um uma aan dat deze een het hoe ik met mijn niet op voor waar wat zijn"
  ).split(" "),
);
const CAMEL_CASE = /([a-z0-9])([A-Z])/gu;
const EXTRACTED_ID = /^f[0-9a-f]{32}$/u;

/** Return the terms of a text without common words and single ASCII characters. */
function distinctiveTerms(text: string, tokenize: Tokenize): Set<string> {
  const found = tokenize(text.replace(CAMEL_CASE, "$1 $2"));
  return new Set(found.filter((term) => !COMMON_WORDS.has(term) && !/^[\x00-\x7f]?$/u.test(term)));
}

/**
 * Return the relevant facts: confirmed facts first, then by the number of shared terms, by confidence and by time,
 * newest first. `close` contains the ids of facts that are close in meaning to the question.
 */
export function selectRelevant(
  question: string,
  facts: readonly Fact[],
  tokenize: Tokenize,
  close: ReadonlySet<string> = new Set(),
): Fact[] {
  const questionTerms = distinctiveTerms(question, tokenize);
  return facts
    .map((fact) => ({
      fact,
      shared: countShared(questionTerms, distinctiveTerms(`${fact.key} ${fact.value}`, tokenize)),
    }))
    .filter(({ fact, shared }) => !fact.sourceRemoved && (shared > 0 || close.has(fact.id)))
    .filter(({ fact }) => fact.confirmed || !EXTRACTED_ID.test(fact.id))
    .sort(
      (a, b) =>
        Number(b.fact.confirmed) - Number(a.fact.confirmed) ||
        b.shared - a.shared ||
        b.fact.confidence - a.fact.confidence ||
        compareStrings(b.fact.updatedAt, a.fact.updatedAt) ||
        compareStrings(a.fact.id, b.fact.id),
    )
    .map(({ fact }) => fact);
}

function countShared(a: Set<string>, b: Set<string>): number {
  return [...a].filter((term) => b.has(term)).length;
}
