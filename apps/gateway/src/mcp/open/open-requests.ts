import { hash } from 'node:crypto';
import type { RpcId } from '../ids/rpc-id.ts';
import type { UnansweredRequests } from './unanswered.ts';

/** The client that sent a request: a session of a grant, or any client of the grant if the server has no sessions. */
export type Sender = { readonly grantId: string; readonly session: string | undefined };

/** The channel of all gateways. */
type Others = {
  readonly hear: (deliver: (message: string) => void) => Promise<void>;
  readonly say: (message: string) => Promise<unknown>;
};

/** A cancellation as gateways publish it. It contains neither ids of the client nor ids of the server. */
type Cancellation = { readonly name: string; readonly why: Why };

/** Without a session, the id may belong to another client's request. */
type Why = 'cancelled' | 'doubtful';

type Open = { readonly unanswered: UnansweredRequests; readonly id: RpcId };

/** The open requests at this gateway, by the ids that a cancellation names. */
export class OpenRequests {
  readonly #open = new Map<string, Set<Open>>();
  readonly #others: Others;
  #hears = false;

  constructor(others: Others) {
    this.#others = others;
  }

  /**
   * @param hasPlaces whether its places become free sooner if this gateway receives cancellations from other gateways
   * @returns a function to call when the POST has ended
   */
  add(sender: Sender, unanswered: UnansweredRequests, hasPlaces: boolean): () => void {
    if (hasPlaces) this.#hear();
    const added = unanswered.ids.map((id) => this.#enter(nameOf(sender, id), { unanswered, id }));
    return () => {
      for (const remove of added) remove();
    };
  }

  /** Records that the client cancelled a request, here or at another gateway. */
  cancel(sender: Sender, id: RpcId): void {
    const cancellation: Cancellation = {
      name: nameOf(sender, id),
      why: sender.session === undefined ? 'doubtful' : 'cancelled',
    };
    if (!this.#cancel(cancellation)) this.#others.say(JSON.stringify(cancellation)).catch(() => {});
  }

  /** Clients that share a URL, and have no sessions, may give one id to several requests. Then it is unknown which request is meant. */
  #cancel({ name, why }: Cancellation): boolean {
    const [only, another] = this.#open.get(name) ?? [];
    if (only && !another) only.unanswered.waitsNoMore(only.id, why);
    return only !== undefined;
  }

  #hear(): void {
    if (this.#hears) return;
    this.#hears = true;
    const deliver = (message: string) => void this.#cancel(JSON.parse(message) as Cancellation);
    this.#others.hear(deliver).catch(() => {
      this.#hears = false;
    });
  }

  #enter(name: string, each: Open): () => void {
    const all = this.#open.get(name) ?? new Set();
    this.#open.set(name, all.add(each));
    return () => {
      all.delete(each);
      if (all.size === 0 && this.#open.get(name) === all) this.#open.delete(name);
    };
  }
}

/** A key of fixed length, because ids of clients and of sessions may be long. */
const nameOf = ({ grantId, session }: Sender, id: RpcId): string =>
  hash('sha256', JSON.stringify([grantId, session ?? null, id]), 'base64');
