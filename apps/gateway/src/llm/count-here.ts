import type { Encoding } from '@presign/providers';
import { indexLeftOut, type LeftOut, type LongText } from '@presign/schema';
import type { LlmGrant } from '../grant/verify.ts';
import { type CountMemory, keyOfText } from '../share/count-memory.ts';
import { workOfMs } from '../share/read-quota.ts';
import type { SavedOf } from './hold.ts';
import type { CountReply } from './large-body.ts';
import type { LlmDeps } from './llm-deps.ts';
import { countReply, type planRead } from './plan-read.ts';

/** A call whose body the event loop may read once more. */
export type CountedHere = {
  readonly raw: Buffer;
  readonly accountId: string;
  readonly read: () => {
    /** The long texts of the body. */
    readonly texts: readonly LongText[];
    /** Plans the call again. */
    readonly again: (savedOf: SavedOf) => ReturnType<typeof planRead>;
  };
};

type Deps = Pick<LlmDeps, 'counts' | 'readQuota' | 'bodyWorkers' | 'bodyMemory'>;

/**
 * Counts a call by texts that have been counted before. A worker counts the others. The count is the same as that of a worker that has
 * the whole body.
 * @returns undefined if the other texts cannot be counted now, because there is no memory or too many bodies are waiting
 */
export async function countHere(
  deps: Deps,
  grant: LlmGrant,
  here: CountedHere,
): Promise<CountReply | undefined> {
  const charged = <T>(work: () => T): T => {
    const began = performance.now();
    const result = work();
    deps.readQuota.take(grant, workOfMs(performance.now() - began));
    return result;
  };
  const { planned, encoding, found, again } = charged(() => lookUp(deps.counts, here));
  const unknown = found.filter(({ saved }) => saved === undefined);
  if (!encoding || unknown.length === 0) return countReply(planned);
  if (!(await countUnknown(deps, grant, encoding, unknown))) return undefined;
  let next = 0;
  return countReply(charged(() => again(() => () => found[next++]?.saved ?? 0)));
}

/** A text of a body, as JSON. */
type Found = { readonly key: string; readonly json: string | Uint8Array; saved: number | undefined };

/** Plans a call by the texts that are remembered, and lists all that it counts, in the order in which a plan reads them. */
function lookUp(counts: CountMemory, here: CountedHere) {
  const found: Found[] = [];
  const { texts, again } = here.read();
  let of: Encoding | undefined;
  const planned = again((encoding) => {
    of = encoding;
    return (text) => {
      const json = jsonOf(here.raw, texts, text);
      const key = keyOfText(here.accountId, encoding, json);
      const saved = counts.get(key);
      found.push({ key, json, saved });
      return saved ?? 0;
    };
  });
  return { planned, encoding: of, found, again };
}

/** The JSON of a text: the bytes of the body, if it was left out. */
function jsonOf(raw: Buffer, texts: readonly LongText[], text: string | LeftOut): string | Uint8Array {
  if (typeof text === 'string') return JSON.stringify(text);
  const place = texts[indexLeftOut(text)];
  if (!place) throw new Error('a text that was left out has no place');
  return raw.subarray(place.start - 1, place.end + 1);
}

/** @returns false if they were not counted */
async function countUnknown(
  { counts, bodyWorkers, bodyMemory }: Deps,
  grant: LlmGrant,
  encoding: Encoding,
  unknown: readonly Found[],
): Promise<boolean> {
  const size = unknown.reduce((sum, { json }) => sum + Buffer.byteLength(json) + 1, 1);
  const memory = bodyMemory.newReservation();
  memory.belongsTo(grant.id);
  try {
    if (!memory.reserve(size)) return false;
    const saved = await bodyWorkers.countTexts(grant, { bytes: listOf(unknown, size), encoding });
    if (!saved) return false;
    for (const [i, each] of unknown.entries()) {
      each.saved = saved[i] ?? 0;
      counts.set(each.key, each.saved);
    }
    return true;
  } finally {
    memory.release();
  }
}

/** A JSON list of texts, in memory of its own. */
function listOf(texts: readonly Found[], size: number): Uint8Array {
  const list = Buffer.from(new ArrayBuffer(size));
  let at = 0;
  for (const { json } of texts) {
    at += list.write(at === 0 ? '[' : ',', at);
    if (typeof json === 'string') at += list.write(json, at);
    else {
      list.set(json, at);
      at += json.length;
    }
  }
  list.write(']', at);
  return list;
}
