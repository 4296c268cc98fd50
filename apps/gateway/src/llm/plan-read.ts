import { spendOf } from '@presign/providers';
import { isJsonObject, type Modesty, readWithout, type Scan } from '@presign/schema';
import type { AccountValues } from '../json/known-values.ts';
import { type Need, readContent, scanBody } from './body.ts';
import type { Unplannable } from './hold.ts';
import type { CountReply } from './large-body.ts';
import { type Asked, givesBack, type Plan, planCall } from './plan.ts';

type AskedOfBytes = Omit<Asked, 'content'> & {
  /** The values that are neither scanned nor parsed again. */
  readonly known?: AccountValues;
};

/** Scans the bytes of a body, and looks for texts that its plan does not need, and for values that are known. */
export const scanToPlan = (
  raw: Buffer,
  need: Need,
  { grant, target, rules, known }: AskedOfBytes,
  most: Modesty,
) =>
  scanBody(raw, need, rules.names, most, {
    texts: spendOf(grant.provider, target.path)?.unreadTexts,
    values: known,
  });

/**
 * Parses a body that was scanned, and plans its call. A plan that needs no long text is made without them. If there is none, the body is
 * read whole: only then is a call refused.
 * @param mayReadAgain asked before a body is read whole after it was read without its long texts or known values
 * @returns undefined if it may not
 */
export function planRead(
  raw: Buffer,
  need: Need,
  asked: AskedOfBytes,
  scan: ReturnType<typeof scanBody>,
  mayReadAgain: () => boolean = () => true,
): { plan: Plan } | Unplannable | undefined {
  const light = planLight(raw, asked, scan);
  if (light) return light;
  if (mayBeLight(scan) && !mayReadAgain()) return undefined;
  return planWhole(raw, need, asked, scan);
}

/** The plan of a body without its long texts. Undefined: one is needed, so that the plan throws or is refused. */
export function planLight(
  raw: Buffer,
  asked: AskedOfBytes,
  scan: ReturnType<typeof scanBody>,
): { plan: Plan } | undefined {
  if (!mayBeLight(scan)) return undefined;
  const json = readWithout(raw, scan)?.value;
  if (!isJsonObject(json)) return undefined;
  try {
    const planned = planCall({ ...asked, content: { raw, json, scan, leftOut: scan.texts } });
    if ('refusal' in planned) return undefined;
    asked.known?.keep(raw, scan, json);
    return planned;
  } catch {
    return undefined;
  }
}

/** Whether a body has parts that may be left out, and names that cannot be refused. */
const mayBeLight = (scan: ReturnType<typeof scanBody>): scan is Scan =>
  !('excess' in scan) && scan.ambiguous === undefined && scan.texts.length + scan.values.length > 0;

/** How many bytes of a body are parsed for such a plan. */
export const bytesRead = (raw: Buffer, scan: ReturnType<typeof scanBody>): number =>
  'excess' in scan ? 0 : scan.texts.reduce((left, { start, end }) => left - (end - start), raw.length);

export function planWhole(
  raw: Buffer,
  need: Need,
  asked: AskedOfBytes,
  scan: ReturnType<typeof scanBody>,
): { plan: Plan } | Unplannable {
  const read = readContent(raw, need, scan);
  return 'refusal' in read ? read : planCall({ ...asked, content: read.content });
}

/** The bound of a call that was planned by the tokens of its texts. Undefined: it was not planned. */
export function countReply(
  planned: { readonly plan: Plan } | Unplannable | undefined,
): CountReply | undefined {
  if (!planned || 'refusal' in planned || !givesBack(planned.plan)) return undefined;
  const { hold, inputTokens, worstTokens } = planned.plan;
  return { fixedMicrousd: hold?.fixedMicrousd, inputTokens, worstTokens };
}
