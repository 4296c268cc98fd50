import { z } from 'zod';

/**
 * Money on the wire and in every store: a whole number of microdollars
 * (1 dollar = 1,000,000), at most 2^53 − 1 so that JavaScript and Lua hold it exactly.
 */
export const microusd = z.int({ error: 'expected a whole number of microdollars' }).min(0);
