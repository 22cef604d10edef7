/** Sentences of the way in. Short and concrete: what happened, what is safe, what to do. */

export const signIn = {
  email: "Email",
  emailHint: "Settings shows it where you are signed in. The first account of a server has owner@localhost.",
  password: "Password",
  button: "Sign in",
  hints: [
    "Signed in on another device? Set a password there, in Settings, and sign in here with it.",
    "Signed in nowhere? Whoever runs this server makes you a sign-in link: vademecum user link EMAIL. That takes your password away and signs you out on every device.",
  ],
  offline: "The server does not answer. To use Vademecum on this device for the first time, it must.",
  kept: "Kept on this device",
  open: (email: string) => `Open ${email} without signing in`,
} as const;
