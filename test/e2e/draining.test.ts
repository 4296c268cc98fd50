import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Readiness } from '@presign/service';
import { request } from 'undici';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { deferred, eventually } from '../harness/eventually.ts';
import { type GatewayProcess, startGatewayProcess } from '../harness/gateway-process.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { thorough } from '../harness/thorough.ts';
import { type Answer, startUpstream, type Upstream } from '../harness/upstream.ts';
import { startOwnIssuer } from '../issuer/own-issuer.ts';
import { type Balancer, balancers, lineForNewer, startBalancer } from './balancer.ts';

const ask = { provider: 'openai', path: '/v1/chat/completions', client_api_key: 'sk-real' };

const OK: Answer = (_seen, response) => {
  response.writeHead(200, { 'content-type': 'application/json' }).end('{"ok":true}');
};

let upstream: Upstream;
let answer: Answer;
let stack: Stack;
beforeAll(async () => {
  answer = OK;
  upstream = await startUpstream((...args) => answer(...args));
  stack = await startStack({ gateways: 2, providers: { openai: { base_url: upstream.url } } });
});
afterAll(async () => {
  await stack.close();
  await upstream.close();
});

const readiness = async (service: string) => {
  const answer = await request(`${service}/readyz`);
  return { status: answer.statusCode, body: (await answer.body.json()) as Readiness };
};
const refusesConnections = (service: string) =>
  eventually(() =>
    request(`${service}/healthz`, { reset: true }).then(
      ({ body }) => body.dump().then(() => undefined),
      () => true,
    ),
  );
const STOPPING = { store: 'service', problem: 'is stopping' };

describe('a service that gets SIGTERM', () => {
  test('keeps serving as a gateway, is not ready, and closes each connection after its answer', async () => {
    const [, gateway = ''] = stack.gatewayUrls;
    const { url } = await stack.issue(ask);
    const call = () =>
      request(url.replace(stack.gatewayUrls[0] ?? '', gateway), { method: 'POST', body: '{"model":"m"}' });
    expect((await call()).headers.connection).toBe('keep-alive');
    const closing = stack.gateways[1]?.close({ drainMs: 2_000 });
    expect(await readiness(gateway)).toMatchObject({
      status: 503,
      body: { status: 'unready', problems: [STOPPING] },
    });
    const answer = await call();
    expect([answer.statusCode, answer.headers.connection]).toEqual([200, 'close']);
    await answer.body.dump();
    await closing;
    await refusesConnections(gateway);
  });

  test('keeps serving as an issuer, is not ready, and closes each connection after its answer', async () => {
    const issuer = await startOwnIssuer(stack);
    const closing = issuer.close({ drainMs: 2_000 });
    const headers = { authorization: `Bearer ${stack.apiKey}`, 'content-type': 'application/json' };
    const answer = await request(`${issuer.issuerUrl}/v1/presign`, {
      ...{ method: 'POST', headers, body: JSON.stringify(ask) },
    });
    expect([answer.statusCode, answer.headers.connection]).toEqual([200, 'close']);
    await answer.body.dump();
    expect(await readiness(issuer.issuerUrl)).toMatchObject({ status: 503, body: { problems: [STOPPING] } });
    await closing;
    await refusesConnections(issuer.issuerUrl);
  });

  // A terminal and pnpm, or systemd and pnpm, each send one.
  test('lets a call in flight end, however often it gets SIGTERM and SIGINT', async () => {
    const { url } = await stack.issue(ask);
    const call = (to: string) => request(to, { method: 'POST', body: '{"model":"m"}' });
    // From now on the grant is in Redis: the embedded Postgres is out of reach of other processes.
    await (await call(url)).body.dump();
    const gateway = await startGatewayProcess(stack);
    const [arrived, held] = [deferred(), deferred()];
    answer = async (...args) => {
      arrived.resolve();
      await held.promise;
      await OK(...args);
    };
    const answered = call(url.replace(stack.gatewayUrls[0] ?? '', gateway.url));
    await arrived.promise;
    answer = OK;
    const exited = once(gateway.child, 'exit');
    gateway.child.kill('SIGTERM');
    await refusesConnections(gateway.url);
    for (const signal of ['SIGTERM', 'SIGINT'] as const) gateway.child.kill(signal);
    held.resolve();
    expect((await answered).statusCode).toBe(200);
    await (await answered).body.dump();
    expect(await exited).toEqual([0, null]);
  });
});

const CALLS = Number(process.env.ROLLING_CALLS ?? 1_500);
const EVERY_MS = 10;
/** The default: a load balancer on a busy machine, too, sees in that time that a gateway is unready. */
const DRAIN_SECONDS = '10';

/** Makes 100 calls a second until it is stopped, which returns those that did not get 200. */
function callSteadily(call: (i: number) => Promise<number | string>) {
  const outcomes: Promise<number | string>[] = [];
  const began = Date.now();
  // A busy machine runs a timer late, so calls that are due by the clock are made, too, and not all at once.
  const timer = setInterval(() => {
    const due = Math.min(Math.ceil((Date.now() - began) / EVERY_MS), outcomes.length + 3);
    while (outcomes.length < due) outcomes.push(call(outcomes.length));
  }, EVERY_MS);
  const stop = async () => {
    clearInterval(timer);
    return (await Promise.all(outcomes)).filter((each) => each !== 200);
  };
  return { made: () => outcomes.length, stop };
}

const EVENT = 'data: {"id":"x"}\n\n';
const LAST = 'data: [DONE]\n\n';
const EVENTS = 10;
/** Between two events of a stream. */
const PAUSE_MS = 300;

/** Answers a call, and streams to one that asks for it. */
const streaming: Answer = async (seen, response, incoming) => {
  if (!seen.body.includes('"stream"')) return OK(seen, response, incoming);
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  for (let i = 0; i < EVENTS; i++) {
    response.write(EVENT);
    await sleep(PAUSE_MS);
  }
  response.end(LAST);
};

const CLOSED = 'closed without an answer';
const CUT = 'cut stream';

/** 200, or how the call failed. */
async function callOnce(target: string, isStream: boolean, reset: boolean): Promise<number | string> {
  const body = isStream ? '{"model":"m","stream":true}' : '{"model":"m"}';
  const answered = await request(target, { method: 'POST', body, reset }).catch((error: Error) => error);
  if (answered instanceof Error) return `${CLOSED}: ${answered.message}`;
  const text = await answered.body.text().catch((error: Error) => `${CUT}: ${error.message}`);
  if (answered.statusCode !== 200) return `${answered.statusCode} ${text}`;
  return isStream && !text.endsWith(LAST) ? CUT : 200;
}

/** Callers that open a connection for each call, and callers that keep theirs, of which each fifth call is a stream. */
const LOADS = [
  ['on connections of their own', { kept: false, streamEvery: 0 }],
  ['on kept connections, a fifth of them streams,', { kept: true, streamEvery: 5 }],
] as const;

describe.each(balancers)('two gateways behind %s', (name, program) => {
  test.skipIf(!thorough || !program).each(LOADS)(
    `lose none of at least ${CALLS} calls %s at 100 a second while each is restarted`,
    async (how, { kept, streamEvery }) => {
      answer = streaming;
      const start = (port?: string): Promise<GatewayProcess> =>
        startGatewayProcess(stack, {
          SHUTDOWN_DRAIN_SECONDS: DRAIN_SECONDS,
          ...(port === undefined ? {} : { GATEWAY_PORT: port }),
        });
      const gateways = [await start(), await start()];
      const balancer: Balancer = await startBalancer(
        name,
        program,
        gateways.map(({ url }) => new URL(url)),
      );
      const { url } = await stack.issue(ask);
      // From now on the grant is in Redis: the embedded Postgres is out of reach of other processes.
      await (await request(url, { method: 'POST', body: '{"model":"m"}' })).body.dump();
      const target = url.replace(stack.gatewayUrls[0] ?? '', balancer.url);
      const load = callSteadily((i) =>
        callOnce(target, streamEvery > 0 && i % streamEvery === 0, !kept && name === 'nginx'),
      );
      let restarts = 0;
      try {
        for (; restarts < 2 || load.made() < CALLS; restarts++) {
          const i = restarts % 2;
          const port = new URL(gateways[i]?.url ?? '').port;
          await balancer.leaves(port);
          expect(await gateways[i]?.stop()).toBe(0);
          gateways[i] = await start(port);
          await balancer.sees(port);
        }
      } finally {
        const failed = await load.stop();
        const cut = failed.filter((each) => String(each).startsWith(CUT)).length;
        const figures = `${load.made()} calls, ${restarts} restarts, ${failed.length} lost, ${cut} of them cut streams`;
        process.stdout.write(`behind ${name}, ${how} ${figures}\n`);
        await balancer.close();
        await Promise.all(gateways.map((each) => each.kill()));
        // An older nginx that reloads closes idle connections of callers, whatever they send at that moment.
        const mayClose = kept && name === 'nginx' && lineForNewer() === '';
        expect(failed.filter((each) => !(mayClose && String(each).startsWith(CLOSED)))).toEqual([]);
      }
    },
    1_200_000,
  );
});
