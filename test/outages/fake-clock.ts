import { existsSync, mkdtempSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** libfaketime, as Debian has it. */
const FAKETIME = (existsSync('/usr/lib') ? readdirSync('/usr/lib') : [])
  .map((each) => join('/usr/lib', each, 'faketime/libfaketime.so.1'))
  .find(existsSync);

export const hasFakeClock = FAKETIME !== undefined;

/** The environment of a process whose clock is off by these seconds: `+3600`. */
export const fakeClock = (off: string) => ({
  LD_PRELOAD: FAKETIME ?? '',
  FAKETIME: off,
  FAKETIME_DONT_FAKE_MONOTONIC: '1',
});

/**
 * A clock that is right until it jumps, for the process that gets this environment. libfaketime does not work with jemalloc, which
 * Redis has, so the memory of that process is managed by libc.
 */
export function jumpingClock() {
  const folder = mkdtempSync(join(tmpdir(), 'presign-clock-'));
  const file = join(folder, 'off');
  const jump = (off: string) => {
    writeFileSync(`${file}.new`, off);
    renameSync(`${file}.new`, file);
  };
  jump('+0');
  const env = {
    LD_PRELOAD: `${FAKETIME} libc.so.6`,
    FAKETIME_TIMESTAMP_FILE: file,
    FAKETIME_NO_CACHE: '1',
    FAKETIME_DONT_FAKE_MONOTONIC: '1',
  };
  return { env, jump, remove: async () => rmSync(folder, { recursive: true }) };
}
