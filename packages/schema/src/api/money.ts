import { z } from 'zod';

const MICROUSD = `expected a whole number of microdollars (1 dollar = 1000000) from 0 to ${Number.MAX_SAFE_INTEGER}`;

/**
 * Money on the wire and in every store: a whole number of microdollars
 * (1 dollar = 1,000,000), at most 2^53 − 1 so that JavaScript and Lua hold it exactly.
 */
export const microusd = z.int(MICROUSD).min(0, MICROUSD);
