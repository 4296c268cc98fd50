import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { request } from 'undici';
import { eventually } from '../harness/eventually.ts';
import { freePort } from '../harness/free-port.ts';

/** A load balancer in a process of its own. */
export type Balancer = {
  readonly url: string;
  /** Resolves when it sends requests to the gateway at this port again. */
  readonly sees: (port: string) => Promise<void>;
  readonly close: () => Promise<void>;
};

const installed = (name: string) =>
  ['/usr/sbin', '/usr/bin', '/usr/local/sbin'].map((dir) => join(dir, name)).find(existsSync);

/** Load balancers and their programs. Undefined where it is not installed. */
export const balancers = ['haproxy', 'nginx'].map((name) => [name, installed(name)] as const);

/** Starts a load balancer before two gateways, with the settings that the operator guide gives. */
export async function startBalancer(
  name: string,
  program: string | undefined,
  gateways: readonly URL[],
): Promise<Balancer> {
  const port = await freePort();
  const ports = gateways.map((gateway) => gateway.port);
  const conf =
    name === 'haproxy' ? () => haproxyConf(port, ports) : (dir: string) => nginxConf(dir, port, ports);
  const url = `http://127.0.0.1:${port}`;
  const close = await runBalancer(name, program, conf, `${url}/healthz`);
  return {
    url,
    close,
    // A gateway that has started is ready. haproxy takes it back at its next probe.
    sees: async (gateway) => {
      await eventually(() =>
        request(`http://127.0.0.1:${gateway}/readyz`).then(
          ({ statusCode }) => statusCode === 200 || undefined,
          () => undefined,
        ),
      );
      if (name === 'haproxy')
        await eventually(async () => ((await haproxyStates(url)).every(Boolean) ? true : undefined));
    },
  };
}

/**
 * Starts a load balancer with the settings that `conf` makes for a folder, and waits until `probe` is answered.
 * @returns what stops it
 */
export async function runBalancer(
  name: string,
  program: string | undefined,
  conf: (dir: string) => string,
  probe: string,
): Promise<() => Promise<void>> {
  const dir = mkdtempSync(join(tmpdir(), 'presign-balancer-'));
  const file = join(dir, `${name}.conf`);
  writeFileSync(file, conf(dir));
  const args = name === 'haproxy' ? ['-f', file] : ['-c', file, '-p', dir];
  const child = spawn(program ?? name, args, { stdio: ['ignore', 'inherit', 'inherit'] });
  await eventually(() =>
    request(probe).then(
      ({ statusCode }) => statusCode === 200 || undefined,
      () => undefined,
    ),
  );
  return async () => {
    const exited = once(child, 'exit');
    child.kill('SIGTERM');
    await exited;
  };
}

/** Whether haproxy uses each of its servers, by its statistics. */
async function haproxyStates(url: string): Promise<boolean[]> {
  const { body } = await request(`${url}/haproxy;csv`);
  const rows = (await body.text()).split('\n').filter((row) => /^gateways,gateway\d/.test(row));
  return rows.map((row) => row.split(',')[17] === 'UP');
}

const haproxyConf = (port: number, ports: readonly string[]) => `
defaults
  mode http
  timeout connect 2s
  timeout client 60s
  timeout server 60s
  timeout http-keep-alive 60s
listen gateways
  bind 127.0.0.1:${port}
  stats enable
  stats uri /haproxy
  balance roundrobin
  option httpchk GET /readyz
  option redispatch 1
  retries 3
  retry-on conn-failure
  default-server check inter 500ms fall 2 rise 1
${ports.map((each, i) => `  server gateway${i} 127.0.0.1:${each}`).join('\n')}
`;

const nginxConf = (dir: string, port: number, ports: readonly string[]) => `
daemon off; pid ${dir}/nginx.pid; error_log ${dir}/error.log; worker_processes 1;
events { worker_connections 1024; }
http {
  access_log off; client_body_temp_path ${dir}/b; proxy_temp_path ${dir}/p; fastcgi_temp_path ${dir}/f;
  uwsgi_temp_path ${dir}/u; scgi_temp_path ${dir}/s; large_client_header_buffers 4 16k;
  upstream gateways {
${ports.map((each) => `    server 127.0.0.1:${each} max_fails=1 fail_timeout=1s;`).join('\n')}
    keepalive 32;
  }
  server {
    listen 127.0.0.1:${port};
    location / {
      proxy_pass http://gateways; proxy_http_version 1.1; proxy_set_header Connection "";
      proxy_set_header Host $host; proxy_buffering off; proxy_request_buffering off;
      proxy_next_upstream error timeout; proxy_next_upstream_tries 2;
    }
  }
}
`;
