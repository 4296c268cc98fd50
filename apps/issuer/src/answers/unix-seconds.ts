/** A time as answers have it: in whole Unix seconds. */
export const unixSeconds = (time: Date): number => Math.floor(time.getTime() / 1000);

/** An end of a report's range, in Unix seconds. It stays exact: the next report begins where this one ends. */
export const exactSeconds = (time: Date): number => time.getTime() / 1000;

/** The time of an issue, or of an end that an answer names: as whole as the answer says it. */
export const wholeSecond = (ms: number): Date => new Date(Math.floor(ms / 1000) * 1000);
