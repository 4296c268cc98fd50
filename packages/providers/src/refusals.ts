import { isJsonObject, textOf } from './json.ts';

/** Whether a vendor charges for a call that it answered with an error. */
export type Billing = 'free' | 'billed' | 'undocumented';

/** The vendor's errors whose billing it documents. All others are undocumented. */
export type VendorRefusals = readonly VendorRefusal[] | 'undocumented';

/** An error of a vendor, and whether it is billed. */
export type VendorRefusal = {
  readonly status: number;
  /** Set if the entry is about errors with this code only. */
  readonly code?: string;
  /** Set if the entry is about errors whose message begins with this text only, because they share their code. */
  readonly messageStart?: string;
  readonly billing: Exclude<Billing, 'undocumented'>;
  /** The fixed fee for a billed error. The hold of every call covers it. */
  readonly feeMicrousd?: number;
};

/** The largest fee that a vendor charges for an error, in microdollars. A call may cost that much however little it asks for. */
export const largestFee = (refusals: VendorRefusals): number =>
  refusals === 'undocumented' ? 0 : Math.max(0, ...refusals.map(({ feeMicrousd = 0 }) => feeMicrousd));

/** The codes and the message of an error's body. */
export type ErrorFacts = { readonly codes: readonly string[]; readonly message: string };

/**
 * Whether a vendor bills an error, according to its own documentation, and its fee where it states one.
 * @param error undefined if the body was not read: the error then counts as billed if any error of its status is
 * @returns `undocumented` for an error that is not listed
 */
export function billingOf(
  refusals: VendorRefusals,
  status: number,
  error: ErrorFacts | undefined,
): { readonly billing: Billing; readonly feeMicrousd?: number } {
  const listed = refusals === 'undocumented' ? [] : refusals.filter((refusal) => refusal.status === status);
  const matching = listed.filter((refusal) => (error ? matches(refusal, error) : mayMatch(refusal)));
  return matching.find(({ billing }) => billing === 'billed') ?? matching[0] ?? { billing: 'undocumented' };
}

const matches = ({ code, messageStart }: VendorRefusal, { codes, message }: ErrorFacts): boolean =>
  (code === undefined || codes.includes(code)) &&
  (messageStart === undefined || message.startsWith(messageStart));

const mayMatch = ({ code, messageStart, billing }: VendorRefusal): boolean =>
  billing === 'billed' || (code === undefined && messageStart === undefined);

/**
 * The codes and the message of an error, wherever an API family keeps them: `code`, `type` and `status`, at the top
 * or in `error`; `message` at either place, or the text of `error` itself.
 */
export function errorFactsIn(answer: unknown): ErrorFacts {
  const first: unknown = Array.isArray(answer) ? answer[0] : answer;
  const top = isJsonObject(first) ? first : {};
  const inner = isJsonObject(top.error) ? top.error : {};
  const codes = [top, inner].flatMap(({ code, type, status }) => [code, type, status]);
  return {
    codes: codes.filter((code) => typeof code === 'string'),
    message: textOf(top.error) || textOf(inner.message) || textOf(top.message),
  };
}
