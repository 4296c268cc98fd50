import * as z from 'zod';
import type { Declared } from '../bounds/declared.ts';
import { FEE_UNITS } from '../facts/rates.ts';
import { isPrintable } from '../kept/listed.ts';

/** The source of an operator's entry, and when that source was read. */
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
      z.strictObject({
        ...cited,
        effect: z.literal('refused'),
        reason: z.string().min(1).max(200).refine(isPrintable, 'expected one line of plain text'),
      }),
    ])
    .transform(({ source: _, date: __, ...declared }): Declared => declared);

/** Why an entry is refused. For an invalid name: the rule that the name breaks. */
export const whyOf = (issue: z.core.$ZodIssue | undefined): string | undefined =>
  issue?.code === 'invalid_key' ? issue.issues[0]?.message : issue?.message;

export const SOURCE = z.string().min(1).max(500);
export const DATE = z.iso.date();
