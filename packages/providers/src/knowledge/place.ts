import * as z from 'zod';
import type { Declared } from '../bounds/declared.ts';
import { FEE_UNITS } from '../facts/rates.ts';

/** Where an entry of an operator is from, and when it was read. */
type CitedShape = {
  readonly source: z.ZodType<string | undefined>;
  readonly date: z.ZodType<string | undefined>;
};

/** An entry about a field, or about the kind of an object, with its effect. */
export const placeEntry = (cited: CitedShape) =>
  z
    .discriminatedUnion('effect', [
      z.strictObject({ ...cited, effect: z.enum(['harmless', 'whole window']) }),
      z.strictObject({
        ...cited,
        effect: z.literal('fee'),
        unit: z.enum(FEE_UNITS),
        most: z.int().min(1).max(1_000),
        runs: z.int().min(0).max(1_000),
      }),
      z.strictObject({ ...cited, effect: z.literal('refused'), reason: z.string().min(1).max(200) }),
    ])
    .transform(({ source: _, date: __, ...declared }): Declared => declared);

export const SOURCE = z.string().min(1).max(500);
export const DATE = z.iso.date();
