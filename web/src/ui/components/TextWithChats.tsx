import { Anchor } from "@mantine/core";
import { Fragment } from "react";
import { Link } from "wouter";

/** Placeholder for the links: the value of a message's argument `{chats}`. */
export const CHATS = "\n";

interface Props {
  /** A message, formatted with `CHATS` for its argument `{chats}`. Without that argument, `chats` must be empty. */
  text: string;
  chats: readonly { id: string; title: string }[];
}

/** Show a text with links to chats in place of `CHATS`. */
export function TextWithChats({ text, chats }: Props) {
  const [before, after] = text.split(CHATS);
  return (
    <>
      {before}
      {chats.map(({ id, title }, index) => (
        <Fragment key={id}>
          {index > 0 && ", "}
          <Anchor component={Link} href={`/s/${id}`} dir="auto" inherit underline="always">
            {title}
          </Anchor>
        </Fragment>
      ))}
      {after}
    </>
  );
}
