import {
  closeSync,
  existsSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeSync,
} from 'node:fs';
import { dirname } from 'node:path';
import { crc32 } from 'node:zlib';

/** The state in the log. Entries are replayed in the order of writing. A snapshot replaces all of them. */
export type LoggedState<Entry> = {
  replay(entry: Entry): void;
  snapshot(): Entry[];
};

/**
 * An append-only file of JSON entries, one checksummed line each: an entry is kept as a whole or not at all.
 *
 * `append` returns once the operating system has the entry, which a kill -9 of this process cannot undo; only
 * a snapshot is forced to the disk. A last line cut short is dropped at the next start; damage anywhere else
 * stops it. The caller sees to it that no other process has the file open.
 */
export class AppendLog<Entry> {
  readonly #file: string;
  readonly #state: LoggedState<Entry>;
  readonly #compactAboveBytes: number;
  #descriptor = -1;
  #checksum = 0;
  #bytes = 0;
  #snapshotBytes = 0;

  /** Replays `file` into `state`, then rewrites it compacted. Throws an error that names a damaged file. */
  constructor(file: string, state: LoggedState<Entry>, compactAboveBytes: number) {
    this.#file = file;
    this.#state = state;
    this.#compactAboveBytes = compactAboveBytes;
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
    if (existsSync(file)) for (const entry of readEntries<Entry>(file)) state.replay(entry);
    this.#compact();
  }

  /** Writes one entry. After a throw the file may end in a torn line, so nothing more may be appended. */
  append(entry: Entry): void {
    this.#write(this.#line(entry));
    // Twice the snapshot as well, or live data above the limit would be rewritten on every entry.
    if (this.#bytes > Math.max(this.#compactAboveBytes, 2 * this.#snapshotBytes)) this.#compact();
  }

  close(): void {
    if (this.#descriptor >= 0) closeSync(this.#descriptor);
    this.#descriptor = -1;
  }

  /** The new file takes the old one's name only when it is whole and on the disk. */
  #compact(): void {
    const fresh = `${this.#file}.new`;
    const entries = this.#state.snapshot();
    rmSync(fresh, { force: true });
    this.close();
    this.#descriptor = openSync(fresh, 'ax', 0o600);
    this.#checksum = 0;
    this.#bytes = 0;
    this.#write(this.#line({ ...HEADER, entries: entries.length }));
    for (const entry of entries) this.#write(this.#line(entry));
    fsyncSync(this.#descriptor);
    renameSync(fresh, this.#file);
    syncFolder(dirname(this.#file));
    this.#snapshotBytes = this.#bytes;
  }

  #line(value: object | Entry): Buffer {
    const json = JSON.stringify(value);
    this.#checksum = crc32(json, this.#checksum);
    return Buffer.from(`${asHex(this.#checksum)} ${json}\n`);
  }

  #write(line: Buffer): void {
    // A write may take only a part of the bytes.
    for (let from = 0; from < line.length; ) from += writeSync(this.#descriptor, line, from);
    this.#bytes += line.length;
  }
}

const HEADER = { format: 'presign-append-log', version: 1 };
const CHECKSUM_LENGTH = 9;
const NEWLINE = 0x0a;

/**
 * Every line's checksum goes on from the line before it, so a line lost, doubled or moved shows as damage.
 * The header counts the snapshot's lines: these were on the disk before the file got its name.
 */
function* readEntries<Entry>(file: string): Generator<Entry> {
  const content = readFileSync(file);
  let checksum = 0;
  let lineNumber = 0;
  let atLeast = 0;
  for (const line of wholeLines(content)) {
    lineNumber += 1;
    const json = line.subarray(CHECKSUM_LENGTH);
    checksum = crc32(json, checksum);
    if (line.toString('latin1', 0, CHECKSUM_LENGTH) !== `${asHex(checksum)} `)
      throw damaged(file, lineNumber);
    const value = JSON.parse(json.toString());
    if (lineNumber > 1) yield value;
    else atLeast = snapshotLines(file, value);
  }
  if (lineNumber < atLeast || lineNumber === 0) throw damaged(file, lineNumber + 1);
}

function snapshotLines(file: string, header: typeof HEADER & { entries: number }): number {
  if (header.format === HEADER.format && header.version === HEADER.version) return 1 + header.entries;
  throw new Error(`${file} was written by another version of this program, which alone can read it`);
}

/** The lines that end in a newline; the text after the last newline was being written when the process died. */
function* wholeLines(content: Buffer): Generator<Buffer> {
  let from = 0;
  for (let end = content.indexOf(NEWLINE); end >= 0; end = content.indexOf(NEWLINE, from)) {
    yield content.subarray(from, end);
    from = end + 1;
  }
}

function damaged(file: string, lineNumber: number): Error {
  return new Error(
    `${file} is damaged at line ${lineNumber}: put back a good copy, or move it away to start without its data`,
  );
}

function asHex(checksum: number): string {
  return checksum.toString(16).padStart(8, '0');
}

/** A rename is on the disk once its folder is; Windows has no such call and needs none. */
function syncFolder(folder: string): void {
  if (process.platform === 'win32') return;
  const descriptor = openSync(folder, 'r');
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}
