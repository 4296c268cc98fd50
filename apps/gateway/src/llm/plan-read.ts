import { spendOf } from '@presign/providers';
import type { Modesty } from '@presign/schema';
import { type Need, readContent, readLight, scanBody } from './body.ts';
import type { Unplannable } from './hold.ts';
import type { CountReply } from './large-body.ts';
import { type Asked, givesBack, type Plan, planCall } from './plan.ts';

type AskedOfBytes = Omit<Asked, 'content'>;

/** Scans the bytes of a body, and looks for texts that its plan does not need. */
export const scanToPlan = (raw: Buffer, need: Need, { grant, target, rules }: AskedOfBytes, most: Modesty) =>
  scanBody(raw, need, rules.names, most, spendOf(grant.provider, target.path)?.unreadTexts);

/**
 * Parses a body that was scanned, and plans its call. A plan that needs no long text is made without them. If there is none, the body is
 * read whole: only then is a call refused.
 * @param mayReadAgain asked before a body with long texts is read whole
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
  if (!('excess' in scan) && scan.texts.length > 0 && !mayReadAgain()) return undefined;
  return planWhole(raw, need, asked, scan);
}

/** The plan of a body without its long texts. Undefined: one is needed, so that the plan throws or is refused. */
export function planLight(
  raw: Buffer,
  asked: AskedOfBytes,
  scan: ReturnType<typeof scanBody>,
): { plan: Plan } | undefined {
  const content = readLight(raw, scan);
  if (!content) return undefined;
  try {
    const planned = planCall({ ...asked, content });
    return 'plan' in planned ? planned : undefined;
  } catch {
    return undefined;
  }
}

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
