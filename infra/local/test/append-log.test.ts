import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { AppendLog } from '../src/engines/append-log.ts';

let folder: string;
let file: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'append-log-'));
  file = join(folder, 'kept', 'words.log');
});
afterEach(() => rmSync(folder, { recursive: true }));

/** A state that is simply the list of its entries. */
function open(compactAboveBytes = 1_000_000): { words: string[]; log: AppendLog<string> } {
  const words: string[] = [];
  const log = new AppendLog<string>(
    file,
    { replay: (word) => words.push(word), snapshot: () => [...words] },
    compactAboveBytes,
  );
  return { words, log };
}

function write(...words: string[]): Buffer {
  const { log } = open();
  for (const word of words) log.append(word);
  log.close();
  return readFileSync(file);
}

function reopen(): string[] {
  const { words, log } = open();
  log.close();
  return words;
}

test('entries are restored in order after any number of restarts', () => {
  write('one', 'zwei', 'три\n');
  expect(reopen()).toEqual(['one', 'zwei', 'три\n']);
  write('four');
  expect(reopen()).toEqual(['one', 'zwei', 'три\n', 'four']);
});

test('a last line cut at any byte is dropped, and all earlier lines are kept', () => {
  const whole = write('one', 'two');
  const lastLine = whole.lastIndexOf('\n', whole.length - 2) + 1;
  for (let length = lastLine; length < whole.length; length += 1) {
    writeFileSync(file, whole.subarray(0, length));
    expect(reopen()).toEqual(['one']);
  }
});

test('one bit changed before the final newline stops the start with an error that names the file', () => {
  write('one');
  const whole = write('two', 'three');
  for (let bit = 0; bit < (whole.length - 1) * 8; bit += 1) {
    const changed = Buffer.from(whole);
    changed.writeUInt8(changed.readUInt8(bit >> 3) ^ (1 << (bit & 7)), bit >> 3);
    writeFileSync(file, changed);
    expect(open).toThrow(`${file} is damaged at line`);
    expect(readFileSync(file).equals(changed)).toBe(true);
  }
});

test('a line removed, doubled or moved stops the start', () => {
  const [header = '', one = '', two = '', three = ''] = write('one', 'two', 'three').toString().split('\n');
  for (const lines of [
    [header, one, three],
    [header, one, one, two, three],
    [header, two, one, three],
    [one, two],
  ]) {
    writeFileSync(file, `${lines.join('\n')}\n`);
    expect(open).toThrow('is damaged at line');
  }
});

test('a snapshot with a missing end stops the start, because a snapshot is complete before it gets its name', () => {
  write('one', 'two');
  reopen();
  const snapshot = readFileSync(file);
  writeFileSync(file, snapshot.subarray(0, snapshot.length - 3));
  expect(open).toThrow('is damaged at line 3');
});

test('a file of another version is refused and left unchanged', () => {
  const { log } = open();
  log.close();
  const body = readFileSync(file, 'utf8').replace('"version":1', '"version":2').slice(9, -1);
  writeFileSync(file, `${crc32(body).toString(16).padStart(8, '0')} ${body}\n`);
  expect(open).toThrow('was written by another version');
});

test('an interrupted rewrite leaves the old file in use', () => {
  write('one', 'two');
  writeFileSync(`${file}.new`, 'half a snapsh');
  expect(reopen()).toEqual(['one', 'two']);
});

test('the log is rewritten above its size limit, and live data above it does not cause repeated rewrites', () => {
  let words: string[] = [];
  const state = { replay: () => {}, snapshot: () => [...words] };
  const log = new AppendLog<string>(file, state, 1_000);
  for (let i = 0; i < 500; i += 1) {
    words = [`word ${i}`];
    log.append(`word ${i}`);
    expect(statSync(file).size).toBeLessThanOrEqual(1_000);
  }
  words = Array.from({ length: 200 }, (_, i) => `long-lived ${i}`);
  for (let i = 0; i < 50; i += 1) log.append('filler to reach the limit');
  const before = statSync(file).ino;
  log.append('one more');
  expect(statSync(file).ino).toBe(before);
  log.close();
});

test.skipIf(process.platform === 'win32')('only the owner can read the log and its folder', () => {
  write('one');
  expect(statSync(file).mode & 0o777).toBe(0o600);
  expect(statSync(join(folder, 'kept')).mode & 0o777).toBe(0o700);
});
