import { describe, expect, it } from 'vitest';
import { cookieHeader, readCookies } from '../src/mcp/ids/cookies.ts';

const NOW = Date.parse('2026-11-27T08:00:00Z');
const place = { origin: 'https://mcp.example.com', path: '/a/mcp' };
const MOST = 4_096;

/** The `Cookie` header of a request there, after an answer with these cookies. */
const sent = (set: readonly string[], path = place.path, at = place, nowMs = NOW) =>
  cookieHeader(readCookies(set, at, NOW, MOST), path, nowMs);

describe('a cookie', () => {
  it.each([
    ['of a balancer', ['LB=1; Path=/; HttpOnly'], 'LB=1'],
    ['with an equals sign and quotes', ['a="x=y"'], 'a="x=y"'],
    ['without a value', ['a='], 'a='],
    ['without a name', ['=a', 'a'], undefined],
    ['with a control character', ['a=b\u0001c', 'a\u0000=b'], undefined],
    ['of the host itself', ['a=1; Domain=mcp.example.com'], 'a=1'],
    ['of a parent domain', ['a=1; Domain=.Example.com'], 'a=1'],
    ['of another domain', ['a=1; Domain=other.example.com', 'b=1; Domain=cp.example.com'], undefined],
    ['of a domain below', ['a=1; Domain=x.mcp.example.com'], undefined],
    ['of the path', ['a=1; Path=/a/mcp', 'b=2; Path=/a/', 'c=3; Path=/a'], 'a=1; b=2; c=3'],
    ['of another path', ['a=1; Path=/b', 'b=1; Path=/a/mc', 'c=1; Path=/a/mcp/'], undefined],
    ['of no path or a relative one', ['a=1', 'b=2; Path=x', 'c=3; Path'], 'a=1; b=2; c=3'],
    ['that is secure', ['a=1; Secure'], 'a=1'],
    ['that is expired', ['a=1; Max-Age=0', 'b=1; Expires=Wed, 21 Oct 2015 07:28:00 GMT'], undefined],
    ['with a date of dashes', ['a=1; expires=Wed, 21-Oct-2037 07:28:00 GMT'], 'a=1'],
    ['whose Max-Age wins', ['a=1; Expires=Wed, 21 Oct 2015 07:28:00 GMT; Max-Age=60'], 'a=1'],
    ['whose end cannot be read', ['a=1; Expires=soon; Max-Age=x'], 'a=1'],
    ['that a later one replaces', ['a=1; Path=/', 'b=2; Path=/', 'a=3; Path=/'], 'a=3; b=2'],
    ['that a later one removes', ['a=1; Path=/', 'a=; Path=/; Max-Age=-1'], undefined],
  ])('%s is sent or omitted', (_what, set, expected) => {
    expect(sent(set)).toBe(expected);
  });

  it('is sent until it ends', () => {
    const set = ['a=1; Max-Age=60', 'b=2'];
    expect(sent(set, place.path, place, NOW + 59_000)).toBe('a=1; b=2');
    expect(sent(set, place.path, place, NOW + 60_000)).toBe('b=2');
  });

  it('without a path applies to the directory of its request', () => {
    expect([sent(['a=1'], '/a/other'), sent(['a=1'], '/b')]).toEqual(['a=1', undefined]);
    expect(sent(['a=1'], '/b', { ...place, path: '/mcp' })).toBe('a=1');
  });

  it('is ignored if it is Secure and the server has no TLS, or if its domain is a suffix of an IP address', () => {
    expect(sent(['a=1; Secure'], '/', { origin: 'http://mcp.example.com', path: '/' })).toBeUndefined();
    expect(sent(['a=1; Domain=0.0.1'], '/', { origin: 'http://127.0.0.1', path: '/' })).toBeUndefined();
  });

  it('is omitted if it exceeds the size limit', () => {
    const set = ['a=1', `b=${'x'.repeat(MOST)}`, 'c=3'];
    expect(sent(set)).toBe('a=1; c=3');
    const many = Array.from({ length: 5_000 }, (_, i) => `n${i}=${i}`);
    expect(JSON.stringify(readCookies(many, place, NOW, MOST)).length).toBeLessThan(MOST * 1.1);
  });
});
