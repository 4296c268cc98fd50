import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type Balancer, balancers, startBalancer } from '../e2e/balancer.ts';
import { eventually } from '../harness/eventually.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { type HolderSocket, openSocket } from './holder.ts';
import { eventsOf, type ResponsesProvider, startResponsesProvider } from './responses-provider.ts';

const ASK = { provider: 'openai', path: '/v1/responses', client_api_key: 'sk-real', sockets: true };
const URLS = 10;
const SOCKETS_PER_URL = 20;

describe.each(balancers)('behind %s', (name, program) => {
  describe.skipIf(program === undefined)('with the settings of the guide', () => {
    let provider: ResponsesProvider;
    let stack: Stack;
    let balancer: Balancer;
    /** Ends of turns that are held. */
    let waiting: (() => void)[];
    let isHeld: boolean;

    beforeAll(async () => {
      provider = await startResponsesProvider();
      provider.serve = (event, { socket }) => {
        const [created, ...rest] = eventsOf(event);
        socket.send(JSON.stringify(created));
        const end = () => {
          for (const each of rest) socket.send(JSON.stringify(each));
        };
        if (isHeld) waiting.push(end);
        else end();
      };
      stack = await startStack({ gateways: 2, providers: { openai: { base_url: provider.url } } });
      balancer = await startBalancer(
        name,
        program,
        stack.gatewayUrls.map((url) => new URL(url)),
      );
    });
    afterAll(async () => {
      await balancer.close();
      await stack.close();
      await provider.close();
    });
    beforeEach(() => {
      waiting = [];
      isHeld = false;
    });

    async function open(url: string): Promise<HolderSocket> {
      return openSocket(url.replace(stack.gatewayUrls[0] ?? '', balancer.url));
    }

    test('a socket completes turns', async () => {
      const { url } = await stack.issue({ ...ASK, cost_limit: 1_000_000 });
      const holder = await open(url);
      for (let i = 0; i < 3; i++) expect(await holder.turn()).toMatchObject({ type: 'response.completed' });
      holder.socket.close(1000);
      expect(await holder.closed).toMatchObject({ code: 1000 });
    });

    test('a stopping gateway loses no turn of 200 sockets', { timeout: 120_000 }, async () => {
      const urls = await Promise.all(Array.from({ length: URLS }, () => stack.issue(ASK)));
      const ofEach = urls.flatMap(({ url }) => Array.from({ length: SOCKETS_PER_URL }, () => url));
      const holders = await Promise.all(ofEach.map(open));
      isHeld = true;
      const turns = holders.map((holder) => holder.turn());
      await eventually(async () => waiting.length === holders.length);
      isHeld = false;
      const codes = holders.map(({ closed }) => closed.then(({ code }) => code));
      // A caller whose socket ends opens another one, and has a turn there.
      const others = holders.map(async ({ closed }, i) => {
        await closed;
        const other = await open(ofEach[i] ?? '');
        const end = await other.turn();
        other.socket.close(1000);
        return end.type;
      });
      // A worker of nginx that has been replaced ends with its last socket.
      const left = balancer.leaves(new URL(stack.gatewayUrls[1] ?? '').port);
      await sleep(1_000);
      const closing = stack.gateways[1]?.close({ drainMs: 1_000 });
      for (const end of waiting) end();
      const ends = await Promise.all(turns);
      expect(ends.filter(({ type }) => type === 'response.completed')).toHaveLength(holders.length);
      await closing;
      for (const { socket } of holders) socket.close(1000);
      await left;
      expect(new Set(await Promise.all(codes))).toEqual(new Set([1000, 1001]));
      expect(new Set(await Promise.all(others))).toEqual(new Set(['response.completed']));
    });
  });
});
