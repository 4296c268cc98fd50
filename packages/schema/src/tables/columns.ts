import { bigint, customType, integer, timestamp } from 'drizzle-orm/pg-core';

/** Microdollars and counts: whole numbers up to 2^53 − 1. */
export const whole = () => bigint({ mode: 'number' });
/** A moment with its zone. */
export const time = () => timestamp({ withTimezone: true, mode: 'date' });

/** JSON stored as text: the JSON types of Postgres refuse or rewrite values that callers may send (NUL, forms of numbers). */
export const jsonText = <T>() =>
  customType<{ data: T; driverData: string }>({
    dataType: () => 'text',
    toDriver: (value) => JSON.stringify(value),
    fromDriver: (value) => JSON.parse(value) as T,
  })();

/** Counts changes. The first revision is 1. */
export const revision = () => integer().notNull().default(1);
