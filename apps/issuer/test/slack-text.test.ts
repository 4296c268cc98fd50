import { expect, test } from 'vitest';
import { slackBody } from '../src/webhooks/slack-text.ts';

const fired = (name: string) =>
  JSON.stringify({
    type: 'alert.fired',
    timestamp: '2026-01-31T12:00:00.000Z',
    data: {
      alert: '2f1e0d9c-8b7a-4695-8473-625140f3e2d1',
      name,
      condition: { spend: { window: 'day', time_zone: 'UTC', amount: 50_000_000 } },
      firing: '3a2b1c0d-9e8f-4a7b-8c6d-5e4f3a2b1c0d',
      value: 50_012_000,
      threshold: 50_000_000,
      starts_at: '2026-01-31T00:00:00.000Z',
      ends_at: '2026-02-01T00:00:00.000Z',
      test: false,
    },
  });

test.each([['\n'], ['\r\n'], ['\u2028'], ['\u0085'], ['\0\t']])(
  'a name with %j stays on one line, and cannot imitate another message',
  (breaks) => {
    expect(JSON.parse(slackBody(fired(`Spend${breaks}Resolved: all`)))).toEqual({
      text: 'Fired: Spend Resolved: all. Spend of the day: $50.01 (alert at $50.00).',
    });
  },
);

test.each([
  ['an event of another version', '{"type": "alert.paused", "data": {}}', 'alert.paused'],
  ['a known type with other fields', '{"type": "alert.fired", "data": {"name": 1}}', 'alert.fired'],
  ['no type', '{}', 'An event.'],
])('%s is posted with the text of its type', (_what, payload, text) => {
  expect(JSON.parse(slackBody(payload))).toEqual({ text });
});
