import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { figure, type Kinds, number, numbers, optional, texts } from '../src/reply.ts';
import { compileScript, type Names } from '../src/script.ts';

const LUA = new URL('../src/lua/', import.meta.url);
const scripts = readdirSync(LUA, { recursive: true, encoding: 'utf8' }).filter(
  (file) => file.endsWith('.lua') && !file.startsWith('shared'),
);

const names = (given: Partial<Names>): Names => ({
  keys: [],
  args: [],
  eachKeys: [],
  eachArgs: [],
  ...given,
});
const due = { args: ['most'], eachKeys: ['leases'] };
const dueReply = { due: { nowMs: figure, at: numbers, holdIds: texts } };

describe('names of a script', () => {
  test('become positions', () => {
    expect(compileScript('due', names(due), dueReply)).toContain("'ZRANGE', KEYS[0 + i], '-inf', whole(now)");
    const renew = compileScript(
      'renew',
      names({ keys: ['leases'], args: ['leaseMs'], eachArgs: ['holdId'] }),
    );
    expect(renew).toContain('for i = 1, (#ARGV - 1) do');
    expect(renew).toContain("redis.call('ZADD', KEYS[1], ends, ARGV[1 + i])");
    const three = names({ eachKeys: ['grant', 'credential', 'account'] });
    const ends = compileScript('find-ends', three, {
      found: { revoked: numbers, suspended: numbers, moved: numbers, endsMs: numbers },
    });
    expect(ends).toContain('for i = 1, ((#KEYS - 0) / 3) do');
    for (const at of [-2, -1, 0]) expect(ends).toContain(`KEYS[${at} + 3 * i]`);
  });

  test('that only one side declares are refused', () => {
    expect(() => compileScript('due', names({ eachKeys: ['leases'] }), dueReply)).toThrow(
      'due.lua uses arg.most, which is not declared',
    );
    expect(() => compileScript('due', names({ ...due, keys: ['holds'] }), dueReply)).toThrow(
      'due.lua does not use key.holds',
    );
  });

  test.each(scripts)('stand in the header of %s', (file) => {
    const source = readFileSync(new URL(file, LUA), 'utf8');
    const header = /^#!.*\n(?:--.*\n)+/.exec(source)?.[0] ?? '';
    const used = source.slice(header.length).matchAll(/\b(?:key|arg|each|reply)\.(\w+)/g);
    const missing = [...used].map(([, name = '']) => name).filter((name) => !header.includes(name));
    expect(missing).toEqual([]);
  });
});

describe('values of a reply', () => {
  const rate = names({ keys: ['rate'], args: ['perMinute'] });
  const compiled = (counted: Kinds[string]) => compileScript('rate-limit', rate, { counted });

  test('become one text in the declared order', () => {
    const lua = compiled({ waitMs: number, left: figure, resetMs: optional(number) });
    expect(lua).toContain(
      "return table.concat({'counted', wait_ms, string.format('%.0f', math.floor(level)), (reset_ms and reset_ms or '')}, '\\t')",
    );
  });

  test('that only one side declares are refused', () => {
    expect(() => compiled({ left: number, resetMs: number })).toThrow('values that are not declared');
    expect(() => compiled({ left: number, resetMs: number, waitMs: number, used: number })).toThrow(
      'rate-limit.lua: reply.counted lacks used',
    );
    expect(() => compileScript('rate-limit', rate, {})).toThrow(
      'rate-limit.lua returns reply.counted, which is not declared',
    );
  });
});
