/** A time as answers and events have it: in Unix seconds. */
export const unixSeconds = (time: Date): number => time.getTime() / 1000;
