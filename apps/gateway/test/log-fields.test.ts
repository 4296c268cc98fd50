import { logFields } from '@presign/service/log';
import fc from 'fast-check';
import { pino } from 'pino';
import { expect, test } from 'vitest';

/** A logger, and the lines that it has written. */
function logger(level: string) {
  const lines: string[] = [];
  const log = pino({ name: 'gateway', level }, { write: (line: string) => void lines.push(line) });
  return { log, lines };
}

test('a line made of fields equals the line that pino writes, whatever its texts contain', () => {
  const value = fc.oneof(fc.string({ unit: 'binary' }), fc.integer(), fc.double(), fc.constant(undefined));
  const field = fc.string({ unit: 'grapheme-ascii', minLength: 1 }).filter((name) => !RESERVED.has(name));
  const level = fc.constantFrom('info' as const, 'warn' as const, 'error' as const);
  fc.assert(
    fc.property(fc.dictionary(field, value, { minKeys: 1 }), level, (given, level) => {
      const fields = { kind: 'llm', ...given };
      const { log, lines } = logger('info');
      logFields(log, level, fields, 'call');
      log[level](fields, 'call');
      const [ours, pinos] = lines.map((line) => ({ ...JSON.parse(line), time: 0 }));
      expect(ours).toEqual(pinos);
      expect(lines[0]?.endsWith('\n') && lines[0].indexOf('\n') === lines[0].length - 1).toBe(true);
    }),
  );
});

/** pino's own fields, and what it takes for a request or an error. */
const RESERVED: ReadonlySet<string> = new Set([
  ...['level', 'time', 'pid', 'hostname', 'name', 'msg', 'err', '__proto__', 'toJSON'],
  ...['method', 'headers', 'socket', 'setHeader'],
]);

test('a line below the log level is not written', () => {
  const { log, lines } = logger('warn');
  logFields(log, 'info', { kind: 'llm' }, 'call');
  expect(lines).toEqual([]);
  logFields(log, 'warn', { kind: 'llm' }, 'call');
  expect(lines).toHaveLength(1);
});
