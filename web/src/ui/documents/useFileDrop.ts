import { useEffect, useEffectEvent, useState } from "react";

/** Call `onFiles` with files that are dropped in the window. Return whether the user is dragging files over it. */
export function useFileDrop(onFiles: (files: File[]) => void): boolean {
  const [isDragging, setDragging] = useState(false);
  const onDrop = useEffectEvent(onFiles);
  useEffect(() => {
    const controller = new AbortController();
    let depth = 0; // dragenter minus dragleave events, because every element under the pointer fires them
    const listen = (
      type: "dragenter" | "dragleave" | "dragover" | "drop",
      handle: (data: DataTransfer) => void,
    ) =>
      window.addEventListener(
        type,
        (event) => {
          if (!event.dataTransfer?.types.includes("Files")) return; // let the browser handle dragged text
          event.preventDefault(); // otherwise the browser would open the file
          handle(event.dataTransfer);
        },
        { signal: controller.signal },
      );
    listen("dragenter", () => setDragging(++depth > 0));
    listen("dragleave", () => setDragging(--depth > 0));
    listen("dragover", (data) => void (data.dropEffect = "copy"));
    listen("drop", ({ files }) => {
      depth = 0;
      setDragging(false);
      if (files.length > 0) onDrop([...files]);
    });
    return () => controller.abort();
  }, []);
  return isDragging;
}
