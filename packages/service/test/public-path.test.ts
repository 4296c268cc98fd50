import { expect, test } from 'vitest';
import { withoutPublicPath } from '../src/start.ts';

const ROUTES = /\/(?:v[12]\/|docs)/;

test.each([
  ['https://a.example', '/v1/x', '/v1/x'],
  ['https://a.example/p', '/p/v1/x?y=/p/v1/', '/v1/x?y=/p/v1/'],
  ['https://a.example/p', '/v1/x', '/v1/x'],
  ['https://a.example/p', '/p/p/v1/x', '/p/p/v1/x'],
  ['https://a.example/p', '/pp/v1/x', '/pp/v1/x'],
  ['https://a.example/p', '/p', '/p'],
  ['https://a.example/p', 'http://a.example/p/v1/x', 'http://a.example/v1/x'],
  ['https://a.example/p', 'HTTP://b/p/v1/x', 'HTTP://b/v1/x'],
  // A path like a route: neither cut twice, nor cut where the proxy has cut it.
  ['https://a.example/v1', '/v1/v1/x', '/v1/x'],
  ['https://a.example/v1', '/v1/x', '/v1/x'],
  ['https://a.example/a.b/ü', '/a.b/%C3%BC/docs', '/docs'],
  ['https://a.example/a.b', '/aXb/docs', '/aXb/docs'],
])('at %s the target %s is %s', (publicUrl, target, own) => {
  expect(withoutPublicPath(publicUrl, ROUTES)(target)).toBe(own);
});
