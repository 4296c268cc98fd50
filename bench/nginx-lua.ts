import { admitScript, BACKLOG_MAX, findGrant, keys, type RedisClient, settleScript } from '@presign/limits';

type Grant = {
  readonly token: string;
  readonly id: string;
  readonly budget_ids: string;
  readonly keys: Readonly<Record<(typeof KEYS)[number], string>>;
};

const KEYS = ['partition', 'grant', 'credential', 'hold', 'leases', 'usage', 'survivors', 'budget'] as const;

type Peer = {
  readonly dir: string;
  readonly upstreamPort: number;
  readonly redisPort: number;
  readonly plain: number;
  readonly lua: number;
  readonly grants: readonly Grant[];
  readonly scripts: { readonly admit: string; readonly settle: string };
};

/** The input of the two scripts for a URL's grant. */
export async function grantOf(redis: RedisClient, url: string): Promise<Grant> {
  const token = new URL(url).pathname.split('/')[3] ?? '';
  const payload = Buffer.from(token.split('.')[2] ?? '', 'base64url').subarray(0, -64);
  const { jti, prt } = JSON.parse(String(payload)) as { jti: string; prt: number };
  const found = await findGrant(redis, prt, jti);
  const doc = JSON.parse(found?.doc ?? '') as { crd: string; budget: string[] };
  return {
    token,
    id: jti,
    budget_ids: doc.budget.join(','),
    keys: {
      partition: keys.partition(prt),
      grant: keys.grant(prt, jti),
      credential: keys.credential(prt, doc.crd),
      hold: keys.hold(prt, ''),
      leases: keys.leases(prt),
      usage: keys.usage(prt),
      survivors: keys.survivors(prt),
      budget: keys.budget(prt, doc.budget[0] ?? ''),
    },
  };
}

/** Loads the project's own scripts into Redis, where nginx runs them by these SHA-1s. */
export async function loadScripts(redis: RedisClient): Promise<{ admit: string; settle: string }> {
  const load = async (text: string) => String(await redis.script('LOAD', text));
  return { admit: await load(admitScript.text), settle: await load(settleScript.text) };
}

/** The arguments of the scripts, as Lua expressions. */
const [partition, grant, credential, hold, leases, usage, survivors, budget] = KEYS.map((key) =>
  key === 'hold' ? 'grant.keys.hold .. hold' : `grant.keys.${key}`,
) as [string, string, string, string, string, string, string, string];
const COMMON = {
  holdId: 'hold',
  uses: 1,
  grantId: 'grant.id',
  budgetIds: 'grant.budget_ids',
  record: 'record',
};
const ADMIT = admitScript.place({
  keys: { partition, grant, credential, hold, leases, usage },
  args: {
    ...COMMON,
    leaseMs: 60_000,
    calls: 1,
    backlogMax: BACKLOG_MAX,
    fixed: "''",
    rate: 0,
    tokens: 0,
    leastTokens: 0,
  },
  each: [{ budget }],
});
const SETTLE = settleScript.place({
  keys: { partition, hold, leases, usage, survivors },
  args: { ...COMMON, mode: "'settle'", cost: "''", epoch: 'epoch', lastCall: "''" },
  each: [{ budget }],
});

/**
 * nginx as the peer at the limit: one worker, tokens looked up in a table (as if verified before), admit before
 * the call, settle after the answer. The plain server checks nothing.
 */
export function nginxConf({ dir, upstreamPort, redisPort, plain, lua, grants, scripts }: Peer): string {
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
      local answer, why = on_redis("${scripts.admit}", ${ADMIT.join(', ')})
      local epoch = answer and answer:match("^admitted\\t([^\\t]*)")
      if not epoch then ngx.log(ngx.ERR, answer or "no answer", " ", why) return ngx.exit(503) end
      ngx.ctx.epoch = epoch
      ngx.req.set_header("Authorization", "Bearer sk-real")
    }
    log_by_lua_block {
      local grant, hold, epoch = grants[ngx.var.token], ngx.var.hold, ngx.ctx.epoch
      if not epoch then return end
      ngx.timer.at(0, function()
        on_redis("${scripts.settle}", ${SETTLE.join(', ')})
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
