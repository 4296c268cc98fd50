/** One exchange of a client, as it went over the road. */
export type Exchange = {
  readonly origin: string;
  readonly verb: string;
  /** Where it was meant for. */
  readonly url: URL;
  /** Headers of the request. */
  readonly headers: Headers;
  /** The JSON-RPC method of a POST; undefined for a response. */
  readonly method: string | undefined;
  /** Undefined until the answer has begun. */
  status?: number;
  /** The part of the answer that has come so far. */
  text: string;
};

/** A client's connection to a server. It records what it carried, and it can be cut. */
export type Road = {
  readonly fetch: (url: string | URL, init?: RequestInit) => Promise<Response>;
  readonly exchanges: readonly Exchange[];
  /** Breaks off every answer that is under way, as a lost connection does. */
  readonly cut: () => void;
};

/**
 * Opens a road.
 * @param origins may be changed meanwhile: each request goes to the next of these in turn, whatever origin it was meant for; with none it
 *   goes where it was meant to
 */
export function openRoad(origins: readonly string[] = []): Road {
  const exchanges: Exchange[] = [];
  let scissors = new AbortController();
  return {
    exchanges,
    cut: () => {
      scissors.abort(new Error('the connection was lost'));
      scissors = new AbortController();
    },
    fetch: async (url, init = {}) => {
      const target = new URL(url);
      const origin = origins[exchanges.length % origins.length] ?? target.origin;
      const exchange: Exchange = {
        origin,
        url: target,
        verb: init.method ?? 'GET',
        headers: new Headers(init.headers),
        method: methodOf(init.body),
        text: '',
      };
      exchanges.push(exchange);
      const signal = init.signal ? AbortSignal.any([init.signal, scissors.signal]) : scissors.signal;
      const answer = await fetch(origin + target.pathname + target.search, { ...init, signal });
      exchange.status = answer.status;
      void listen(answer.clone(), exchange).catch(() => {});
      return answer;
    },
  };
}

function methodOf(body: RequestInit['body']): string | undefined {
  if (typeof body !== 'string') return undefined;
  const { method } = JSON.parse(body) as { method?: string };
  return method;
}

async function listen(answer: Response, exchange: Exchange): Promise<void> {
  if (!answer.body) return;
  for await (const text of answer.body.pipeThrough(new TextDecoderStream())) exchange.text += text;
}
