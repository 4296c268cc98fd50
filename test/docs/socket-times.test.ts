import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { codeIn } from './fences.ts';

const read = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8');

/** The longest life of a socket by default, in seconds. */
const LONGEST = Number(
  /^\| `UPSTREAM_TIMEOUT_SECONDS` +\|.*?\| `(\d+)`/m.exec(read('docs/reference/configuration.md'))?.[1],
);

const found = (text: string, setting: RegExp) =>
  Array.from(text.matchAll(setting), ([, seconds]) => Number(seconds));

test.each([
  ['infra/haproxy.cfg', read('infra/haproxy.cfg'), /^ {2}timeout (?:client|server) (\d+)s$/gm],
  [
    'nginx',
    codeIn(read('docs/guides/operate/load-balancers.md'), '')[0] ?? '',
    /proxy_(?:read|send)_timeout (\d+)s;/g,
  ],
  [
    'ingress-nginx',
    codeIn(read('docs/guides/kubernetes.md'), 'yaml').join(''),
    /proxy-(?:read|send)-timeout: "(\d+)"/g,
  ],
])('%s keeps a socket open as long as a gateway does', (_name, settings, time) => {
  expect(LONGEST).toBeGreaterThan(0);
  const both = found(settings, time);
  expect(both).toHaveLength(2);
  for (const seconds of both) expect(seconds).toBeGreaterThanOrEqual(LONGEST);
});
