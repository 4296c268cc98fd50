import { readFileSync } from 'node:fs';
import { findGrant, keys, type RedisClient } from '@presign/limits';

type Grant = {
  readonly token: string;
  readonly id: string;
  readonly budgets: string;
  readonly admit: readonly string[];
  readonly hold: string;
  readonly rest: readonly string[];
  readonly survivors: string;
  readonly budget: readonly string[];
};

type Peer = {
  readonly dir: string;
  readonly upstreamPort: number;
  readonly redisPort: number;
  readonly plain: number;
  readonly lua: number;
  readonly grants: readonly Grant[];
  /** SHA-1 of admit and settle. */
  readonly scripts: readonly string[];
};

/** What the two scripts must be given for a URL's grant. */
export async function grantOf(redis: RedisClient, url: string): Promise<Grant> {
  const token = new URL(url).pathname.split('/')[3] ?? '';
  const payload = Buffer.from(token.split('.')[2] ?? '', 'base64url').subarray(0, -64);
  const { jti, prt } = JSON.parse(String(payload)) as { jti: string; prt: number };
  const found = await findGrant(redis, prt, jti);
  const doc = JSON.parse(found?.doc ?? '') as { crd: string; budget: string[] };
  return {
    token,
    id: jti,
    budgets: doc.budget.join(','),
    admit: [keys.partition(prt), keys.grant(prt, jti), keys.credential(prt, doc.crd)],
    hold: keys.hold(prt, ''),
    rest: [keys.leases(prt), keys.usage(prt)],
    survivors: keys.survivors(prt),
    budget: doc.budget.map((id) => keys.budget(prt, id)),
  };
}

/** Loads one of the project's own scripts, of these files, into Redis: nginx does the very same work there. */
export async function scriptSha(redis: RedisClient, ...names: readonly string[]): Promise<string> {
  const texts = names.map((name) =>
    readFileSync(new URL(`../packages/limits/src/lua/${name}.lua`, import.meta.url), 'utf8'),
  );
  return String(await redis.script('LOAD', texts.join('')));
}

/**
 * nginx as the peer at the limit: one worker, tokens looked up in a table (as if verified before), admit before
 * the call, settle after the answer. The plain server checks nothing.
 */
export function nginxConf({ dir, upstreamPort, redisPort, plain, lua, grants, scripts }: Peer): string {
  const [admit, settle] = scripts;
  return `
daemon off; worker_processes 1; pid ${dir}/nginx.pid; error_log ${dir}/error.log error;
load_module /usr/lib/nginx/modules/ndk_http_module.so;
load_module /usr/lib/nginx/modules/ngx_http_lua_module.so;
events { worker_connections 4096; }
http {
  access_log off; lua_package_path "/usr/share/lua/5.1/?.lua;;";
  client_body_temp_path ${dir}/b; proxy_temp_path ${dir}/p; fastcgi_temp_path ${dir}/f;
  uwsgi_temp_path ${dir}/u; scgi_temp_path ${dir}/s;
  lua_max_running_timers 65536; lua_max_pending_timers 65536;
  keepalive_requests 1000000; large_client_header_buffers 4 16k;
  upstream provider { server 127.0.0.1:${upstreamPort}; keepalive 128; keepalive_requests 1000000; }
  init_by_lua_block {
    redis = require "nginx.redis"
    redis.add_commands("evalsha")
    grants = {${grants.map((grant) => `["${grant.token}"]=${table(grant)}`).join(',\n')}}
    function on_redis(...)
      local red = redis:new()
      red:set_timeout(1000)
      local ok, failed = red:connect("127.0.0.1", ${redisPort})
      if not ok then return nil, failed end
      local answer, why = red:evalsha(...)
      red:set_keepalive(60000, 256)
      return answer, why
    end
    record = '{"acc":"${'0'.repeat(36)}","ses":"${'0'.repeat(36)}","grt":"${'0'.repeat(36)}","prv":"openai","beg":1}'
  }
  server { listen 127.0.0.1:${plain}; location / {
    proxy_pass http://provider; proxy_http_version 1.1; proxy_set_header Connection "";
  } }
  server { listen 127.0.0.1:${lua}; location ~ ^/llm/t/(?<token>[^/]+)(?<rest>/.*)$ {
    set $hold "";
    access_by_lua_block {
      local grant = grants[ngx.var.token]
      if not grant then return ngx.exit(401) end
      local hold = string.format("%08x%08x%08x%08x", math.random(0, 2^31), math.random(0, 2^31), math.random(0, 2^31), ngx.now())
      ngx.var.hold = hold
      local a, r = grant.admit, grant.rest
      local answer, why = on_redis("${admit}", 6 + #grant.budget, a[1], a[2], a[3], grant.hold .. hold, r[1], r[2], grant.budget[1],
        hold, 60000, 1, 100000, grant.id, grant.budgets, record, '', 0, 0, 0)
      if not answer or answer[1] ~= "ok" then ngx.log(ngx.ERR, answer and answer[1] or "no answer", " ", why) return ngx.exit(503) end
      ngx.ctx.epoch = answer[2]
      ngx.req.set_header("Authorization", "Bearer sk-real")
    }
    log_by_lua_block {
      local grant, hold, epoch = grants[ngx.var.token], ngx.var.hold, ngx.ctx.epoch
      if not epoch then return end
      ngx.timer.at(0, function()
        on_redis("${settle}", 5 + #grant.budget, grant.admit[1], grant.hold .. hold, grant.rest[1], grant.rest[2],
          grant.survivors, grant.budget[1], hold, 'settle', 1, '', epoch, grant.id, grant.budgets, record)
      end)
    }
    proxy_pass http://provider$rest; proxy_http_version 1.1; proxy_set_header Connection "";
  } }
}
`;
}

function table(value: unknown): string {
  if (Array.isArray(value)) return `{${value.map(table).join(',')}}`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  return `{${Object.entries(value)
    .map(([key, inner]) => `${key}=${table(inner)}`)
    .join(',')}}`;
}
