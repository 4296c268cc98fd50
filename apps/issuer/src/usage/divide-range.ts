import { DAY_STARTS, type LocalPeriod, localPeriods } from '@presign/schema';

/** The marks of an account in milliseconds. All but the first are at a midnight in UTC. */
export type UsageMarks = {
  /** Calls before it are in the sums of their days. Later calls are not. */
  readonly summedMs: number;
  /** Calls before it may be gone from the ledger. */
  readonly keptMs: number;
  /** Sums before it are deleted, or about to be. */
  readonly sumsMs: number;
  /** Days before it have no pieces. */
  readonly dividedMs: number;
};

/** Some pieces of a UTC day, and the zone's day that contains them. */
export type PartOfDay = {
  readonly day: string;
  readonly first: number;
  readonly last: number;
  readonly local_day: string;
};

/** A report's range, divided: calls of the ledger, whole days from their sums, and parts of days from the sums of their pieces. */
export type DividedRange = {
  readonly calls: readonly (readonly [from: number, to: number])[];
  /**
   * A run of whole UTC days, given by its first day and the day after its last. If days or months of a zone are requested, each UTC day
   * lies in one of them.
   */
  readonly days:
    | { readonly from: number; readonly to: number; readonly without: readonly number[] }
    | undefined;
  readonly parts: readonly PartOfDay[];
};

type Asked = {
  readonly from: number;
  readonly to: number;
  /** The zone and the unit in which calls are grouped. Undefined: neither by days nor by months of a zone other than UTC. */
  readonly local: { readonly zone: string; readonly unit: 'day' | 'month' } | undefined;
};

const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;
export const floorDay = (ms: number) => Math.floor(ms / DAY_MS) * DAY_MS;
export const ceilDay = (ms: number) => Math.ceil(ms / DAY_MS) * DAY_MS;
export const dayText = (ms: number) => new Date(ms).toISOString().slice(0, 10);

const LAST = DAY_STARTS.length - 1;
const startOf = (piece: number) => (DAY_STARTS[piece] ?? 0) * MINUTE_MS;
/** The index of the piece of the day that contains a moment. */
const pieceOf = (ms: number) => DAY_STARTS.findLastIndex((_, piece) => startOf(piece) <= ms - floorDay(ms));
const floorPiece = (ms: number) => floorDay(ms) + startOf(pieceOf(ms));
const ceilPiece = (ms: number) => {
  if (floorPiece(ms) === ms) return ms;
  return pieceOf(ms) === LAST ? ceilDay(ms) : floorDay(ms) + startOf(pieceOf(ms) + 1);
};
/** Whether a piece begins at a moment. */
export const isDivision = (ms: number): boolean => floorPiece(ms) === ms;

/** Divides a range so that sums answer it, except for less than an hour at each end and the calls that are not summed yet. */
export function divideRange({ from, to, local }: Asked, marks: UsageMarks): DividedRange {
  const periods = local ? localPeriods(local.unit, from, to, local.zone) : [{ from, to, day: '' }];
  const divided = periods.map((period) => dividePeriod(period, local?.unit === 'day', marks));
  const wholes = divided.flatMap(({ days }) => days ?? []);
  const [begin, end] = [wholes[0]?.from, wholes.at(-1)?.to];
  const without = wholes.slice(1).flatMap((next, i) => daysBetween(wholes[i]?.to ?? next.from, next.from));
  return {
    calls: divided.flatMap(({ calls }) => calls),
    days: begin === undefined || end === undefined ? undefined : { from: begin, to: end, without },
    parts: divided.flatMap(({ parts }) => parts),
  };
}

const daysBetween = (from: number, to: number) =>
  Array.from({ length: (to - from) / DAY_MS }, (_, i) => from + i * DAY_MS);

/** Divides a period. Each part of a day of a zone has its day, so there whole days are parts, too. */
function dividePeriod(
  { from, to, day }: LocalPeriod,
  isLocalDay: boolean,
  { summedMs, dividedMs }: UsageMarks,
) {
  const first = ceilPiece(from);
  const isCut = to < summedMs;
  const until = isCut ? floorPiece(to) : summedMs;
  if (first >= until) return { calls: [[from, to] as const], parts: [], days: undefined };
  // The sums of the mark's day contain the calls before the mark.
  const end = isCut ? until : Math.min(ceilDay(until), ceilPiece(to));
  const [begin, over] = [ceilDay(first), floorDay(end)];
  const days = isLocalDay || begin >= over ? [] : [{ from: begin, to: over }];
  const ends = days.length > 0 ? [[first, begin] as const, [over, end] as const] : partsOf(first, end);
  const [parts, old] = [[] as PartOfDay[], [] as (readonly [number, number])[]];
  for (const [partFrom, partTo] of ends.filter(([a, b]) => a < b)) {
    if (partFrom < dividedMs) old.push([partFrom, Math.min(partTo, until)]);
    else {
      const ofDay = dayText(partFrom);
      parts.push({
        day: ofDay,
        first: pieceOf(partFrom),
        last: pieceOf(partTo - 1),
        local_day: day || ofDay,
      });
    }
  }
  const edges = [[from, first] as const, ...old, [until, to] as const].filter(([a, b]) => a < b);
  return { calls: edges, parts, days: days[0] };
}

/** A range by days of UTC. */
function partsOf(from: number, to: number): (readonly [number, number])[] {
  const parts: (readonly [number, number])[] = [];
  for (let begin = from; begin < to; begin = Math.min(to, floorDay(begin) + DAY_MS))
    parts.push([begin, Math.min(to, floorDay(begin) + DAY_MS)]);
  return parts;
}
