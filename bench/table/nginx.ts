import { admitScript, BACKLOG_MAX, findGrant, keys, type RedisClient, settleScript } from '@presign/limits';

const KEYS = [
  'partition',
  'account',
  'grant',
  'credential',
  'hold',
  'leases',
  'usage',
  'survivors',
  'budget',
] as const;

type Grant = {
  readonly id: string;
  readonly budget_ids: string;
  readonly keys: Readonly<Record<(typeof KEYS)[number], string>>;
};

export type Nginx = {
  readonly dir: string;
  readonly redisPort: number;
  readonly upstream: { readonly port: number; readonly tlsPort: number };
  readonly certificate: string;
  /** JSON: grants by token. */
  readonly grantsFile: string;
  /** Where the log goes: the end of a pipe. */
  readonly log: string;
  readonly scripts: { readonly admit: string; readonly settle: string };
  /** To the plain upstream and to that with TLS: nothing but proxying, the scripts alone, and everything. */
  readonly ports: Readonly<Record<'plain' | 'plainTls' | 'scripts' | 'metered' | 'meteredTls', number>>;
};

/** The input of the two scripts for the grant of a URL's path, which Redis has; by token. */
export async function grantOf(redis: RedisClient, path: string): Promise<[token: string, grant: Grant]> {
  const token = path.split('/')[3] ?? '';
  const payload = Buffer.from(token.split('.')[2] ?? '', 'base64url').subarray(0, -64);
  const { jti, prt } = JSON.parse(String(payload)) as { jti: string; prt: number };
  const found = await findGrant(redis, prt, jti);
  if (!found || !('doc' in found)) throw new Error('a URL for nginx has not been called yet');
  const doc = JSON.parse(found.doc) as { acc: string; crd: string; budget: string[] };
  const grant = {
    id: jti,
    budget_ids: doc.budget.join(','),
    keys: {
      partition: keys.partition(prt),
      grant: keys.grant(prt, jti),
      account: keys.account(prt, doc.acc),
      credential: keys.credential(prt, doc.crd),
      hold: keys.hold(prt, ''),
      leases: keys.leases(prt),
      usage: keys.usage(prt),
      survivors: keys.survivors(prt),
      budget: keys.budget(prt, doc.budget[0] ?? ''),
    },
  };
  return [token, grant];
}

/** Loads the project's own scripts into Redis, where nginx runs them by these SHA-1s. */
export async function loadScripts(redis: RedisClient): Promise<Nginx['scripts']> {
  const load = async (text: string) => String(await redis.script('LOAD', text));
  return { admit: await load(admitScript.text), settle: await load(settleScript.text) };
}

/** The arguments of the scripts, as Lua expressions. */
const [partition, account, grant, credential, hold, leases, usage, survivors, budget] = KEYS.map((key) =>
  key === 'hold' ? 'grant.keys.hold .. hold' : `grant.keys.${key}`,
) as [string, string, string, string, string, string, string, string, string];
const COMMON = {
  holdId: 'hold',
  uses: 1,
  grantId: 'grant.id',
  budgetIds: 'grant.budget_ids',
  record: 'record',
};
const ADMIT = admitScript.place({
  keys: { partition, account, grant, credential, hold, leases, usage },
  args: {
    ...COMMON,
    mode: "'hold'",
    leaseMs: 60_000,
    calls: 1,
    backlogMax: BACKLOG_MAX,
    places: 1,
    fixed: 'worst.fixed',
    rate: 'worst.rate',
    tokens: 'worst.tokens',
    leastTokens: 'worst.least',
    worstTokens: "''",
  },
  each: [{ budget }],
});
const SETTLE = settleScript.place({
  keys: { partition, hold, leases, usage, survivors },
  args: {
    ...COMMON,
    mode: "'settle'",
    cost: 'cost',
    epoch: 'epoch',
    lastCall: "''",
    usedTokens: "''",
    wasSent: 1,
  },
  each: [{ budget }],
});

/**
 * nginx as the peer at the limit: one worker, tokens looked up in a table (as if verified before), admit before the call,
 * settle after the answer. The metered servers also parse the request, hold its worst cost, read the usage from the answer
 * and charge its price. The plain servers check nothing. All write a log line for each call.
 */
export function nginxConf(nginx: Nginx): string {
  const { dir, ports, log, upstream } = nginx;
  return `
daemon off; worker_processes 1; pid ${dir}/nginx.pid; error_log ${dir}/nginx-error.log error;
load_module /usr/lib/nginx/modules/ndk_http_module.so;
load_module /usr/lib/nginx/modules/ngx_http_lua_module.so;
events { worker_connections 4096; }
http {
  log_format call escape=json '{"time":"$time_iso8601","request_id":"$request_id","method":"$request_method",'
    '"status":$status,"bytes":$bytes_sent,"seconds":$request_time,"upstream_seconds":"$upstream_response_time"}';
  log_format metered escape=json '{"time":"$time_iso8601","request_id":"$request_id","method":"$request_method",'
    '"status":$status,"bytes":$bytes_sent,"seconds":$request_time,"upstream_seconds":"$upstream_response_time",'
    '"grant":"$grant","model":"$model","cost":"$cost"}';
  # A write for about twenty lines, as the gateway does.
  access_log ${log} call buffer=48k flush=100ms;
  lua_package_path "/usr/share/lua/5.1/?.lua;;";
  client_body_temp_path ${dir}/b; proxy_temp_path ${dir}/p; fastcgi_temp_path ${dir}/f;
  uwsgi_temp_path ${dir}/u; scgi_temp_path ${dir}/s;
  client_body_buffer_size 2m; client_max_body_size 16m;
  lua_max_running_timers 65536; lua_max_pending_timers 65536;
  keepalive_requests 1000000; keepalive_timeout 620s; large_client_header_buffers 4 16k;
  proxy_http_version 1.1; proxy_set_header Connection "";
  proxy_ssl_trusted_certificate ${nginx.certificate}; proxy_ssl_verify on; proxy_ssl_name localhost;
  upstream provider { server 127.0.0.1:${upstream.port}; keepalive 256; keepalive_requests 1000000; }
  upstream provider_tls { server 127.0.0.1:${upstream.tlsPort}; keepalive 256; keepalive_requests 1000000; }
  init_by_lua_block { ${initLua(nginx)} }
  server { listen 127.0.0.1:${ports.plain}; location / { proxy_pass http://provider; } }
  server { listen 127.0.0.1:${ports.plainTls}; location / { proxy_pass https://provider_tls; } }
  ${limitedServer(nginx, ports.scripts, 'http://provider', false)}
  ${limitedServer(nginx, ports.metered, 'http://provider', true)}
  ${limitedServer(nginx, ports.meteredTls, 'https://provider_tls', true)}
}
`;
}

const limitedServer = ({ log }: Nginx, port: number, upstream: string, isMetered: boolean) => `
  server { listen 127.0.0.1:${port}; location ~ ^/llm/t/(?<token>[^/]+)(?<rest>/.*)$ {
    set $grant ""; set $model ""; set $cost "";
    access_by_lua_block { admit(${isMetered}) }
    ${isMetered ? `access_log ${log} metered buffer=48k flush=100ms; body_filter_by_lua_block { read_usage() }` : ''}
    log_by_lua_block { settle(${isMetered}) }
    proxy_pass ${upstream}$rest;
  } }`;

const initLua = ({ grantsFile, redisPort, scripts }: Nginx) => `
    local cjson = require "cjson.safe"
    local redis = require "nginx.redis"
    redis.add_commands("evalsha")
    local file = io.open("${grantsFile}")
    local grants = cjson.decode(file:read("*a"))
    file:close()
    -- Microdollars per million tokens.
    local prices = { ["gpt-4o-mini"] = { input = 150000, output = 600000 } }
    local unpriced = { fixed = 0, rate = 0, tokens = 0, least = 0 }
    local id = string.rep("0", 36)

    local function on_redis(...)
      local red = redis:new()
      red:set_timeout(1000)
      local ok, failed = red:connect("127.0.0.1", ${redisPort})
      if not ok then return nil, failed end
      local answer, why = red:evalsha(...)
      red:set_keepalive(60000, 256)
      return answer, why
    end

    -- The most that a call can cost: a token for each byte of input, and the output that it asks for.
    local function worst_cost(ctx)
      ngx.req.read_body()
      local text = ngx.req.get_body_data()
      local body = text and cjson.decode(text)
      local price = type(body) == "table" and prices[body.model]
      if not price or not body.max_tokens then return ngx.exit(400) end
      ctx.price, ctx.model, ctx.is_stream = price, body.model, body.stream == true
      return { fixed = math.ceil(#text * price.input / 1e6), rate = price.output, tokens = body.max_tokens, least = 1 }
    end

    local function record_of(ctx)
      if not ctx.model then return '{"acc":"' .. id .. '","ses":"' .. id .. '","prv":"openai","beg":1}' end
      return cjson.encode({ acc = id, ses = id, prv = "openai", mdl = ctx.model, beg = ngx.now(), usg = ctx.usage })
    end

    function admit(is_metered)
      local grant = grants[ngx.var.token]
      if not grant then return ngx.exit(401) end
      local ctx = ngx.ctx
      local worst = is_metered and worst_cost(ctx) or unpriced
      local hold = string.format("%08x%08x%08x%08x", math.random(0, 2^31), math.random(0, 2^31), math.random(0, 2^31), ngx.now())
      local record = record_of(ctx)
      local answer, why = on_redis("${scripts.admit}", ${ADMIT.join(', ')})
      local epoch = answer and answer:match("^admitted\\t([^\\t]*)")
      if not epoch then ngx.log(ngx.ERR, answer or "no answer", " ", why) return ngx.exit(503) end
      ctx.grant, ctx.hold, ctx.epoch = grant, hold, epoch
      ngx.req.set_header("Authorization", "Bearer sk-real")
    end

    -- An answer is kept until its end. In a stream, only the chunk with the usage is parsed.
    function read_usage()
      local ctx, chunk, is_last = ngx.ctx, ngx.arg[1], ngx.arg[2]
      if ctx.is_stream then
        local at = chunk:find('"usage":{', 1, true)
        if at then ctx.usage = cjson.decode(chunk:match("%b{}", at)) end
        return
      end
      ctx.chunks = ctx.chunks or {}
      ctx.chunks[#ctx.chunks + 1] = chunk
      if is_last then
        local answer = cjson.decode(table.concat(ctx.chunks))
        ctx.usage = answer and answer.usage
      end
    end

    function settle(is_metered)
      local ctx = ngx.ctx
      local grant, hold, epoch = ctx.grant, ctx.hold, ctx.epoch
      if not epoch then return end
      local cost, usage, price = "", ctx.usage, ctx.price
      if usage then
        cost = math.ceil((usage.prompt_tokens * price.input + usage.completion_tokens * price.output) / 1e6)
      end
      if is_metered then ngx.var.grant, ngx.var.model, ngx.var.cost = grant.id, ctx.model, cost end
      local record = record_of(ctx)
      ngx.timer.at(0, function()
        on_redis("${scripts.settle}", ${SETTLE.join(', ')})
      end)
    end
`;
