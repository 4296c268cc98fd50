import type { JsonObject, Scan } from '@presign/schema';

/** A received body: its bytes, its parsed value, and the results of a scan. */
export type Came = {
  readonly raw: Buffer;
  readonly json: JsonObject;
  readonly scan: Pick<Scan, 'members' | 'compactBytes'>;
};

/**
 * The pieces of a body to send. Unchanged members keep their bytes and are not copied. Most members are unchanged, and serializing a long
 * body takes longer than parsing it.
 * @param sent shares the members of `came.json` that did not change
 */
export function splice(came: Came, sent: JsonObject): readonly Buffer[] {
  const { raw, json, scan } = came;
  if (sent === json) return [raw];
  const pieces: Buffer[] = [];
  let text = '{';
  let run: { readonly at: number; end: number } | undefined;
  const endRun = () => {
    if (!run) return;
    pieces.push(Buffer.from(text), raw.subarray(run.at, run.end));
    [run, text] = [undefined, ','];
  };
  const write = (name: string, value: unknown) => {
    text += `${JSON.stringify(name)}:${JSON.stringify(value)},`;
  };
  for (const { name, at, end } of scan.members) {
    if (isSame(sent, json, name)) {
      if (run) run.end = end;
      else run = { at, end };
      continue;
    }
    endRun();
    if (sent[name] !== undefined) write(name, sent[name]);
  }
  endRun();
  for (const [name, value] of addedTo(json, sent)) write(name, value);
  pieces.push(Buffer.from(`${text.endsWith(',') ? text.slice(0, -1) : text}}`));
  return pieces;
}

/**
 * The two bodies without unchanged lists, such as messages, and without the places of long texts, so that their memory can be freed while
 * the call waits for its admission. `splice` writes the same bytes from them.
 */
export function withoutLists(
  came: Came,
  sent: JsonObject,
): { readonly came: Came; readonly sent: JsonObject } {
  const { raw, json } = came;
  const { members, compactBytes } = came.scan;
  const isLeftOut = (name: string) => Array.isArray(json[name]) && isSame(sent, json, name);
  const light = (body: JsonObject): JsonObject =>
    Object.fromEntries(
      Object.entries(body).map(([name, value]) => [name, isLeftOut(name) ? LEFT_OUT : value]),
    );
  const lightJson = light(json);
  return {
    came: { raw, json: lightJson, scan: { members, compactBytes } },
    sent: sent === json ? lightJson : light(sent),
  };
}

const LEFT_OUT: readonly unknown[] = Object.freeze([]);

/** The most bytes of a body to send, written compactly: at least as many as `JSON.stringify` writes. */
export function compactSize(came: Came, sent: JsonObject): number {
  const { json, scan } = came;
  if (scan.compactBytes === undefined) return sizeOf(sent);
  if (sent === json) return scan.compactBytes;
  let size = scan.compactBytes;
  for (const { name } of scan.members) {
    if (isSame(sent, json, name)) continue;
    size -= sizeOf(json[name]);
    if (sent[name] !== undefined) size += sizeOf(sent[name]);
  }
  for (const [name, value] of addedTo(json, sent)) size += written(name, value).length + 1;
  return size;
}

const isSame = (sent: JsonObject, json: JsonObject, name: string): boolean =>
  sent[name] === json[name] && Object.hasOwn(sent, name);

function addedTo(json: JsonObject, sent: JsonObject): [string, unknown][] {
  const added: [string, unknown][] = [];
  for (const name of Object.keys(sent))
    if (sent[name] !== undefined && !Object.hasOwn(json, name)) added.push([name, sent[name]]);
  return added;
}

const sizeOf = (value: unknown): number => Buffer.byteLength(JSON.stringify(value));

const written = (name: string, value: unknown): Buffer =>
  Buffer.from(`${JSON.stringify(name)}:${JSON.stringify(value)}`);
