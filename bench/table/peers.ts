import { existsSync, openSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { freePort } from '@presign/test/harness/free-port.ts';
import { childrenOf, listening, run } from '../processes.ts';
import type { Target } from './load.ts';
import { grantOf, loadScripts, nginxConf } from './nginx.ts';
import { METERED, type RowId } from './results.ts';
import type { Services } from './services.ts';

/** Where `install-peers.sh` puts what no package manager of the system has. */
const PEERS_DIR = fileURLToPath(new URL('../.peers', import.meta.url));
/** Node 24, and the Node of the containers, as far as they are installed. */
export const NEWER_NODES = ['node24', 'node26']
  .map((each) => join(PEERS_DIR, each, 'node_modules/node/bin/node'))
  .filter(existsSync);

/** A proxy to compare with, and the rows that it takes part in. */
export type Peer = {
  readonly name: string;
  readonly pid: number | undefined;
  readonly targets: Partial<Record<RowId, Omit<Target, 'name' | 'pid'>>>;
  /** Whether each call must leave an entry in the usage stream, and whether that must have the call's cost. */
  readonly settles?: 'without costs' | 'with costs';
  /** Fewer than others, because each call takes so long. */
  readonly connections?: number;
  /** A peer that works when it has no calls is stopped between its turns. */
  readonly isStopped?: true;
};

/** Paths of URLs that Redis knows. */
export type Urls = {
  readonly limited: readonly string[];
  readonly unlimited: readonly string[];
  readonly tls: readonly string[];
  /** With little money, for bodies of these sizes. */
  readonly short32k: readonly string[];
  readonly short256k: readonly string[];
};

const CHAT = ['/v1/chat/completions'];

/** Starts what is installed; says what is left out. */
export async function startPeers(
  services: Services,
  urls: Urls,
  node: string,
  skip: (why: string) => void,
): Promise<Peer[]> {
  const chosen = process.env.PEERS?.split(',');
  const isWanted = (kind: string) => chosen === undefined || chosen.includes(kind);
  if (chosen?.includes('none')) return [];
  const origin = `http://127.0.0.1:${services.upstream.port}`;
  const direct = { origin, paths: CHAT };
  return [
    { name: 'direct', pid: undefined, targets: { json: direct, rate: direct } },
    await bareProxy(services, node),
    ...(isWanted('nginx') ? await nginx(services, urls, skip) : []),
    ...(isWanted('envoy') ? await envoy(services, skip) : []),
    ...(isWanted('portkey') ? await portkey(services, skip) : []),
    ...(isWanted('litellm') ? await liteLlm(services, skip) : []),
  ];
}

async function bareProxy({ upstream, asSubject }: Services, node: string): Promise<Peer> {
  const port = await freePort();
  const file = fileURLToPath(new URL('./bare-proxy.mjs', import.meta.url));
  const pid = run(node, [file, String(port), `http://127.0.0.1:${upstream.port}`], {}, asSubject);
  await listening(port);
  const to = { origin: `http://127.0.0.1:${port}`, paths: CHAT };
  const sizes = { in32k: to, in256k: to, in1m: to, free256k: to, out200k: to };
  return {
    name: 'undici, bare',
    pid,
    targets: { json: to, burst: to, paced: to, mcp: to, rate: to, ...sizes },
  };
}

const NGINX_PARTS = [
  '/usr/sbin/nginx',
  '/usr/lib/nginx/modules/ngx_http_lua_module.so',
  '/usr/share/lua/5.1/nginx/redis.lua',
  '/usr/lib/x86_64-linux-gnu/lua/5.1/cjson.so',
];

async function nginx(services: Services, urls: Urls, skip: (why: string) => void): Promise<Peer[]> {
  const missing = NGINX_PARTS.find(
    (file) => !existsSync(file.replace('x86_64', process.arch === 'x64' ? 'x86_64' : 'aarch64')),
  );
  if (missing !== undefined) {
    skip(`nginx: ${missing} is missing (Debian: nginx, libnginx-mod-http-lua, lua-nginx-redis, lua-cjson)`);
    return [];
  }
  const { dir, redis } = services;
  const names = ['plain', 'plainTls', 'scripts', 'metered', 'meteredTls'] as const;
  const free = await Promise.all(names.map(async (name) => [name, await freePort()] as const));
  const ports = Object.fromEntries(free) as Record<(typeof names)[number], number>;
  const paths = [...urls.limited, ...urls.unlimited, ...urls.tls];
  const grants = await Promise.all(paths.map((path) => grantOf(redis, path)));
  const grantsFile = join(dir, 'grants.json');
  writeFileSync(grantsFile, JSON.stringify(Object.fromEntries(grants)));
  const conf = join(dir, 'nginx.conf');
  const scripts = await loadScripts(redis);
  writeFileSync(conf, nginxConf({ ...services, grantsFile, log: join(dir, 'log'), scripts, ports }));
  const master = run('/usr/sbin/nginx', ['-c', conf, '-p', dir], {}, services.asSubject);
  await Promise.all(Object.values(ports).map((port) => listening(port)));
  const pid = childrenOf(master)[0];
  const at = (name: (typeof names)[number], to: readonly string[]) => ({
    origin: `http://127.0.0.1:${ports[name]}`,
    paths: to,
  });
  const plain = at('plain', CHAT);
  const checked = at('scripts', urls.limited);
  const metered = at('metered', urls.limited);
  return [
    {
      name: 'nginx, plain',
      pid,
      targets: {
        json: plain,
        burst: plain,
        paced: plain,
        mcp: plain,
        tls: at('plainTls', CHAT),
      },
    },
    {
      name: 'nginx + Lua, same scripts',
      pid,
      settles: 'without costs',
      targets: { json: checked, burst: checked, paced: checked },
    },
    {
      name: METERED,
      pid,
      settles: 'with costs',
      targets: {
        ...{ json: metered, burst: metered, paced: metered, rate: metered },
        ...{ in32k: metered, in256k: metered, in1m: metered, out200k: metered },
        free256k: at('metered', urls.unlimited),
        ...{ free: at('metered', urls.unlimited), tls: at('meteredTls', urls.tls) },
      },
    },
  ];
}

/** Envoy with one worker that checks an API key and replaces it. */
async function envoy(services: Services, skip: (why: string) => void): Promise<Peer[]> {
  const program = [join(PEERS_DIR, 'python/bin/envoy'), '/usr/bin/envoy'].find((file) => existsSync(file));
  if (program === undefined) {
    skip('Envoy: not installed');
    return [];
  }
  const { dir, upstream, certificate, asSubject } = services;
  const [port, tlsPort] = [await freePort(), await freePort()];
  const type = (name: string) => ({ '@type': `type.googleapis.com/envoy.${name}` });
  const listener = (name: string, listenPort: number) => ({
    name,
    address: { socket_address: { address: '127.0.0.1', port_value: listenPort } },
    filter_chains: [
      {
        filters: [
          {
            name: 'http',
            typed_config: {
              ...type('extensions.filters.network.http_connection_manager.v3.HttpConnectionManager'),
              stat_prefix: name,
              access_log: [
                {
                  name: 'file',
                  typed_config: {
                    ...type('extensions.access_loggers.file.v3.FileAccessLog'),
                    path: join(dir, 'log'),
                  },
                },
              ],
              http_filters: [
                {
                  name: 'api-key',
                  typed_config: {
                    ...type('extensions.filters.http.api_key_auth.v3.ApiKeyAuth'),
                    credentials: [{ key: 'bench', client: 'bench' }],
                    key_sources: [{ header: 'x-api-key' }],
                  },
                },
                { name: 'router', typed_config: type('extensions.filters.http.router.v3.Router') },
              ],
              route_config: {
                virtual_hosts: [
                  {
                    name: 'all',
                    domains: ['*'],
                    routes: [{ match: { prefix: '/' }, route: { cluster: name, timeout: '0s' } }],
                    request_headers_to_add: [{ header: { key: 'authorization', value: 'Bearer sk-real' } }],
                  },
                ],
              },
            },
          },
        ],
      },
    ],
  });
  const cluster = (name: string, toPort: number, more: object) => ({
    name,
    type: 'STATIC',
    connect_timeout: '5s',
    load_assignment: {
      cluster_name: name,
      endpoints: [
        {
          lb_endpoints: [
            { endpoint: { address: { socket_address: { address: '127.0.0.1', port_value: toPort } } } },
          ],
        },
      ],
    },
    ...more,
  });
  const tls = {
    transport_socket: {
      name: 'tls',
      typed_config: {
        ...type('extensions.transport_sockets.tls.v3.UpstreamTlsContext'),
        sni: 'localhost',
        common_tls_context: { validation_context: { trusted_ca: { filename: certificate } } },
      },
    },
  };
  const config = join(dir, 'envoy.json');
  writeFileSync(
    config,
    JSON.stringify({
      static_resources: {
        listeners: [listener('plain', port), listener('tls', tlsPort)],
        clusters: [cluster('plain', upstream.port, {}), cluster('tls', upstream.tlsPort, tls)],
      },
    }),
  );
  const args = ['-c', config, '--concurrency', '1', '--log-level', 'error', '--disable-hot-restart'];
  const pid = run(program, args, {}, asSubject);
  await listening(port, 30);
  const headers = { 'x-api-key': 'bench' };
  const to = { origin: `http://127.0.0.1:${port}`, paths: CHAT, headers };
  const overTls = { origin: `http://127.0.0.1:${tlsPort}`, paths: CHAT, headers };
  return [
    {
      name: 'Envoy, API key',
      pid,
      targets: { json: to, burst: to, paced: to, mcp: to, tls: overTls },
    },
  ];
}

/** On this process's own Node: its streams fail on Node 24. */
async function portkey({ upstream, asSubject }: Services, skip: (why: string) => void): Promise<Peer[]> {
  const main = join(PEERS_DIR, 'portkey/node_modules/@portkey-ai/gateway/build/start-server.js');
  if (!existsSync(main)) {
    skip('Portkey: not installed');
    return [];
  }
  const port = await freePort();
  const pid = run(process.execPath, [main, '--headless', `--port=${port}`], {}, asSubject);
  await listening(port, 30);
  const headers = {
    'x-portkey-provider': 'openai',
    'x-portkey-custom-host': `http://127.0.0.1:${upstream.port}/v1`,
    authorization: 'Bearer sk-real',
  };
  const to = { origin: `http://127.0.0.1:${port}`, paths: CHAT, headers };
  return [{ name: 'Portkey, no limits', pid, targets: { json: to, burst: to } }];
}

/** LiteLLM's proxy with its master key and without a database, so it checks no budget. */
async function liteLlm({ dir, upstream, asSubject }: Services, skip: (why: string) => void): Promise<Peer[]> {
  const program = join(PEERS_DIR, 'python/bin/litellm');
  if (!existsSync(program)) {
    skip('LiteLLM: not installed');
    return [];
  }
  const port = await freePort();
  const config = join(dir, 'litellm.json');
  const params = {
    model: 'openai/gpt-4o-mini',
    api_base: `http://127.0.0.1:${upstream.port}/v1`,
    api_key: 'sk-real',
  };
  writeFileSync(
    config,
    JSON.stringify({
      model_list: [{ model_name: 'gpt-4o-mini', litellm_params: params }],
      general_settings: { master_key: 'sk-bench' },
    }),
  );
  const offline = { LITELLM_LOCAL_MODEL_COST_MAP: 'True', LITELLM_LOG: 'ERROR', HOME: dir };
  const log = openSync(join(dir, 'litellm.log'), 'w');
  const args = ['--config', config, '--host', '127.0.0.1', '--port', String(port), '--num_workers', '1'];
  const pid = run(program, args, offline, { ...asSubject, log });
  await listening(port, 120);
  const headers = { authorization: 'Bearer sk-bench' };
  const to = { origin: `http://127.0.0.1:${port}`, paths: CHAT, headers };
  return [
    { name: 'LiteLLM, master key', pid, isStopped: true, connections: 8, targets: { json: to, burst: to } },
  ];
}
