import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Balancer, balancers, startBalancer } from '../e2e/balancer.ts';
import { eventually } from '../harness/eventually.ts';
import { type GatewayProcess, startGatewayProcess } from '../harness/gateway-process.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import {
  type BothProvider,
  openIn,
  PROTOCOLS,
  type Protocol,
  startBothProvider,
  turnIn,
} from './both-protocols.ts';
import type { HolderSocket } from './holder.ts';

const SOCKETS = 200;
/** A load balancer on a busy machine, too, sees in that time that a gateway is unready. */
const ENV = { SHUTDOWN_DRAIN_SECONDS: '10', MAX_SOCKETS_PER_URL: String(SOCKETS) };

/** A holder that opens another socket when its own is closed. */
type Holder = { readonly protocol: Protocol; readonly url: string; socket: HolderSocket };

describe.each(balancers)('two gateway processes behind %s', (name, program) => {
  describe.skipIf(program === undefined)('that restart one after the other', () => {
    let provider: BothProvider;
    let stack: Stack;
    let gateways: GatewayProcess[];
    let balancer: Balancer;
    beforeAll(async () => {
      provider = await startBothProvider();
      stack = await startStack({ providers: provider.file });
      gateways = [await startGatewayProcess(stack, ENV), await startGatewayProcess(stack, ENV)];
      const urls = gateways.map(({ url }) => new URL(url));
      balancer = await startBalancer(name, program, urls);
    });
    afterAll(async () => {
      await balancer.close();
      await Promise.all(gateways.map((each) => each.kill()));
      await stack.close();
      await provider.close();
    });

    /** Issues a URL that the processes find in Redis: the embedded Postgres is out of their reach. */
    async function issue(protocol: Protocol): Promise<string> {
      const { url } = await stack.issue({ ...protocol.ask, client_api_key: 'sk-real' });
      const first = await openIn(protocol, url);
      await turnIn(protocol, first);
      first.socket.close();
      return url.replace(stack.gatewayUrls[0] ?? '-', balancer.url);
    }

    /** Restarts a gateway while all sockets have a turn. Resolves with the codes of the sockets that it closed. */
    async function restart(at: number, holders: readonly Holder[]): Promise<number[]> {
      provider.hold();
      const turns = holders.map(({ protocol, socket }) => turnIn(protocol, socket));
      await eventually(async () => provider.held() === holders.length);
      const port = new URL(gateways[at]?.url ?? '').port;
      await balancer.leaves(port, 'sockets stay');
      const exited = gateways[at]?.stop();
      // Its turns end when it takes no more connections, and waits for them alone.
      await eventually(() =>
        fetch(`http://127.0.0.1:${port}/healthz`).then(
          () => false,
          () => true,
        ),
      );
      const codes: number[] = [];
      for (const { socket } of holders) void socket.closed.then(({ code }) => codes.push(code));
      provider.release();
      const ends = await Promise.all(turns);
      expect(ends.map(({ type }) => type)).toEqual(holders.map(({ protocol }) => protocol.last));
      expect(await exited).toBe(0);
      await Promise.all(holders.map(openAgain));
      gateways[at] = await startGatewayProcess(stack, { ...ENV, GATEWAY_PORT: port });
      await balancer.sees(port, 'sockets stay');
      return codes;
    }

    async function openAgain(holder: Holder): Promise<void> {
      if (holder.socket.socket.readyState === 1) return;
      holder.socket = await openIn(holder.protocol, holder.url);
    }

    test(`lose no turn of ${SOCKETS} sockets, and each socket opens again`, {
      timeout: 300_000,
    }, async () => {
      const urls = await Promise.all(PROTOCOLS.map(issue));
      const holders = await Promise.all(
        Array.from({ length: SOCKETS }, async (_, i): Promise<Holder> => {
          const [protocol, url] = [PROTOCOLS[i % 2 === 0 ? 0 : 1], urls[i % 2] ?? ''];
          return { protocol, url, socket: await openIn(protocol, url) };
        }),
      );
      for (const at of [0, 1]) {
        const codes = await restart(at, holders);
        expect(codes.length).toBeGreaterThan(0);
        expect(new Set(codes)).toEqual(new Set([1001]));
      }
      const ends = await Promise.all(holders.map(({ protocol, socket }) => turnIn(protocol, socket)));
      expect(ends.map(({ type }) => type)).toEqual(holders.map(({ protocol }) => protocol.last));
      for (const { socket } of holders) socket.socket.close();
    });
  });
});
