import { createPresign, openaiOptions, PresignError } from '@presign/client';
import OpenAI from 'openai';
import { request } from 'undici';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { freePort } from '../harness/free-port.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { drive } from '../mcp/clients-drive.ts';
import { openRoad } from '../mcp/clients-road.ts';
import { type Everything, startEverything } from '../mcp/everything.ts';
import { post, toolCall } from '../mcp/holder.ts';
import { REAL_KEY } from '../sdk/keys.ts';
import type { PacedUpstream } from '../sdk/upstreams/paced.ts';
import { startSandboxUpstream } from '../sdk/upstreams/sandbox.ts';
import { balancers, runBalancer } from './balancer.ts';

/** Both services behind one host, each below a path. The paths look like routes, so that a path cut twice is noticed. */
const PATHS = { issuer: '/presign/v1', gateway: '/presign/mcp' } as const;

type Conf = {
  readonly port: number;
  readonly to: Record<keyof typeof PATHS, string>;
  readonly cuts: boolean;
};

const haproxyConf = ({ port, to, cuts }: Conf) => `
defaults
  mode http
  timeout connect 2s
  timeout client 60s
  timeout server 60s
frontend public
  bind 127.0.0.1:${port}
${Object.entries(PATHS)
  .map(([name, path]) => `  use_backend ${name} if { path_beg ${path}/ }`)
  .join('\n')}
${Object.entries(PATHS)
  .map(
    ([name, path]) => `backend ${name}
  ${cuts ? `http-request replace-path ${path}(/.*) \\1` : ''}
  server ${name} ${to[name as keyof typeof PATHS]}`,
  )
  .join('\n')}
`;

const nginxConf = (dir: string, { port, to, cuts }: Conf) => `
daemon off; pid ${dir}/nginx.pid; error_log ${dir}/error.log; worker_processes 1;
events { worker_connections 1024; }
http {
  access_log off; client_body_temp_path ${dir}/b; proxy_temp_path ${dir}/p; fastcgi_temp_path ${dir}/f;
  uwsgi_temp_path ${dir}/u; scgi_temp_path ${dir}/s; large_client_header_buffers 4 16k;
  proxy_http_version 1.1; proxy_set_header Connection ""; proxy_set_header Host $http_host;
  proxy_buffering off; proxy_request_buffering off;
  server {
    listen 127.0.0.1:${port};
${Object.entries(PATHS)
  .map(
    ([name, path]) =>
      `    location ${path}/ { proxy_pass http://${to[name as keyof typeof PATHS]}${cuts ? '/' : ''}; }`,
  )
  .join('\n')}
  }
}
`;

const TABLE = balancers.flatMap(([name, program]) => [
  { name, program, cuts: true },
  { name, program, cuts: false },
]);

describe.each(TABLE)(
  'behind $name, which strips the path of a public URL: $cuts',
  ({ name, program, cuts }) => {
    let upstream: PacedUpstream;
    let servers: Record<'http' | 'sse', Everything>;
    let stack: Stack;
    let stop: () => Promise<void>;
    let issuerUrl: string;
    let gatewayUrl: string;

    beforeAll(async () => {
      if (!program) return;
      const [http, sse, sandbox, port] = await Promise.all([
        startEverything('http'),
        startEverything('sse'),
        startSandboxUpstream(),
        freePort(),
      ]);
      [servers, upstream] = [{ http, sse }, sandbox];
      issuerUrl = `http://127.0.0.1:${port}${PATHS.issuer}`;
      gatewayUrl = `http://127.0.0.1:${port}${PATHS.gateway}`;
      stack = await startStack({
        providers: { openai: { base_url: upstream.url } },
        issuer: { issuerUrl, gatewayUrl },
        gateway: { gatewayUrl },
      });
      const host = (url: string | undefined) => new URL(url ?? '').host;
      const to = { issuer: host(stack.issuerUrl), gateway: host(stack.gatewayUrls[0]) };
      const conf = { port, to, cuts };
      const write = name === 'haproxy' ? () => haproxyConf(conf) : (dir: string) => nginxConf(dir, conf);
      ({ close: stop } = await runBalancer(name, program, write, `${gatewayUrl}/healthz`));
    });
    afterAll(async () => {
      if (!program) return;
      await stop();
      await stack.close();
      await Promise.all([servers.http, servers.sse, upstream].map((each) => each.close()));
    });

    test.skipIf(!program)(
      'the client issues a URL, the OpenAI SDK calls it, and limits and figures are right',
      async () => {
        const presign = createPresign({ url: issuerUrl, apiKey: stack.apiKey });
        const path = '/v1/chat/completions';
        const issued = await presign.presign({
          provider: 'openai',
          path,
          client_api_key: REAL_KEY,
          max_uses: 2,
        });
        expect(issued.url.startsWith(`${gatewayUrl}/llm/t/v4.public.`)).toBe(true);
        const client = new OpenAI({ ...openaiOptions(issued), maxRetries: 0 });
        const messages = [{ role: 'user' as const, content: 'Hello' }];
        const { choices } = await client.chat.completions.create({ model: 'sandbox-1', messages });
        expect(choices[0]?.message.content).toContain('You said: Hello');
        let said = '';
        for await (const chunk of await client.chat.completions.create({
          model: 'sandbox-1',
          messages,
          stream: true,
        }))
          said += chunk.choices[0]?.delta.content ?? '';
        expect(said).toContain('You said: Hello');
        const refused = client.chat.completions.create({ model: 'sandbox-1', messages });
        await expect(refused).rejects.toMatchObject({ status: 403, code: 'uses_exhausted' });
        const figures = await request(issued.url.slice(0, -path.length));
        expect(await figures.body.json()).toMatchObject({ max_uses: 2, used: 2 });
        const session = await presign.getSession({ id: issued.session_id });
        expect(session).toMatchObject({ id: issued.session_id });
        const unknown = presign.getSession({ id: '00000000-0000-4000-8000-000000000000' });
        await expect(unknown).rejects.toThrow(PresignError);
      },
    );

    test.skipIf(!program)(
      'the bundle is loaded, and the official client works over both transports',
      async () => {
        const both = Object.entries(servers).map(([transport, { url }]) => ({
          name: transport,
          url,
          transport,
        }));
        const presign = createPresign({ url: issuerUrl, apiKey: stack.apiKey });
        const issued = await presign.mcpPresign({ servers: both as never, max_uses: 10 });
        expect(issued.bundle_url.startsWith(`${gatewayUrl}/mcp/bundle/`)).toBe(true);
        const loaded = await request(issued.bundle_url);
        const document = (await loaded.body.json()) as { mcpServers: Record<string, { url: string }> };
        expect(document.mcpServers).toEqual(issued.servers);
        for (const transport of ['http', 'sse'] as const) {
          const url = document.mcpServers[transport]?.url ?? '';
          expect(url.startsWith(`${gatewayUrl}/mcp/mcp?url=`)).toBe(true);
          const driven = await drive({ generation: 'v1', transport, url, road: openRoad() });
          const answer = await driven.client.callTool({ name: 'echo', arguments: { message: 'Hello' } });
          expect(answer.content).toMatchObject([{ type: 'text', text: expect.stringContaining('Hello') }]);
          const posted = driven.road.exchanges
            .filter(({ verb }) => verb === 'POST')
            .map(({ url }) => url.pathname);
          expect(new Set(posted)).toEqual(new Set([`${PATHS.gateway}/mcp/mcp`]));
          await driven.close();
        }
      },
    );

    test.skipIf(!program)('a token is refused at a gateway with another path', async () => {
      const { url } = await stack.issue({ provider: 'openai', path: '/v1/models', client_api_key: REAL_KEY });
      const other = await stack.addGateway({ gatewayUrl: `${new URL(gatewayUrl).origin}/presign/other` });
      const answer = await request(other + new URL(url).pathname.slice(PATHS.gateway.length), {
        method: 'POST',
      });
      expect([answer.statusCode, await answer.body.json()]).toMatchObject([
        401,
        { error: { code: 'token_invalid' } },
      ]);
      const { servers: issued } = await stack.issueMcp({ servers: [{ name: 'a', url: servers.http.url }] });
      const { pathname, search } = new URL(issued.a?.url ?? '');
      const heard = await post(`${other}${pathname.slice(PATHS.gateway.length)}${search}`, toolCall('echo'));
      expect(heard.messages).toMatchObject([{ error: { data: { code: 'token_invalid' } } }]);
    });

    test.skipIf(!program)('the reference page and the OpenAPI document name the public URL', async () => {
      const page = await (await request(`${issuerUrl}/docs/api`)).body.text();
      expect(page).toContain(`"servers":[{"url":"${issuerUrl}"`);
      expect(page).toContain(`"servers":[{"url":"${gatewayUrl}"`);
      const script = await request(
        new URL(/src="(api\/scalar\.js)"/.exec(page)?.[1] ?? '', `${issuerUrl}/docs/api`),
      );
      expect([script.statusCode, (await script.body.text()).length > 1_000_000]).toEqual([200, true]);
      const link = new URL(/href="(\.\.\/openapi\.json)"/.exec(page)?.[1] ?? '', `${issuerUrl}/docs/api`);
      const document = (await (await request(link)).body.json()) as { servers: { url: string }[] };
      expect(document.servers.map(({ url }) => url)).toEqual([issuerUrl]);
    });

    test.skipIf(!program)('the documentation links to its own pages, style and script', async () => {
      const redirect = await request(`${issuerUrl}/docs`);
      const contents = new URL(String(redirect.headers.location), `${issuerUrl}/docs`).href;
      expect([redirect.statusCode, contents]).toEqual([308, `${issuerUrl}/docs/`]);
      const page = new URL('guides/issue-a-url', contents);
      const html = await (await request(page)).body.text();
      const links = Array.from(html.matchAll(/(?:href|src)="([^"#]+)["#]/g), ([, link = '']) => link);
      const own = [...new Set(links.map((link) => new URL(link, page).href))].filter((link) =>
        link.startsWith(new URL(issuerUrl).origin),
      );
      expect(own.length).toBeGreaterThan(60);
      for (const link of own) {
        const answer = await request(link);
        expect([link, answer.statusCode]).toEqual([link, 200]);
        await answer.body.dump();
      }
      const listed = await (await request(`${issuerUrl}/llms.txt`)).body.text();
      expect(listed).toContain(`(${issuerUrl}/docs/guides/issue-a-url.md)`);
    });
  },
);
