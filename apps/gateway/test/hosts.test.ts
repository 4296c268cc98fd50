import { expect, test } from 'vitest';
import { checkHost, createHosts } from '../src/share/hosts.ts';

function clocked() {
  const clock = { ms: 100_000 };
  return { clock, hosts: createHosts(() => clock.ms) };
}

test('after a refused connection, calls to the host wait 1 s, 2 s, then 4 s, with one attempt after each wait', () => {
  const { clock, hosts } = clocked();
  const waits: number[] = [];
  for (let i = 0; i < 5; i++) {
    hosts.tries('a');
    hosts.failed('a');
    waits.push(hosts.waitMs('a'));
    clock.ms += hosts.waitMs('a');
    expect(hosts.waitMs('a')).toBe(0);
  }
  expect(waits).toEqual([1_000, 2_000, 4_000, 4_000, 4_000]);
  hosts.tries('a');
  // Others wait for the result of that try.
  expect(hosts.waitMs('a')).toBe(4_000);
  hosts.reached('a');
  expect(hosts.waitMs('a')).toBe(0);
});

test('calls that were sent together and fail together count as one failure', () => {
  const { hosts } = clocked();
  for (let i = 0; i < 100; i++) hosts.tries('a');
  for (let i = 0; i < 100; i++) hosts.failed('a');
  expect(hosts.waitMs('a')).toBe(1_000);
});

test('one failed connection to a host that others reach causes no wait, and one host never delays another', () => {
  const { clock, hosts } = clocked();
  hosts.reached('shared');
  hosts.failed('shared');
  hosts.failed('down');
  expect([hosts.waitMs('shared'), hosts.waitMs('down'), hosts.waitMs('other')]).toEqual([0, 1_000, 0]);
  clock.ms += 1_001;
  hosts.failed('shared');
  expect(hosts.waitMs('shared')).toBe(1_000);
});

test('the memory for hosts is bounded, however many hosts fail', () => {
  const { hosts } = clocked();
  for (let i = 0; i < 5_000; i++) hosts.failed(`host ${i}`);
  expect([hosts.waitMs('host 0'), hosts.waitMs('host 4999')]).toEqual([0, 1_000]);
});

test('a call to a host that has just failed gets 503 and Retry-After', () => {
  const { hosts } = clocked();
  const check = () => checkHost(hosts, 'a');
  expect(check()).toBeUndefined();
  hosts.failed('a');
  expect(check()).toMatchObject({ code: 'upstream_unreachable', status: 503, retryAfterSeconds: 1 });
});
