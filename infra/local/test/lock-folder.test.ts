import { mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { lockFolder } from '../src/engines/lock-folder.ts';
import { kill, runProgram } from './programs/run-program.ts';

let dir: string;
let running: { child: Awaited<ReturnType<typeof runProgram>>['child'] }[];

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'lock-'));
  running = [];
});
afterEach(async () => {
  for (const { child } of running)
    if (child.exitCode === null && child.signalCode === null) await kill(child);
  rmSync(dir, { recursive: true });
});

async function hold(folder = dir) {
  const program = await runProgram('hold-folder.ts', folder);
  running.push(program);
  return program;
}

test('a second process is refused with an error that names the folder', async () => {
  await hold();
  await expect(lockFolder(dir)).rejects.toThrow(`${dir} is in use by another running process`);
  expect((await hold()).said).toContain(`${dir} is in use`);
});

test('a second lock in the same process is refused, and succeeds after the release', async () => {
  const lock = await lockFolder(dir);
  await expect(lockFolder(dir)).rejects.toThrow('is in use');
  await lock.release();
  await (await lockFolder(dir)).release();
  expect(readdirSync(dir)).toEqual([]);
});

test('after kill -9 of the holder the folder is free each time, and no file is left behind', async () => {
  for (let i = 0; i < 3; i += 1) {
    const { child, said } = await hold();
    expect(said).toBe('held');
    await kill(child);
  }
  await (await lockFolder(dir)).release();
  expect(readdirSync(dir)).toEqual([]);
});

test('of many simultaneous attempts exactly one gets the lock, even if a dead holder left its socket', async () => {
  const { child } = await hold();
  await kill(child);
  for (let round = 0; round < 20; round += 1) {
    const claims = await Promise.allSettled(Array.from({ length: 8 }, () => lockFolder(dir)));
    const held = claims.filter((claim) => claim.status === 'fulfilled');
    expect(held).toHaveLength(1);
    await held[0]?.value.release();
  }
});

test('of several processes started at once exactly one gets the lock', async () => {
  const { child } = await hold();
  await kill(child);
  const all = await Promise.all(Array.from({ length: 4 }, () => hold()));
  expect(all.filter(({ said }) => said === 'held')).toHaveLength(1);
});

test('a folder under another name is locked as the same folder', async () => {
  symlinkSync(dir, `${dir}-link`);
  try {
    const lock = await lockFolder(dir);
    await expect(lockFolder(`${dir}-link`)).rejects.toThrow('is in use');
    await lock.release();
  } finally {
    rmSync(`${dir}-link`);
  }
});

test('a folder whose path is too long for a socket is locked too, under any name', async () => {
  const deep = join(dir, 'a-rather-long-name-'.repeat(5), 'and-another-one-'.repeat(5));
  mkdirSync(deep, { recursive: true });
  const { child, said } = await hold(deep);
  expect(said).toBe('held');
  await expect(lockFolder(deep)).rejects.toThrow('is in use');
  symlinkSync(deep, join(dir, 'short'));
  await expect(lockFolder(join(dir, 'short'))).rejects.toThrow('is in use');
  await kill(child);
  await (await lockFolder(deep)).release();
});

test('a suspended process keeps its lock', async () => {
  const { child } = await hold();
  child.kill('SIGSTOP');
  await expect(lockFolder(dir)).rejects.toThrow('is in use');
});

test('a missing folder is created', async () => {
  const lock = await lockFolder(join(dir, 'new', 'data'));
  await expect(lockFolder(join(dir, 'new', 'data'))).rejects.toThrow('is in use');
  await lock.release();
});
