/**
 * Detect text that looks like a secret. The server recognizes each kind of secret and redacts only the secret itself
 * (server/vademecum/model/secrets/). The app uses a coarser test, which has false positives, and omits the whole text.
 */

const PREFIXED =
  /(?:^|[^\w.-])(?:A(?:KIA|SIA)[A-Z0-9]{8}|gh[pousr]_|github_pat_|gl[a-z]{2,4}-|xox[a-z]-|xapp-|[sr]k[-_]|whsec_|AIza|ya29\.|GOCSPX-|npm_|pypi-|hf_|SG\.|do[opr]_v1_|AGE-SECRET-KEY-|eyJ)[\w-]{8}/u;
const PEM = /-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY/u;
const IN_ADDRESS = /:\/\/[^\s/:@]{0,100}:[^\s/]{1,200}@/u;
/**
 * A word for a secret, followed by a colon or an equals sign. Other words may come between: "the password for the
 * router is: …".
 */
const NAMED =
  /(?:pass(?:word|wort|code|phrase|wd)|kennwort|pwd|token|secret|credential|key|\bpin|mot de passe|contraseña|clave|senha|wachtwoord)[^\n:=]{0,40}[:=]/iu;
const SAID = /(?:pass(?:word|wort|code|phrase|wd)|kennwort|pwd)s?\s+(?:(?:is|was|ist|war|lautet)\s|\S*\d)/iu;
const RUN = /[A-Za-z0-9+/_=-]{20,}/gu;

export function looksSecret(text: string): boolean {
  if ([PREFIXED, PEM, IN_ADDRESS, NAMED, SAID].some((pattern) => pattern.test(text))) return true;
  return (text.match(RUN) ?? []).some((run) => /\d/u.test(run) && /[a-z]/u.test(run) && /[A-Z]/u.test(run));
}
