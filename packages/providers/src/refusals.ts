import { isJsonObject } from './json.ts';

/** Whether a vendor charges for a call that it answered with an error. */
export type Billing = 'free' | 'billed' | 'undocumented';

/** Errors of a vendor; `undocumented` if it does not say which of them are billed. */
export type VendorRefusals = readonly VendorRefusal[] | 'undocumented';

/** An error of a vendor, and whether it is billed. */
export type VendorRefusal = {
  readonly status: number;
  /** Set if only errors with this code are meant. */
  readonly code?: string;
  readonly billing: Billing;
};

/**
 * Whether a vendor bills an error, by its own documentation.
 * @param codes the error's codes (`errorCodesIn`); undefined if its body could not be read, in which case an error
 *   that is billed under some code counts as billed
 * @returns `undocumented` for an error that is not listed
 */
export function billingOf(
  refusals: VendorRefusals,
  status: number,
  codes: readonly string[] | undefined,
): Billing {
  const listed = refusals === 'undocumented' ? [] : refusals.filter((refusal) => refusal.status === status);
  const meant = listed.filter(
    ({ code, billing }) =>
      code === undefined || (codes === undefined ? billing === 'billed' : codes.includes(code)),
  );
  return meant.find(({ billing }) => billing === 'billed')?.billing ?? meant[0]?.billing ?? 'undocumented';
}

/** The codes of an error, wherever an API family keeps them: `code`, `type` and `status`, at the top or in `error`. */
export function errorCodesIn(answer: unknown): readonly string[] {
  const first: unknown = Array.isArray(answer) ? answer[0] : answer;
  const holders = isJsonObject(first) ? [first, first.error] : [];
  return holders
    .filter(isJsonObject)
    .flatMap(({ code, type, status }) => [code, type, status])
    .filter((code) => typeof code === 'string');
}
