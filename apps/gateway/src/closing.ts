/** What would keep a closing gateway open for ever, and ends when it begins to close: streams that only wait. */
export type Closing = {
  /** Calls `end` once closing begins, until the returned function is called. */
  readonly onClose: (end: () => void) => () => void;
  readonly begin: () => void;
};

export function createClosing(): Closing {
  const ends = new Set<() => void>();
  return {
    onClose: (end) => {
      ends.add(end);
      return () => ends.delete(end);
    },
    begin: () => {
      for (const end of [...ends]) end();
    },
  };
}
