import type { Doubt } from '@presign/providers';
import type { Refusal } from '@presign/schema';
import { type Meter, type Works, watchWorks } from '@presign/service/metrics';
import type { CallReport } from './call-report.ts';
import type { OpenSockets } from './share/open-sockets.ts';
import { countWaits, type Waits } from './share/waits.ts';

/** The gateway's own figures, as docs/reference/metrics.md lists them. */
export type GatewayMetrics = {
  /**
   * Counts a call that ended. `provider` is a name that the operator gave; `name` is bounded, and is the provider's or that of a
   * request's field; the others are ours.
   * @param ms how long the call took
   */
  readonly callEnded: (call: CallReport, refusal: Refusal | undefined, ms: number) => void;
  /** Counts holds whose gateway stopped renewing them. */
  readonly leasesExpired: (holds: number) => void;
  /** Counts a settle or refund that gave up waiting for Redis for want of memory. */
  readonly settleDropped: () => void;
  readonly work: Works<GatewayWork>;
};

/** The work of a gateway that no request causes. */
export type GatewayWork = 'ended_calls' | 'lease_sweep' | 'leases' | 'refused_calls' | 'revocations';

// Bounds of buckets, in seconds.
const OWN = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5];
const UPSTREAM = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600];
const RATIO = [1, 1.25, 1.5, 2, 3, 5, 10, 20, 50, 100, 1_000];

/** Makes the instruments once. To record a value with a label takes about 0.4 µs, so a call records few. */
export function gatewayMetrics(meter: Meter): GatewayMetrics {
  const counter = (name: string, description: string, unit = 'calls') =>
    meter.createCounter(name, { description, unit });
  const histogram = (name: string, description: string, unit: string, explicitBucketBoundaries: number[]) =>
    meter.createHistogram(name, { description, unit, advice: { explicitBucketBoundaries } });
  const seconds = (name: string, description: string, bounds: number[]) =>
    histogram(name, description, 'seconds', bounds);

  const calls = counter('presign_calls_total', 'Calls that ended, by how they ended');
  const refusals = counter(
    'presign_refusals_total',
    'Calls that the gateway answered with an error of its own',
  );
  const own = seconds('presign_own_seconds', 'The part of a call that is the gateway and its stores', OWN);
  const admit = seconds(
    'presign_admit_seconds',
    'How long Redis took to count a call and to hold its cost',
    OWN,
  );
  const upstream = seconds(
    'presign_upstream_seconds',
    'From the start of a call to the upstream to the end of its answer',
    UPSTREAM,
  );
  const firstByte = seconds(
    'presign_first_byte_seconds',
    'From the arrival of a request to the first byte of the answer of the upstream',
    UPSTREAM,
  );
  const ratio = histogram('presign_hold_cost_ratio', 'The hold of a call by its cost', 'ratio', RATIO);
  const cost = counter('presign_cost_microdollars_total', 'Charges of calls', 'microdollars');
  const overruns = counter('presign_overruns_total', 'Calls that cost more than their hold');
  const socketClosed = closedCounter(meter);
  const unknown = unknownCounter(counter);
  const doubted = doubtCounters(counter);
  // An alert needs a value before the first event.
  overruns.add(0);

  const callEnded: GatewayMetrics['callEnded'] = (call, refusal, ms) => {
    const { kind, provider = '', end, upstreamMs, bodyMs, firstByteAt, beganAt, admitMs } = call;
    unknown(call);
    socketClosed(call);
    calls.add(1, { kind, provider, outcome: outcomeOf(call, refusal) });
    if (refusal) refusals.add(1, { kind, code: refusal.code });
    own.record(Math.max(0, ms - upstreamMs - bodyMs) / 1_000, { kind });
    if (admitMs > 0) admit.record(admitMs / 1_000);
    if (upstreamMs > 0) upstream.record(upstreamMs / 1_000, { provider });
    if (firstByteAt > 0) firstByte.record((firstByteAt - beganAt) / 1_000, { provider });
    if (!end) return;
    if (kind === 'llm') doubted(provider, end.doubt);
    const { costMicrousd = 0, heldMicrousd = 0, overrunMicrousd = 0 } = end;
    if (costMicrousd > 0) {
      cost.add(costMicrousd, { provider });
      if (heldMicrousd > 0) ratio.record(heldMicrousd / costMicrousd);
    }
    if (overrunMicrousd > 0) overruns.add(1);
  };
  return { callEnded, ...countUnsettled(meter), work: watchWorks(meter, 'gateway') };
}

/** Counts sockets by the cause of their close. */
function closedCounter(meter: Meter): (call: Pick<CallReport, 'closed'>) => void {
  const closed = meter.createCounter('presign_sockets_closed_total', {
    description: 'Sockets that closed, by the side or the reason that closed them',
    unit: 'sockets',
  });
  // The series of this cause begins at 0 when the gateway starts.
  closed.add(0, { cause: 'holder' });
  return ({ closed: how }) => {
    if (how) closed.add(1, { cause: how.cause });
  };
}

/** Counts calls whose gateway did not settle them. */
function countUnsettled(meter: Meter): Pick<GatewayMetrics, 'leasesExpired' | 'settleDropped'> {
  const expired = meter.createCounter('presign_leases_expired_total', {
    description: 'Holds that no gateway renewed, and that were settled in full',
    unit: 'holds',
  });
  const dropped = meter.createCounter('presign_settles_dropped_total', {
    description: 'Settles and refunds that gave up waiting for Redis for want of memory',
    unit: 'calls',
  });
  for (const each of [expired, dropped]) each.add(0);
  return { leasesExpired: (holds) => expired.add(holds), settleDropped: () => dropped.add(1) };
}

/** Counts what calls ask for and this version does not know, by its name. */
function unknownCounter(
  counter: (name: string, description: string) => ReturnType<Meter['createCounter']>,
): (call: Pick<CallReport, 'provider' | 'unbounded'>) => void {
  const unbounded = counter(
    'presign_unbounded_calls_total',
    'Calls that were refused for a field, kind, beta or model without a bound or a price',
  );
  const nameOf = boundNames();
  return ({ provider = '', unbounded: name }) => {
    if (name !== undefined) unbounded.add(1, { provider, name: nameOf(provider, name) });
  };
}

/** Counts answers whose usage is in doubt. Contradictions of a provider begin at 0 with its first call, because an alert needs that. */
function doubtCounters(
  counter: (name: string, description: string) => ReturnType<Meter['createCounter']>,
): (provider: string, doubt: Doubt | undefined) => void {
  const contradictions = counter(
    'presign_usage_contradictions_total',
    'Answers whose usage contradicts itself or what they hold',
  );
  const unknown = counter(
    'presign_unknown_usage_total',
    'Answers with a count or a part that may cost money and is not counted',
  );
  const nameOf = boundNames();
  const seen = new Set<string>();
  return (provider, doubt) => {
    if (!seen.has(provider)) for (const why of CONTRADICTIONS) contradictions.add(0, { provider, why });
    seen.add(provider);
    if (doubt?.why === 'unknown')
      for (const name of doubt.names) unknown.add(1, { provider, name: nameOf(provider, name) });
    else if (doubt) contradictions.add(1, { provider, why: doubt.why });
  };
}

const CONTRADICTIONS = ['falls', 'twice', 'parts', 'no_input', 'no_output', 'model'];

/** Providers or holders choose these names, so their number is bounded: later ones are `other`. */
function boundNames(): (provider: string, name: string) => string {
  const known = new Set<string>();
  return (provider, name) => {
    const key = `${provider} ${name}`;
    if (!known.has(key) && known.size >= MOST_NAMES) return 'other';
    known.add(key);
    return name;
  };
}

/** So many names of all providers together. */
const MOST_NAMES = 100;

/** Exposes the holds of calls under way. */
export function watchHolds(
  meter: Meter,
  leases: { readonly held: () => { readonly holds: number; readonly microusd: number } },
): void {
  const gauge = (name: string, description: string, unit: string) =>
    meter.createObservableGauge(name, { description, unit });
  gauge('presign_holds', 'Calls under way, and ended ones that are not settled yet', 'holds').addCallback(
    (result) => result.observe(leases.held().holds),
  );
  gauge('presign_held_microdollars', 'Money that these calls hold', 'microdollars').addCallback((result) =>
    result.observe(leases.held().microusd),
  );
}

/** Exposes how many sockets are open, as each of their bounds counts them. */
export function watchSockets(meter: Meter, sockets: Pick<OpenSockets, 'counts'>): void {
  const gauge = meter.createObservableGauge('presign_open_sockets', {
    description: 'Sockets that are open, as each of their bounds counts them',
    unit: 'sockets',
  });
  gauge.addCallback((result) => {
    for (const [bound, count] of Object.entries(sockets.counts())) result.observe(count, { bound });
  });
}

/** Counts and exposes the calls that wait for the first byte of their provider. */
export function watchWaits(meter: Meter): Waits {
  const waits = countWaits();
  const calls = meter.createObservableGauge('presign_waiting_calls', {
    description: 'LLM calls that were sent and have no byte of an answer yet',
    unit: 'calls',
  });
  const silent = meter.createObservableGauge('presign_silent_seconds', {
    description: 'How long such calls have waited without a first byte for any of them',
    unit: 'seconds',
  });
  meter.addBatchObservableCallback(
    (result) => {
      for (const { provider, calls: waiting, silentMs } of waits.all()) {
        result.observe(calls, waiting, { provider });
        result.observe(silent, silentMs / 1_000, { provider });
      }
    },
    [calls, silent],
  );
  return waits;
}

/** `refused`: before it was admitted. `served`: a request that is no call and was answered. */
function outcomeOf({ end }: CallReport, refusal: Refusal | undefined): string {
  if (!end) return refusal ? 'refused' : 'served';
  return end.ended === 'complete' && end.code === 'provider_error' ? end.code : end.ended;
}
