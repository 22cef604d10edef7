/** Which texts a device treats as secrets. */

import { looksSecret } from "../../../../web/src/core/secrets/secretHeuristics.ts";

test.each([
  ...[
    "Password: swordfish",
    "das Passwort = hund",
    "my api key: abc",
    "TOKEN=abc",
    "The password is swordfish.",
  ],
  ...[
    "the password for the router: x",
    "ghp_0123456789abcdef",
    "AKIAIOSFODNN7EXAMPLE",
    "sk-abcdefgh12345678",
  ],
  ...["-----BEGIN RSA PRIVATE KEY-----", "https://ada:love@host.test", "x aB3dE5gH7jK9mN1pQ3sT y"],
])("%j looks like a secret", (text) => expect(looksSecret(text)).toBe(true));

test.each([
  "The rent is 940 euros.",
  "Where does the canary sing?",
  "d41d8cd98f00b204e9800998ecf8427e",
  "a task-list",
])("%j does not look like a secret", (text) => expect(looksSecret(text)).toBe(false));
