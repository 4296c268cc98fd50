import type { PresignAnswer } from '@presign/client';
import { useQuery } from '@tanstack/preact-query';
import type { JSX } from 'preact';
import { useContext, useEffect, useId, useRef, useState } from 'preact/hooks';
import { presign } from '../api/api.ts';
import { useModels } from '../api/queries.ts';
import { count, limit, money, short } from '../data/format/format.ts';
import { Choice, Field, textsOf } from '../parts/forms/form.tsx';
import { Failed, Waiting } from '../parts/page/answer.tsx';
import { Facts } from '../parts/page/facts.tsx';
import { hrefOf } from '../parts/page/place.ts';
import { Rights } from '../parts/page/rights.ts';
import { callUrl, type Head, type Left, readLeft, splitUrl, type UrlCall } from './call-url.ts';
import { Copied } from './copied.tsx';
import { dialectOf } from './dialects.ts';
import { Explained } from './explained.tsx';
import { eventsOf, isRealtime, turnOnSocket } from './socket-turn.ts';

type Request = Readonly<Record<string, unknown>>;
type PlaygroundProps = { readonly issued: PresignAnswer; readonly request: Request };

/** Calls an issued URL as its holder does, and shows what the call costs and what is left. */
export function Playground({ issued, request }: PlaygroundProps) {
  const { base, path } = splitUrl(issued.url);
  const { model, isPending } = useModel(request);
  const call = useCall();
  const left = useLeft(issued.grant_id, base, call.isRunning);
  const [way, setWay] = useState(isRealtime(path) ? 'socket' : 'POST');
  const send = (event: JSX.TargetedSubmitEvent<HTMLFormElement>) => {
    event.preventDefault();
    const { path: asked = path, body = '' } = textsOf(event.currentTarget);
    if (way === 'socket') return void call.run({ base, path: asked, model, body }, turnOnSocket);
    const method = String(request.method ?? 'POST');
    void call.run({ base, path: asked, method, body: /^(GET|HEAD)$/.test(method) ? '' : body }, callUrl);
  };
  if (isPending) return <Waiting />;
  return (
    <>
      <h2>Call it</h2>
      <form onSubmit={send} aria-label="A call">
        {request.sockets === true && (
          <div onInput={({ target }) => target instanceof HTMLSelectElement && setWay(target.value)}>
            <Choice label="Way" name="way" value={way} options={waysOf(path)} />
          </div>
        )}
        <Field label="Path" name="path" value={path} required hint="One that the URL allows." />
        <BodyField
          key={way}
          label={way === 'socket' ? 'Events' : 'Body'}
          value={way === 'socket' ? eventsOf(path, model) : bodyOf(path, model)}
        />
        <p class="buttons">
          <button type="submit" class="main" disabled={call.isRunning}>
            Call
          </button>
          {call.isRunning && (
            <button type="button" onClick={call.stop}>
              Stop
            </button>
          )}
        </p>
      </form>
      {call.error && <Failed error={call.error} />}
      {call.head && !call.isRunning && <Explained head={call.head} text={call.text} />}
      {call.head && (
        <>
          <section aria-label="The answer" aria-busy={call.isRunning}>
            <pre>{call.text}</pre>
          </section>
          <p role="status">{call.isRunning ? 'The answer arrives.' : 'The call has ended.'}</p>
        </>
      )}
      <Figures head={call.head} left={left.data} />
      <h2>Use it elsewhere</h2>
      <p>
        The holder sends its calls to this URL in place of the provider's. An SDK gets the URL up to its
        version, such as
        <code> /v1</code>, as its base, and any text as its key.
      </p>
      <Copied label="A call with curl" text={curlOf(path, model, way)} />
    </>
  );
}

function BodyField({ label, value }: { label: string; value: string }) {
  const id = useId();
  return (
    <p class="field">
      <label for={id}>{label}</label>
      <textarea id={id} name="body" rows={10} spellcheck={false} autocomplete="off" defaultValue={value} />
    </p>
  );
}

const bodyOf = (path: string, model: string): string => {
  const body = dialectOf(path)?.body(model);
  return body ? JSON.stringify(body, null, 2) : '';
};

/** The model of the call: the URL's own model, or the provider's first model with a price. */
function useModel({ provider, config, models }: Request): { model: string; isPending: boolean } {
  const can = useContext(Rights);
  const { model: fixed } = (config ?? {}) as { readonly model?: unknown };
  const named = (models as readonly string[] | undefined)?.find((name) => !name.includes('*'));
  const known = typeof fixed === 'string' ? fixed : named;
  const { data, isLoading } = useModels(String(provider), known === undefined && can('read'));
  return { model: known ?? data?.[0]?.model ?? 'MODEL', isPending: isLoading };
}

/** A call from a shell, which has the URL in a variable. */
const curlOf = (path: string, model: string, way: string): string =>
  way === 'socket'
    ? 'npx -y wscat@6 -c "ws${PRESIGNED_URL#http}"'
    : `curl "$PRESIGNED_URL" -H 'Content-Type: application/json' \\\n  -d '${bodyOf(path, model).replaceAll("'", "'\\''")}'`;

/** The POST comes first, where the path has one. */
const waysOf = (path: string) => (isRealtime(path) ? [SOCKET] : [['POST', 'a POST'] as const, SOCKET]);
const SOCKET = ['socket', 'a turn on a socket'] as const;

/** Gets the answer of a call as it arrives. */
type Ears = Pick<UrlCall, 'signal' | 'onHead' | 'onText'>;

/** Runs one call at a time and has the part of its answer that has arrived. The call ends when the user leaves the page. */
function useCall() {
  const [head, setHead] = useState<Head>();
  const [text, setText] = useState('');
  const [error, setError] = useState<Error>();
  const [isRunning, setRunning] = useState(false);
  const running = useRef<AbortController>();
  const stop = () => running.current?.abort();
  useEffect(() => stop, []);
  const run = async <Asked,>(asked: Asked, call: (asked: Asked & Ears) => Promise<void>) => {
    const own = new AbortController();
    running.current = own;
    setHead(undefined);
    setText('');
    setError(undefined);
    setRunning(true);
    const onText = (part: string) => setText((before) => before + part);
    try {
      await call({ ...asked, signal: own.signal, onHead: setHead, onText });
    } catch (cause) {
      if (!own.signal.aborted) setError(cause as Error);
    } finally {
      setRunning(false);
    }
  };
  return { head, text, error, isRunning, run, stop };
}

/** The figures change only when a call is settled, after its end. */
const EVERY_MS = 1_000;

const useLeft = (grantId: string, base: string, isRunning: boolean) =>
  useQuery({
    queryKey: ['left', grantId, isRunning],
    queryFn: () => readLeft(base),
    placeholderData: (before) => before,
    staleTime: 0,
    refetchInterval: ({ state }) => (state.data?.held === 0 ? false : EVERY_MS),
  });

/** The charge of a call, from its answer or else from the ledger as soon as the ledger has the call. */
function useCost(head: Head | undefined) {
  const can = useContext(Rights);
  const requestId = head?.requestId ?? '';
  const { data } = useQuery({
    queryKey: ['call', requestId],
    queryFn: () => presign.getCall({ request_id: requestId }),
    enabled: head?.cost === null && head.status < 300 && requestId !== '' && can('read'),
    refetchInterval: ({ state }) => (state.data ? false : EVERY_MS),
  });
  return head?.cost ?? data?.cost;
}

function Figures({ head, left }: { head: Head | undefined; left: Left | undefined }) {
  const can = useContext(Rights);
  const cost = useCost(head);
  const room = left && left.cost_limit !== null ? left.cost_limit - left.spent - left.held : null;
  const uses = left && left.max_uses !== null ? left.max_uses - left.used : null;
  return (
    <Facts
      of={[
        ['Status', head?.status ?? '–'],
        ['Cost of the call', money(cost)],
        ['Spent by the URL', money(left?.spent)],
        ['Money left', left ? limit(room, money) : '–'],
        ['Uses left', left ? limit(uses, count) : '–'],
        [
          'Request',
          head?.requestId && can('read') ? (
            <a key="request" href={hrefOf('requests', head.requestId)}>
              {short(head.requestId)}
            </a>
          ) : (
            (head?.requestId ?? '–')
          ),
        ],
      ]}
    />
  );
}
