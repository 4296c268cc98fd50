import { randomUUID } from 'node:crypto';
import { USAGE_SUMS } from '@presign/schema';
import { ledger } from '@presign/schema/ledger-tables';
import { sql } from 'drizzle-orm';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { callsSettled } from '../harness/calls-settled.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { startUpstream, type Upstream } from '../harness/upstream.ts';
import { addAccount, addApiKey, addVirtualKey, ownAccount } from './accounts.ts';
import { claimsOf, issue, refused, send } from './ask.ts';
import { csv, fresh, get, none, parseCsv, type Query, report, row } from './ask-usage.ts';

let upstream: Upstream;
let stack: Stack;

beforeAll(async () => {
  const usage = { prompt_tokens: 100, completion_tokens: 100, total_tokens: 200 };
  const answer = JSON.stringify({ choices: [{ index: 0, message: {}, finish_reason: 'stop' }], usage });
  upstream = await startUpstream((_seen, response) => {
    response.writeHead(200, { 'content-type': 'application/json' }).end(answer);
  });
  const pricing = { 'model-1': { input: 150_000, output: 600_000 } };
  stack = await startStack({ providers: { openai: { base_url: upstream.url, pricing } } });
});
afterAll(async () => {
  await stack.close();
  await upstream.close();
});

describe('sums', () => {
  test('of real calls equal the settled figures of their session, by user, model and virtual key', async () => {
    const account = await ownAccount(stack);
    const virtual_key = await addVirtualKey(stack, account);
    const external_user = randomUUID();
    const own = await issue(stack, { external_user, virtual_key, client_api_key: null });
    const other = await issue(stack, { external_user, session_id: own.session_id });
    for (const url of [own.url, own.url, other.url]) {
      const body = '{"model":"model-1","max_tokens":200,"messages":[]}';
      const answer = await fetch(url, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body,
      });
      expect(answer.status).toBe(200);
      await answer.text();
    }
    await callsSettled(stack);
    // 100 × $0.15 + 100 × $0.60 per million.
    const one = {
      calls: 1,
      uses: 1,
      cost: 75,
      failed_calls: 0,
      calls_of_unknown_cost: 0,
      input_tokens: 100,
      output_tokens: 100,
    };
    const two = {
      calls: 2,
      uses: 2,
      cost: 150,
      failed_calls: 0,
      calls_of_unknown_cost: 0,
      input_tokens: 200,
      output_tokens: 200,
    };
    const told = await report(stack, { external_user, group_by: 'virtual_key,model' });
    expect(told.data).toEqual([
      { virtual_key, model: 'model-1', ...two },
      { virtual_key: null, model: 'model-1', ...one },
    ]);
    expect(told.total).toMatchObject({ calls: 3, cost: 225 });
    expect((await report(stack, { virtual_key })).total).toEqual(two);
    expect((await report(stack, { session_id: own.session_id.toUpperCase() })).total.cost).toBe(225);
    const sent = await send(stack, { method: 'GET', path: `/v1/sessions/${own.session_id}` });
    const settled = JSON.parse(sent.text).grants.map((grant: { settled: object }) => grant.settled);
    expect(settled).toEqual(
      expect.arrayContaining([
        { used: 2, spent: 150 },
        { used: 1, spent: 75 },
      ]),
    );
    expect(claimsOf(stack, own.url).sub).toBe(own.session_id);
  });

  test("contain only an account's own calls", async () => {
    const [one, two] = [await fresh(stack), await fresh(stack)];
    const grantId = randomUUID();
    await stack.db.insert(ledger).values([row(one, { grantId }), row(two, { grantId, costMicrousd: 1 })]);
    expect((await report(one, {})).total).toEqual({ ...none, calls: 1, uses: 1, cost: 10 });
    const theirs = await stack.db.select().from(ledger).where(sql`account_id = ${two.account}`);
    expect((await report(one, { session_id: theirs[0]?.sessionId ?? '' })).total).toEqual(none);
  });

  test('of an empty range are 0: one row without grouping, and no row with grouping', async () => {
    const of = await fresh(stack);
    expect(await report(of, {})).toMatchObject({ group_by: [], data: [none], total: none });
    expect(await report(of, { group_by: 'day' })).toMatchObject({ data: [], total: none });
    expect(await csv(of, { group_by: 'day' })).toBe(`day,${USAGE_SUMS.join(',')}\r\n`);
  });

  test('beyond 2^53 − 1 are exact in CSV, and refused in JSON, where they would be rounded', async () => {
    const of = await fresh(stack);
    const costMicrousd = Number.MAX_SAFE_INTEGER;
    await stack.db.insert(ledger).values([row(of, { costMicrousd }), row(of, { costMicrousd, uses: 2 })]);
    expect(parseCsv(await csv(of, {}))[1]?.[2]).toBe('18014398509481982');
    expect(refused(await get(of, { from: '0' }), 'invalid_request', 'format')).toContain('csv');
  });
});

describe('the range', () => {
  test('includes its first moment and excludes its last, in seconds or in ISO 8601 of any zone', async () => {
    const of = await fresh(stack);
    const days = ['2026-01-01', '2026-01-02', '2026-01-03'];
    const times = days.flatMap((date) => [`${date}T00:00:00.000Z`, `${date}T23:59:59.999Z`]);
    await stack.db.insert(ledger).values(times.map((time) => row(of, { settledAt: new Date(time) })));
    const seconds = (time: string) => String(Date.parse(time) / 1000);
    const ranges: [string, string, number][] = [
      ['2026-01-02T00:00:00Z', '2026-01-03T00:00:00Z', 2],
      [seconds('2026-01-02T00:00:00Z'), seconds('2026-01-03T00:00:00Z'), 2],
      ['2026-01-02T02:00:00+02:00', '2026-01-02T19:00:00-05:00', 2],
      ['2026-01-02T00:00:00Z', '2026-01-02T23:59:59.999Z', 1],
      ['2026-01-02T00:00:00.001Z', '2026-01-03T00:00:00.001Z', 2],
      ['2026-01-01T00:00:00Z', '9999-12-31T23:59:59Z', 6],
    ];
    for (const [from, to, calls] of ranges) {
      expect((await report(of, { from, to })).total.calls, `${from} ${to}`).toBe(calls);
    }
    const told = await report(of, { from: '2026-01-02T02:00:00+02:00', group_by: 'day' });
    expect(told).toMatchObject({ from: Date.parse('2026-01-02') / 1000, group_by: ['day'] });
    expect(told.data.map(({ day, calls }) => [day, calls])).toEqual([
      ['2026-01-02', 2],
      ['2026-01-03', 2],
    ]);
  });

  test("ends where the next begins, to the millisecond, if the next starts at the answer's end", async () => {
    const of = await fresh(stack);
    const times = ['12:00:00.467Z', '12:00:00.468Z', '12:00:00.469Z'];
    const settled = times.map((time) => new Date(`2026-01-02T${time}`));
    await stack.db.insert(ledger).values(settled.map((settledAt) => row(of, { settledAt })));
    const first = await report(of, { to: '2026-01-02T12:00:00.468Z' });
    expect(String(first.to)).toMatch(/\.468$/);
    const second = await report(of, { from: String(first.to) });
    expect([first.total.calls, second.total.calls, second.from]).toEqual([1, 2, first.to]);
  });

  test('ends now by default', async () => {
    const of = await fresh(stack);
    const ahead = new Date(Date.now() + 3_600_000);
    await stack.db.insert(ledger).values([row(of), row(of, { settledAt: ahead })]);
    const told = await report(of, {});
    expect(told.total.calls).toBe(1);
    expect(told.to).toBeCloseTo(Date.now() / 1000, -2);
  });
});

describe('CSV', () => {
  test('is requested by the parameter format, or else by Accept', async () => {
    const of = await fresh(stack);
    const ask = async (query: Query, accept?: string) =>
      (await get(of, { from: '0', ...query }, accept === undefined ? {} : { accept })).headers.get(
        'content-type',
      );
    const [json, asCsv] = ['application/json', 'text/csv; charset=utf-8; header=present'];
    expect(await ask({})).toBe(json);
    expect(await ask({}, '*/*')).toBe(json);
    expect(await ask({}, 'application/json')).toBe(json);
    expect(await ask({}, 'text/csv')).toBe(asCsv);
    expect(await ask({}, 'text/csv, application/json;q=0.5')).toBe(asCsv);
    expect(await ask({}, 'application/json, text/csv;q=0.5')).toBe(json);
    expect(await ask({ format: 'csv' }, 'application/json')).toBe(asCsv);
    expect(await ask({ format: 'json' }, 'text/csv')).toBe(json);
    const sent = await get(of, { from: '2026-01-01T00:00:00Z', to: '2026-02-01T00:00:00Z', format: 'csv' });
    expect(sent.headers.get('content-disposition')).toBe(
      'attachment; filename="usage-2026-01-01T000000Z-2026-02-01T000000Z.csv"',
    );
    expect(sent.headers.get('vary')).toBe('Accept');
  });

  test('contains any user or tool name, and no spreadsheet runs it as a formula', async () => {
    const of = await fresh(stack);
    const names = ['plain', 'a,b', 'say "hi"', 'two\r\nlines', 'ünï 😀', "it's", ' =1', '5-3'];
    const formulas = ['=1+1', '+1', '-1', '@SUM(A1)', '\t=1', '\r=1', '\n=1', '＝1', '=HYPERLINK("x","y")'];
    await stack.db
      .insert(ledger)
      .values(
        [...names, ...formulas].map((tool) =>
          row(of, { tool, uses: -1, costMicrousd: -5, outcome: 'refunded' }),
        ),
      );
    const [header, ...rows] = parseCsv(await csv(of, { group_by: 'tool' }));
    expect(header).toEqual(['tool', ...USAGE_SUMS]);
    const wanted = [...names, ...formulas.map((name) => `'${name}`)];
    expect(rows.map(([tool]) => tool).sort()).toEqual(wanted.sort());
    // Sums are numbers, and below 0 here: they stay what they are.
    expect(new Set(rows.map((cells) => cells.slice(1).join()))).toEqual(new Set(['0,-1,-5,0,0,0,0']));
  });

  test('distinguishes an empty text from a missing value', async () => {
    const of = await fresh(stack);
    await stack.db.insert(ledger).values([row(of, { externalUser: '' }), row(of, { externalUser: null })]);
    const [, ...lines] = (await csv(of, { group_by: 'external_user' })).split('\r\n');
    expect(lines.sort()).toEqual(['', '"",1,1,10,0,0,0,0', ',1,1,10,0,0,0,0']);
  });
});

describe('a refused request', () => {
  test('has a query without meaning, and the error names the field', async () => {
    const of = await fresh(stack);
    const wrong: [Query, string][] = [
      [{ from: '' }, 'from'],
      [{ from: '-1' }, 'from'],
      [{ from: '1.2345' }, 'from'],
      [{ from: '1.' }, 'from'],
      [{ from: '.5' }, 'from'],
      [{ from: '1e3' }, 'from'],
      [{ from: '253402300800' }, 'from'],
      [{ from: '2026-01' }, 'from'],
      [{ from: '2026-02-30' }, 'from'],
      [{ from: '1970-01-01' }, 'from'],
      [{ from: '2026-01-01T00:00:00' }, 'from'],
      [{ from: '2026-02-30T00:00:00Z' }, 'from'],
      [{ from: '2026-01-01T00:00:00 02:00' }, 'from'],
      [{ from: '0000-01-01T00:00:00Z' }, 'from'],
      [{ from: '1970-01-01T00:00:00+00:01' }, 'from'],
      [{ from: '0', to: '9999-12-31T23:59:59-00:01' }, 'to'],
      [{ from: '5', to: '5' }, 'from'],
      [{ from: '6', to: '5' }, 'from'],
      [{ from: '253402300799' }, 'from'],
      [{ from: '0', to: 'tomorrow' }, 'to'],
      [{ from: '0', timezone: '' }, 'timezone'],
      [{ from: '0', timezone: '+02:00' }, 'timezone'],
      [{ from: '0', timezone: 'Europe/Nowhere' }, 'timezone'],
      [{ from: '0', timezone: "UTC'" }, 'timezone'],
      [{ from: '0', timezone: 'Europe/Berlin', group_by: 'month' }, 'from'],
      [{ from: '0', group_by: '' }, 'group_by'],
      [{ from: '0', group_by: 'hour' }, 'group_by'],
      [{ from: '0', group_by: 'day,' }, 'group_by'],
      [{ from: '0', group_by: 'day,day' }, 'group_by'],
      [{ from: '0', format: 'xml' }, 'format'],
      [{ from: '0', session_id: 'x' }, 'session_id'],
      [{ from: '0', model: '' }, 'model'],
      [{ from: '0', external_user: '\0' }, 'external_user'],
      [{ from: '0', externl_user: 'u' }, 'externl_user'],
    ];
    for (const [query, param] of wrong) refused(await get(of, query), 'invalid_request', param);
  });

  test('has a hint if the query has no meaning', async () => {
    const of = await fresh(stack);
    const told = async (query: string) => {
      const sent = await send(of, { method: 'GET', path: `/v1/usage?${query}` });
      expect(sent.status).toBe(400);
      return (JSON.parse(sent.text) as { error: { message: string } }).error.message;
    };
    expect(await told('from=0&groupby=day')).toBe(
      'groupby: this field is not known (did you mean group_by?).',
    );
    expect(await told('from=0&from=1')).toBe('from: this parameter appears twice.');
    expect(await told('from=0&group_by=day&group_by=day')).toContain('group_by: ');
  });

  test.each(['group_by=model&group_by=day', 'group_by=model,day', 'group_by=model%2Cday'])(
    'is not one with several dimensions, separate or in a list (%s)',
    async (query) => {
      const of = await fresh(stack);
      const sent = await send(of, { method: 'GET', path: `/v1/usage?from=0&${query}` });
      expect(JSON.parse(sent.text)).toMatchObject({ group_by: ['model', 'day'] });
      const hours = await send(of, {
        method: 'GET',
        path: '/v1/usage/hours?group_by=model&group_by=provider',
      });
      expect(hours.status, hours.text).toBe(200);
    },
  );

  // The embedded engine ends no statement by itself.
  test.skipIf(!process.env.TEST_DATABASE_URL)(
    'for a range that Postgres cannot sum in time is not an outage, and its error says what to do',
    async () => {
      const of = await fresh(stack);
      await stack.db.transaction(async (tx) => {
        await tx.execute(sql`lock table ledger in access exclusive mode`);
        const sent = await get(of, { from: '0' });
        expect(refused(sent, 'database_unavailable')).toContain('shorter');
      });
      expect((await report(of, {})).total).toEqual(none);
    },
    30_000,
  );

  test('is any request by a key without the scope read', async () => {
    const { id } = await addAccount(stack);
    const apiKey = await addApiKey(stack, id, { scopes: ['presign'] });
    refused(await get({ ...stack, apiKey }, { from: '0' }), 'forbidden');
  });
});
