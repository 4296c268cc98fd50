import type { BillingProvider, startBillingProvider } from './billing-provider.ts';
import type { Outcome } from './load.ts';
import type { Random } from './random.ts';
import type { Row } from './reckon.ts';

/** Makes the calls of one lane, one after another. */
export type Caller = {
  readonly call: (url: string, model: string, random: Random) => Promise<Outcome>;
  readonly close: () => void;
};

/** A provider that keeps its own books. */
export type Books = Pick<BillingProvider, 'billed' | 'url' | 'close'> & {
  /** The name in these books of the call that a row is about. Without it, the row's model. */
  readonly nameOf?: (row: Row) => string;
};

/** How the calls of a load reach their provider. */
export type Kind = {
  /** Fields of the request that issues their URL. */
  readonly ask: Readonly<Record<string, unknown>>;
  readonly lanes: number;
  readonly newCaller: () => Caller;
  readonly startProvider: (options: Parameters<typeof startBillingProvider>[0]) => Promise<Books>;
  /** Microdollars of the limit for each second of load: most loads reach it near their end. */
  readonly limitASecond: number;
  /** Variables of the services. */
  readonly env: Readonly<Record<string, string>>;
};
