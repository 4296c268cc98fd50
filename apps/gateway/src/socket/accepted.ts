import type { WebSocket } from 'ws';
import type { Policy } from '../grant/policy.ts';
import type { Secrets } from '../http/hide-secrets.ts';
import type { SocketDialect } from './dialects/dialect.ts';
import type { SocketOf } from './turn.ts';

/** A socket that was accepted. */
export type Accepted = {
  readonly requestId: string;
  readonly of: Omit<SocketOf, 'hasLeft'>;
  readonly policy: Policy;
  readonly secrets: Secrets;
  readonly dialect: SocketDialect;
  readonly holder: WebSocket;
  readonly upstream: WebSocket;
};
