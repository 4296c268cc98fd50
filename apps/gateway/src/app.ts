import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response';
import { type ErrorShape, errorShapeOf } from '@presign/providers';
import { ambiguousRequest, type Refusal } from '@presign/schema';
import { type Handler, Hono } from 'hono';
import type { GatewayEnv, ServeCall } from './call-deps.ts';
import { CallReport, callReporter } from './call-report.ts';
import type { GatewayDeps } from './deps.ts';
import { grantMemory } from './grant/policy.ts';
import { grantReader } from './grant/read-grant.ts';
import {
  bundleVerifier,
  llmVerifier,
  mcpVerifier,
  type Verified,
  type VerifiedGrant,
  type Verifier,
} from './grant/verify.ts';
import { breakOff } from './http/cut.ts';
import { refusalAnswer } from './http/refuse.ts';
import { llmCall } from './llm/call.ts';
import { describeGrant, describeIssued } from './llm/describe.ts';
import { splitUrl } from './llm/match.ts';
import { createAccessTokens, createAuthorizer } from './mcp/auth/authorize.ts';
import { bundle } from './mcp/bundle.ts';
import { mcpCall } from './mcp/call.ts';
import { describeServer } from './mcp/page.ts';
import { readMcpUrl } from './mcp/request/request.ts';
import { preflight } from './preflight.ts';
import { addHealthRoutes } from './readiness.ts';
import { writeAnswer } from './share/discard.ts';
import { createFreeWork } from './share/free-work.ts';
import { type ServeSocket, socketCall } from './socket/handshake.ts';

/** Everything that a gateway serves. */
export type Gateway = {
  readonly app: Hono<GatewayEnv>;
  /** Whether `postCall` serves a request. */
  readonly isPostCall: (incoming: IncomingMessage) => boolean;
  /** Serves a POST to a provider or an MCP server without Hono's routing and `Request`, which would cost time in every call. */
  readonly postCall: (incoming: IncomingMessage, outgoing: ServerResponse) => Promise<void>;
  /** Whether `serveSocket` serves an upgrade. Node no longer reads any other upgrade as a request. */
  readonly isSocket: (incoming: IncomingMessage) => boolean;
  readonly serveSocket: ServeSocket;
  /** Refuses a request that cannot be read. */
  readonly malformed: () => Response;
};

/** Builds the gateway: it decides whether a call is allowed, and counts what the call costs. */
export function createGateway(deps: GatewayDeps): Gateway {
  const app = new Hono<GatewayEnv>();
  const memory = grantMemory();
  const report = callReporter({
    log: deps.log,
    memory,
    callEnded: deps.metrics.callEnded,
    refused: deps.refusedCalls.add,
    readQuota: deps.readQuota,
    traces: deps.traces,
  });
  /** Refuses a request that reaches no route. */
  const refuse = (refusal: Refusal, requestId: string, incoming: Incoming, shape?: ErrorShape) => {
    report(new CallReport('other', requestId, incoming), refusal);
    return refusalAnswer(refusal, requestId, shape);
  };
  app.use(async (c, next) => {
    const requestId = randomUUID();
    c.set('requestId', requestId);
    const message = ambiguousRequest(c.env.incoming);
    if (message === undefined) return next();
    const incoming = c.env.incoming as IncomingMessage;
    return closing(refuse({ code: 'invalid_request', message }, requestId, incoming, shapeFor(incoming)));
  });
  const fail = (error: Error, requestId: string, incoming: IncomingMessage) => {
    // Only the stack's frames are logged: a message may quote a secret.
    const frames = error.stack?.split('\n').filter((line) => line.startsWith('    at '));
    deps.log.error({ request_id: requestId, error: error.name, stack: frames }, 'internal_error');
    return refusalAnswer({ code: 'internal_error' }, requestId, shapeFor(incoming));
  };
  app.onError((error, c) => fail(error, c.get('requestId'), c.env.incoming as IncomingMessage));
  app.notFound((c) => refuse({ code: 'not_found' }, c.get('requestId'), c.env.incoming as IncomingMessage));
  const wrongMethod = onWrongMethod(refuse);
  const own = { memory, report, readGrant: grantReader(deps.db), freeWork: createFreeWork(deps.now) };
  const shared = { ...deps, ...own };
  const llm = { ...shared, verify: llmVerifier(deps), accessTokens: createAccessTokens(deps) };
  const mcp = { ...shared, verify: mcpVerifier(deps), authorizer: createAuthorizer(deps) };
  const bundles = { ...shared, verify: bundleVerifier(deps) };
  const grantAt = grantFinder({ llm: llm.verify, mcp: mcp.verify, bundle: bundles.verify });
  app.options('*', preflight({ ...shared, grantAt }));
  addHealthRoutes(app, deps, wrongMethod);
  for (const path of ['/llm/t/:token', '/llm'])
    app.get(path, describeGrant(llm)).on(NOT_OF_STATUS, path, wrongMethod);
  const callLlm = llmCall(llm);
  const callMcp = mcpCall(mcp);
  app.get('/llm/*', describeIssued(llm)).all('/llm/*', byHono(callLlm));
  // Some clients accept an address of the 2024-11-05 transport only if it ends in `/sse`.
  for (const path of ['/mcp/mcp', '/mcp/sse']) app.get(path, describeServer(mcp)).all(path, byHono(callMcp));
  app.all('/mcp/bundle/:token', bundle(bundles));
  const postCall = async (incoming: IncomingMessage, outgoing: ServerResponse) => {
    const requestId = randomUUID();
    const call = incoming.url?.startsWith('/llm/') ? callLlm : callMcp;
    const serving = call(incoming, outgoing, requestId);
    const answer = await serving.catch((error: Error) => fail(error, requestId, incoming));
    if (!answer) return;
    // A partial answer must not look complete.
    if (outgoing.headersSent) return breakOff(outgoing);
    await writeAnswer(outgoing, answer);
    outgoing.end();
  };
  const malformed = () => closing(refuse(UNREADABLE, randomUUID(), { method: undefined, headers: {} }));
  return { app, isPostCall, postCall, isSocket, serveSocket: socketCall(llm), malformed };
}

/** A POST to a URL without its path is a call, whose refusal names the paths of the URL. */
const NOT_OF_STATUS = ['PUT', 'PATCH', 'DELETE', 'OPTIONS'];

type Refuse = (refusal: Refusal, requestId: string, incoming: Incoming) => Response;

/** Refuses other methods at a read-only address. */
const onWrongMethod =
  (refuse: Refuse): Handler<GatewayEnv> =>
  (c) =>
    refuse(
      { code: 'method_not_supported', details: { allowed: ['GET', 'HEAD'] } },
      c.get('requestId'),
      c.env.incoming as IncomingMessage,
    );

type Incoming = ConstructorParameters<typeof CallReport>[2];

const UNREADABLE: Refusal = {
  code: 'invalid_request',
  message: 'The request target or the Host header is malformed.',
};

/** An answer after which nothing more of its connection is read. */
function closing(answer: Response): Response {
  answer.headers.set('connection', 'close');
  return answer;
}

/** A `Host` that every parser reads in the same way. */
const PLAIN_HOST = /^[\w.:[\]-]+$/;

/** The URLs of calls. A bundle is loaded by GET. */
const CALL_URL = /^\/(?:llm\/|mcp\/(?:mcp|sse)\?)/;

const isPostCall = (incoming: IncomingMessage): boolean =>
  incoming.method === 'POST' &&
  CALL_URL.test(incoming.url ?? '') &&
  PLAIN_HOST.test(incoming.headers.host ?? '') &&
  ambiguousRequest(incoming) === undefined;

const isSocket = (incoming: IncomingMessage): boolean =>
  incoming.method === 'GET' &&
  incoming.headers.upgrade?.toLowerCase() === 'websocket' &&
  incoming.url?.startsWith('/llm/') === true &&
  PLAIN_HOST.test(incoming.headers.host ?? '') &&
  ambiguousRequest(incoming) === undefined;

/** A route for all other methods. */
const byHono =
  (call: ServeCall): Handler<GatewayEnv> =>
  async ({ env, get }) => {
    const { incoming, outgoing } = env as { incoming: IncomingMessage; outgoing: ServerResponse };
    return (await call(incoming, outgoing, get('requestId'))) ?? RESPONSE_ALREADY_SENT;
  };

/** The error format if only the path is known. */
const shapeFor = ({ url = '' }: { readonly url?: string | undefined }) =>
  errorShapeOf(undefined, splitUrl(url).path);

/** Verifies the token of a URL. Undefined: the URL has no token. */
const grantFinder =
  (verify: Readonly<Record<'llm' | 'mcp' | 'bundle', Verifier<VerifiedGrant>>>) =>
  (url: string): Verified<VerifiedGrant> | undefined => {
    const { token } = splitUrl(url);
    if (token !== undefined) return verify.llm(token);
    const ofBundle = /^\/mcp\/bundle\/([^/?]+)/.exec(url)?.[1];
    if (ofBundle !== undefined) return verify.bundle(ofBundle);
    const asked = readMcpUrl(url);
    return asked && verify.mcp(asked.token);
  };
