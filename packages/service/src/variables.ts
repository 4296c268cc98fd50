import { addressRange } from '@presign/schema';
import * as z from 'zod';

/** Only digits: `Number` also reads `0x50`, `1e3` and a space. */
const digits = z.string().regex(/^\d{1,15}$/);
const httpUrl = z
  .url({ protocol: /^https?$/ })
  .refine((text) => !/[?#\s\\@]/.test(text), 'no query, fragment or user')
  .transform((text) => text.replace(/\/+$/, ''))
  // A path that begins with `//` names another host.
  .refine((text) => text.lastIndexOf('//') < 'https://'.length, 'no empty part of the path');
const flag = z.enum(['true', 'false']).transform((text) => text === 'true');
const isLoopbackUrl = (text: string) =>
  /^http:\/\/(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])(?:[:/]|$)/.test(text);
const whole = (min: number, max = Number.MAX_SAFE_INTEGER) =>
  digits.transform(Number).pipe(z.int().min(min).max(max));
const port = whole(0, 65_535);
const seconds = whole(1, 86_400);

const listUrl = z
  .string()
  .refine((text) => URL.canParse(text) && !/[#\s]|^\w+:\/\/[^/?]*@/.test(text))
  .refine((text) => text.startsWith('https:') || isLoopbackUrl(text));
/** Callers wait for stores, so the bound is low. */
const storeSeconds = (least: number) => whole(least, 60);
/** 0, or at least so many. */
const days = (least: number) => whole(0, 36_500).refine((count) => count === 0 || count >= least);
const MIB = 1024 * 1024;
/** Only characters that no step of AWS's signature writes in another way. */
const BUCKET_AND_PREFIX = /^s3:\/\/([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?:\/((?:[\w.~-]+\/)*[\w.~-]*))?$/;
/** RFC 9110 §5.5: visible characters, as a header has them. */
const awsSecret = z.string().regex(/^[\x21-\x7e]{1,8192}$/);

type Variable<S extends z.ZodType> = { schema: S; meaning: string; example: string };
const variable = <S extends z.ZodType>(schema: S, meaning: string, example: string): Variable<S> => ({
  schema,
  meaning,
  example,
});

/** Every environment variable of both services: how it is read, what it means, an example. */
export const VARIABLES = {
  ISSUER_PORT: variable(port, 'port the issuer listens on', '8787'),
  GATEWAY_PORT: variable(port, 'port the gateway listens on', '8788'),
  HOST: variable(z.string().min(1), 'address both listen on; :: is every one of IPv6 and IPv4', '127.0.0.1'),
  ISSUER_URL: variable(
    httpUrl,
    "the issuer's public address, perhaps with a path",
    'https://presign.example.com',
  ),
  GATEWAY_URL: variable(
    httpUrl,
    "the gateway's public address, perhaps with a path: the beginning of issued URLs, and the tokens' audience",
    'https://gateway.example.com',
  ),
  DATABASE_URL: variable(
    z
      .string()
      .regex(/^postgres(ql)?:\/\//)
      .refine((text) => URL.canParse(text)),
    'Postgres',
    'postgres://presign:secret@postgres:5432/presign',
  ),
  DATABASE_POOL_SIZE: variable(
    whole(1, 1_000),
    'connections to Postgres; lists and reports of an issuer take up to 9 of them',
    '10',
  ),
  DATABASE_CONNECT_TIMEOUT_SECONDS: variable(
    storeSeconds(1),
    'most time of a connection to Postgres, 1 to 60',
    '5',
  ),
  DATABASE_STATEMENT_TIMEOUT_SECONDS: variable(
    storeSeconds(0),
    'most time of a statement, up to 60; 0, no bound: for a pooler that refuses statement_timeout',
    '10',
  ),
  DATABASE_PREPARE: variable(flag, 'false for a pooler without named prepared statements', 'true'),
  REDIS_URL: variable(
    z.string().regex(/^(rediss?|rediss?\+cluster|rediss?\+sentinel):\/\//),
    'Redis: one server, a Cluster (redis+cluster://a:6379,b:6379) or Sentinel (redis+sentinel://a:26379,b:26379/mymaster)',
    'redis://redis:6379',
  ),
  REDIS_CONNECT_TIMEOUT_SECONDS: variable(
    storeSeconds(1),
    'most time of a connection to Redis, 1 to 60',
    '5',
  ),
  REDIS_COMMAND_TIMEOUT_SECONDS: variable(
    storeSeconds(1),
    'most time until Redis answers, 1 to 60; then the connection is closed',
    '5',
  ),
  PRESIGN_DATA_DIR: variable(z.string().min(1), 'folder of embedded data and generated keys', '.presign'),
  BOOTSTRAP_API_KEY: variable(
    z.string().regex(/^[\x21-\x7e]{16,255}$/),
    'the first admin API key, at least 16 visible ASCII characters',
    'presign_sk_…',
  ),
  TOKEN_SIGNING_KEY: variable(
    z.string().regex(/^k4\.secret\./),
    'PASERK secret key that signs tokens',
    'k4.secret.…',
  ),
  TOKEN_PUBLIC_KEYS: variable(
    z.string().regex(/^k4\.public\./),
    'PASERK public keys that verify tokens, separated by commas',
    'k4.public.…',
  ),
  ENCRYPTION_KEYS: variable(
    z.string().regex(/^[\w-]+:/),
    'keys that seal credentials, id:base64 of 32 bytes, separated by commas; the first seals, all unseal',
    'k1:3q2+7w…',
  ),
  PROVIDERS_FILE: variable(
    z.string().min(1),
    'JSON file of further or changed providers',
    '/etc/presign/providers.json',
  ),
  PRICES_FILE: variable(
    z.string().min(1),
    "JSON file of model prices, in the format of genai-prices' data.json or LiteLLM's list",
    '/etc/presign/prices.json',
  ),
  PRICES_URL: variable(
    listUrl,
    'https address of such a list, instead of PRICES_FILE; http only on the loopback interface',
    'https://prices.example.com/data.json',
  ),
  PRICES_REFRESH_SECONDS: variable(seconds, 'time between two reads of the price list', '900'),
  KNOWLEDGE_FILE: variable(
    z.string().min(1),
    'JSON file of facts about providers that this version lacks',
    '/etc/presign/knowledge.json',
  ),
  KNOWLEDGE_URL: variable(
    listUrl,
    'https address of such a file, instead of KNOWLEDGE_FILE; http only on the loopback interface',
    'https://knowledge.example.com/knowledge.json',
  ),
  KNOWLEDGE_REFRESH_SECONDS: variable(seconds, 'time between two reads of the knowledge file', '900'),
  MCP_DEFAULT_CALL_COST: variable(
    whole(0),
    'price of an MCP call without another price, in microdollars',
    '1000',
  ),
  MCP_PRICES_FILE: variable(
    z.string().min(1),
    'JSON file of prices of MCP calls, by server address',
    '/etc/presign/mcp-prices.json',
  ),
  ALLOW_PRIVATE_UPSTREAMS: variable(
    flag,
    'whether private and loopback addresses may be called and get events',
    'false',
  ),
  HTTPS_PROXY: variable(
    z
      .string()
      .regex(/^https?:\/\/[^/\s]+\/?$/)
      .refine((text) => URL.canParse(text)),
    'proxy for https upstreams, as http(s)://[user:password@]host:port',
    'http://proxy.example.com:3128',
  ),
  NO_PROXY: variable(
    z.string().regex(/^[\w.*:[\],\s-]+$/),
    'hosts reached without HTTPS_PROXY, separated by commas; a name includes its subdomains',
    'llm.example.internal,10.0.0.7:8443',
  ),
  SANDBOX: variable(flag, '`start`: run the offline provider and MCP server', 'true'),
  SAMPLE_DATA: variable(
    flag,
    '`start`: on an empty data folder, fill an account named `sample` for the console',
    'true',
  ),
  HOLD_LEASE_SECONDS: variable(seconds, 'time until the holds of a dead gateway are settled in full', '60'),
  API_REQUESTS_PER_MINUTE: variable(
    whole(1, 1_000_000),
    'requests a minute of an API key without its own limit, over all issuers',
    '60000',
  ),
  UPSTREAM_TIMEOUT_SECONDS: variable(seconds, 'most time of a call', '3600'),
  LEDGER_KEPT_DAYS: variable(
    days(32),
    'days that a call stays in the ledger, at least 32; the sums of its day stay; 0: for good',
    '400',
  ),
  GRANTS_KEPT_DAYS: variable(
    days(2),
    'days that a URL and its session stay after its expiry, at least 2; 0: for good',
    '30',
  ),
  AUDIT_KEPT_DAYS: variable(days(1), 'days that an entry of the audit log stays; 0: for good', '400'),
  USAGE_KEPT_DAYS: variable(
    days(32),
    'days that the sums of a day stay, at least LEDGER_KEPT_DAYS; 0: for good',
    '1100',
  ),
  REFUSALS_KEPT_DAYS: variable(days(1), 'days that refused calls and their sums stay; 0: for good', '90'),
  USAGE_METADATA: variable(
    z
      .string()
      .regex(/^(?!__proto__\b)[\w-]{1,50}(?:,(?!__proto__\b)[\w-]{1,50}){0,3}$/)
      .transform((text) => [...new Set(text.split(','))].toSorted()),
    'keys of metadata that filter calls and group usage, at most four of 50 characters, separated by commas',
    'team,feature',
  ),
  ARCHIVE_FOLDER: variable(
    z.string().min(1),
    'folder for calls, URLs and sessions as CSV before they are deleted',
    '/var/lib/presign/archive',
  ),
  ARCHIVE_S3: variable(
    z
      .string()
      .regex(BUCKET_AND_PREFIX)
      .transform((text) => {
        const [, bucket = '', prefix = ''] = BUCKET_AND_PREFIX.exec(text) ?? [];
        return { bucket, prefix: prefix === '' ? '' : `${prefix}/` };
      }),
    'bucket for these files instead of a folder, perhaps with a prefix',
    's3://presign-archive/production',
  ),
  AWS_REGION: variable(z.string().regex(/^[a-z0-9-]{1,32}$/), 'region of the bucket', 'eu-central-1'),
  AWS_ENDPOINT_URL_S3: variable(
    httpUrl,
    'address of another store with the API of S3',
    'https://minio.example.internal:9000',
  ),
  AWS_ACCESS_KEY_ID: variable(awsSecret, 'id of the access key for the bucket', 'AKIA…'),
  AWS_SECRET_ACCESS_KEY: variable(awsSecret, 'secret of that access key', 'wJalr…'),
  AWS_SESSION_TOKEN: variable(awsSecret, 'session token of a temporary access key', 'IQoJb…'),
  MAX_BODY_BYTES: variable(
    whole(MIB, 32 * MIB),
    'most bytes of a body that a gateway reads whole, 1048576 to 33554432; a larger one gets 413',
    '16777216',
  ),
  MAX_HELD_BODY_BYTES: variable(
    // Bodies of the largest size must fit in addition to the memory that is kept free for small ones.
    whole(40 * MIB),
    "most bytes of bodies and unfinished events in a gateway's memory, at least 41943040; further calls get 503",
    '67108864',
  ),
  MAX_SOCKETS: variable(
    whole(1, 1_000_000),
    'sockets open at one gateway; further handshakes get 503',
    '5000',
  ),
  MAX_SOCKETS_PER_ACCOUNT: variable(
    whole(1, 1_000_000),
    'sockets of one account open at one gateway',
    '1000',
  ),
  MAX_SOCKETS_PER_URL: variable(whole(1, 1_000_000), 'sockets of one URL open at one gateway', '20'),
  MAX_SOCKET_MESSAGE_BYTES: variable(
    whole(1024, 16 * MIB),
    "most bytes of a holder's message on a socket; a larger one closes the socket with 1009",
    '1048576',
  ),
  MAX_SOCKET_ANSWER_BYTES: variable(
    whole(1024, 64 * MIB),
    "most bytes of a provider's message on a socket; a larger one ends the socket",
    '16777216',
  ),
  TRUSTED_PROXIES: variable(
    z
      .string()
      .transform((text) => text.split(','))
      .pipe(z.array(addressRange)),
    'addresses and ranges of the proxies before the gateway whose X-Forwarded-For counts, separated by commas',
    '10.0.0.0/8,fd00::/8',
  ),
  KEEP_ALIVE_SECONDS: variable(
    seconds,
    'how long a service keeps an idle connection; longer than your load balancer does',
    '620',
  ),
  SHUTDOWN_DRAIN_SECONDS: variable(
    whole(0, 3_600),
    'how long a service serves on after SIGTERM, while /readyz says unready; at least two probes of the load balancer',
    '10',
  ),
  SHUTDOWN_GRACE_SECONDS: variable(seconds, 'time from SIGTERM until a service cuts running calls', '25'),
  METRICS_PORT: variable(
    port,
    'port of /metrics on HOST, without authentication; without it metrics are off',
    '9464',
  ),
  OTEL_EXPORTER_OTLP_ENDPOINT: variable(
    httpUrl,
    'address of a collector of OTLP over HTTP; without it traces are off',
    'http://collector:4318',
  ),
  OTEL_TRACES_SAMPLER_ARG: variable(
    z
      .string()
      .regex(/^(?:0(?:\.\d{1,9})?|1(?:\.0)?)$/)
      .transform(Number),
    'share of calls and requests that are traced, 0 to 1',
    '0.1',
  ),
  TRACE_UPSTREAMS: variable(flag, 'whether upstreams get the traceparent of their span', 'false'),
  LOG_LEVEL: variable(
    z.enum(['trace', 'debug', 'info', 'warn', 'error', 'silent']),
    'lowest level that is logged',
    'info',
  ),
} as const;

type Variables = typeof VARIABLES;
export type VariableName = keyof Variables;
/** The type of a variable once it is read. */
export type VariableValue<N extends VariableName> = z.output<Variables[N]['schema']>;

/** Variables whose value is a secret. Each may be in a file, which `<name>_FILE` names, as containers hand them over. */
export const SECRETS: ReadonlySet<VariableName> = new Set([
  ...(['DATABASE_URL', 'REDIS_URL', 'BOOTSTRAP_API_KEY', 'TOKEN_SIGNING_KEY'] as const),
  ...(['TOKEN_PUBLIC_KEYS', 'ENCRYPTION_KEYS', 'HTTPS_PROXY'] as const),
  ...(['AWS_ACCESS_KEY_ID', 'AWS_SECRET_ACCESS_KEY', 'AWS_SESSION_TOKEN'] as const),
]);
