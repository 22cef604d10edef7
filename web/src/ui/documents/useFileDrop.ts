import { useEffect, useEffectEvent, useState } from "react";

/** Takes files that are dropped anywhere in the window. True while some are held above it. */
export function useFileDrop(onFiles: (files: File[]) => void): boolean {
  const [over, setOver] = useState(false);
  const dropped = useEffectEvent(onFiles);
  useEffect(() => {
    const stop = new AbortController();
    const { signal } = stop;
    let depth = 0; // each element that is entered is also left
    const listen = (
      type: "dragenter" | "dragleave" | "dragover" | "drop",
      act: (data: DataTransfer) => void,
    ) =>
      window.addEventListener(
        type,
        (event) => {
          if (!event.dataTransfer?.types.includes("Files")) return; // a text that is moved about
          event.preventDefault(); // the browser would open the file instead
          act(event.dataTransfer);
        },
        { signal },
      );
    listen("dragenter", () => setOver(++depth > 0));
    listen("dragleave", () => setOver(--depth > 0));
    listen("dragover", (data) => void (data.dropEffect = "copy"));
    listen("drop", ({ files }) => {
      setOver((depth = 0) > 0);
      if (files.length > 0) dropped([...files]);
    });
    return () => stop.abort();
  }, []);
  return over;
}
