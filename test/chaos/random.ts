/** Numbers that look random and are the same for the same seed (mulberry32). */
export type Random = {
  /** A whole number from `least` to `most`. */
  readonly int: (least: number, most: number) => number;
  /** One of them, each as likely as its weight says. */
  readonly pick: <T extends string>(weights: Readonly<Record<T, number>>) => T;
};

export function seeded(seed: number): Random {
  let state = seed >>> 0;
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  return {
    int: (least, most) => least + Math.floor(next() * (most - least + 1)),
    pick: (weights) => {
      const entries = Object.entries(weights) as [keyof typeof weights, number][];
      let left = next() * entries.reduce((sum, [, weight]) => sum + weight, 0);
      for (const [name, weight] of entries) {
        left -= weight;
        if (left < 0) return name;
      }
      return (entries.at(-1) as [keyof typeof weights, number])[0];
    },
  };
}
