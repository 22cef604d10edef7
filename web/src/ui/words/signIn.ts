/** Sentences of the way in. Short and concrete: what happened, what is safe, what to do. */

export const signIn = {
  title: "Sign in",
  email: "Email",
  password: "Password",
  button: "Sign in",
  hint: "No password yet? Whoever runs this server makes you a sign-in link: vademecum user link EMAIL",
  offline: "The server does not answer. To use Vademecum on this device for the first time, it must.",
  kept: "Kept on this device",
  open: (email: string) => `Open ${email} without signing in`,
} as const;
